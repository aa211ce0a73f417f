/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/hook-private.h"

/* One delivery as it is sent. */
typedef struct Post {
    Hooks *hooks;
    gint64 id, hook_id;
    HookOwnerKind owner;
    gint64 until_us; /* not tried after that; 0: as often as there are tries */
    guint tries;
    char *url, *guid, *event, *body;
    GBytes *secret; /* sealed; NULL: none */
    /* what came of it */
    int status;
    char *problem;
    bool for_good; /* trying again would change nothing */
} Post;

static void
post_free(gpointer data)
{
    Post *p = data;

    g_free(p->url);
    g_free(p->guid);
    g_free(p->event);
    g_free(p->body);
    g_free(p->problem);
    g_clear_pointer(&p->secret, g_bytes_unref);
    hooks_unref(p->hooks);
    g_free(p);
}

/* ---- signing ---- */

char *
hook_sign(const char *secret, size_t secret_len, const char *body, size_t body_len)
{
    crypto_auth_hmacsha256_state state;
    guint8 mac[crypto_auth_hmacsha256_BYTES];
    char hex[2 * sizeof mac + 1];

    crypto_auth_hmacsha256_init(&state, (const guint8 *)secret, secret_len);
    crypto_auth_hmacsha256_update(&state, (const guint8 *)body, body_len);
    crypto_auth_hmacsha256_final(&state, mac);
    sodium_memzero(&state, sizeof state);
    return g_strconcat("sha256=", sodium_bin2hex(hex, sizeof hex, mac, sizeof mac), NULL);
}

/* NULL without an error: it has none. */
static char *
unseal(const Post *p, size_t *ret_len, GError **error)
{
    g_autofree char *purpose = hook_purpose(p->hook_id);
    gsize sealed_len;

    if (p->secret == NULL)
        return NULL;
    const void *sealed = g_bytes_get_data(p->secret, &sealed_len);

    return seal_unseal(p->hooks->spec.seal, purpose, sealed, sealed_len, ret_len, error);
}

static char *
signature_of(const Post *p, GError **error)
{
    size_t n;
    char *secret = unseal(p, &n, error);
    char *signature = secret != NULL ? hook_sign(secret, n, p->body, strlen(p->body)) : NULL;

    seal_wipe(secret, n);
    return signature;
}

/* ---- what came of it ---- */

gint64
hook_pause_us(guint tries)
{
    gint64 pause_s = HOOK_BACKOFF_S;

    for (guint i = 1; i < tries && pause_s < HOOK_BACKOFF_MAX_S; i++)
        pause_s *= HOOK_BACKOFF_FACTOR;
    /* Jitter: those that failed together do not come back together. */
    return MIN(pause_s, HOOK_BACKOFF_MAX_S) * (gint64)(G_USEC_PER_SEC / 100) * g_random_int_range(80, 121);
}

static bool
write_end(DbTx *tx, void *data, GError **error)
{
    const Post *p = data;
    guint tries = p->tries + 1;
    gint64 now = clock_wall_us(), next = now + hook_pause_us(tries);
    bool waits = p->problem != NULL && !p->for_good && tries < (guint)HOOK_TRIES &&
                 (p->until_us == 0 || next < p->until_us);
    const char *state = p->problem == NULL ? "done" : waits ? "waiting" : "failed";

    return db_exec(tx,
                   "UPDATE deliveries SET state = ?, status = ?, tries = ?, next_us = ?, problem = ?, "
                   "ended_us = ? WHERE id = ?",
                   DB_ARGS(db_text(state), db_int(p->status), db_int(tries), db_int(waits ? next : now),
                           db_text(p->problem), db_int(waits ? 0 : now), db_int(p->id)),
                   error);
}

static void
arm(Hooks *hooks, gint64 next_us)
{
    enum { SOON_US = 60 * G_USEC_PER_SEC };

    if (next_us != 0)
        loop_timer_set(hooks->spec.loop, &hooks->tick,
                       next_us - clock_wall_us() < SOON_US ? HOOK_TICK_MS : HOOK_LONG_TICK_MS);
}

static void
on_ended(void *data, const GError *error)
{
    Post *p = data;

    g_hash_table_remove(p->hooks->sending, &p->id);
    if (p->hooks->stopped)
        return;
    if (error == NULL) {
        hooks_send(p->hooks);
        return;
    }
    log_warn("hooks", "a delivery was not written down and will be sent again", log_gerror(error));
    arm(p->hooks, clock_wall_us());
}

static gint64 *
dup_id(gint64 id)
{
    return g_memdup2(&id, sizeof id);
}

static void
end_post(Post *p)
{
    g_hash_table_replace(p->hooks->sending, dup_id(p->id), NULL);
    db_write(p->hooks->spec.db, write_end, on_ended, p, post_free);
}

static bool
on_data(HttpCall *call, const guint8 *bytes, size_t n, void *ctx)
{
    return true; /* nobody reads what they say */
}

static void
on_done(HttpCall *call, int status, const GError *error, void *ctx)
{
    enum { TIMED_OUT = 408, TOO_MANY = 429 };
    Post *p = ctx;

    FAILPOINT("hook-sent");
    p->status = status;
    if (error != NULL) {
        p->problem = g_strdup(error->message);
        p->for_good = g_error_matches(error, ERR_DOMAIN, ERR_DENIED);
    } else if (status < 200 || status >= 300) {
        p->problem = g_strdup_printf("it was answered with %d", status);
        p->for_good = status < 500 && status != TIMED_OUT && status != TOO_MANY;
    }
    end_post(p);
}

/* ---- sending ---- */

static bool
call(Post *p, const char *url, const char *const *headers, GError **error)
{
    static const HttpCallHandler handler = {.data = on_data, .done = on_done};
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    spec.method = "POST";
    spec.url = url;
    spec.headers = headers;
    spec.body = p->body;
    spec.body_len = strlen(p->body);
    spec.total_ms = HOOK_TIMEOUT_MS;
    return http_client_call(p->hooks->client, &spec, &handler, p, error) != NULL;
}

/* Repositories tell as GitHub does, squads in their own name. */
static bool
send_signed(Post *p, GError **error)
{
    const char *from = p->owner == HOOK_OF_REPOSITORY ? "GitHub" : "Coop";
    g_autoptr(GError) sealed = NULL;
    g_autofree char *signature = signature_of(p, &sealed);
    g_autofree char *event = g_strdup_printf("X-%s-Event: %s", from, p->event);
    g_autofree char *guid = g_strdup_printf("X-%s-Delivery: %s", from, p->guid);
    g_autofree char *hook = g_strdup_printf("X-%s-Hook-ID: %" G_GINT64_FORMAT, from, p->hook_id);
    g_autofree char *signed_by = signature != NULL ? g_strconcat("X-Hub-Signature-256: ", signature, NULL)
                                                   : NULL;
    const char *headers[] = {
        "Content-Type: application/json", "User-Agent: Coop-Hookshot/1", event, guid, hook, signed_by, NULL};

    if (sealed == NULL)
        return call(p, p->url, headers, error);
    g_propagate_error(error, g_steal_pointer(&sealed));
    return false;
}

/* Whoever has the address may speak there: nothing more is shown. */
static bool
send_reply(Post *p, GError **error)
{
    static const char *const headers[] = {"Content-Type: application/json; charset=utf-8",
                                          "User-Agent: Coop-Hookshot/1", NULL};
    size_t n = 0;

    if (clock_wall_us() >= p->until_us)
        return err_set(error, ERR_TIMEOUT, "answers are not taken there any more");
    char *url = unseal(p, &n, error);
    bool ok = url != NULL && call(p, url, headers, error);

    seal_wipe(url, n);
    return ok;
}

static void
send_post(Post *p)
{
    g_autoptr(GError) error = NULL;

    if ((p->owner == HOOK_OF_TASK ? send_reply : send_signed)(p, &error))
        return;
    p->problem = g_strdup(error != NULL ? error->message : "it has no address");
    p->for_good = true;
    end_post(p);
}

/* ---- what is due ---- */

typedef struct Look {
    Hooks *hooks;
    GHashTable *sending; /* a copy for the thread */
    guint room;
    GPtrArray *posts;
    gint64 next_us; /* 0: nothing waits */
} Look;

static void
look_free(gpointer data)
{
    Look *l = data;

    g_ptr_array_unref(l->posts);
    g_hash_table_unref(l->sending);
    hooks_unref(l->hooks);
    g_free(l);
}

static Post *
read_post(Look *l, DbRows *rows)
{
    Post *p = g_new0(Post, 1);
    size_t n;

    *p = (Post){.hooks = l->hooks,
                .id = db_rows_int(rows, 0),
                .hook_id = db_rows_int(rows, 1),
                .tries = (guint)db_rows_int(rows, 2),
                .guid = g_strdup(db_rows_text(rows, 3)),
                .event = g_strdup(db_rows_text(rows, 4)),
                .body = g_strdup(db_rows_text(rows, 5)),
                .url = g_strdup(db_rows_text(rows, 6))};
    if (!db_rows_is_null(rows, 9))
        p->owner = HOOK_OF_SQUAD;
    if (!db_rows_is_null(rows, 10)) {
        p->owner = HOOK_OF_TASK;
        p->until_us = db_rows_int(rows, 11) + HOOK_REPLY_LIFE_S * (gint64)G_USEC_PER_SEC;
    }
    if (!db_rows_is_null(rows, 7)) {
        const void *sealed = db_rows_blob(rows, 7, &n);

        p->secret = g_bytes_new(sealed, n);
    }
    return p;
}

/* More than are wanted are asked for: those under way are still waiting, as far as rows go.  Whoever follows
 * a squad or reads a chat gets what happens in its order, so that each event waits for those before it; what
 * somebody asks for, a ping or a repetition, waits for none. */
static bool
look_work(DbTx *tx, void *data, GError **error)
{
    Look *l = data;
    gint64 now = clock_wall_us();
    g_autoptr(DbRows) rows = db_query(
        tx,
        "SELECT d.id, d.hook_id, d.tries, d.guid, d.event, d.body, h.url, h.secret, d.next_us, h.squad_id, "
        "h.task_id, h.created_us FROM deliveries d JOIN hooks h ON h.id = d.hook_id WHERE d.state = "
        "'waiting' AND h.active = 1 AND (h.repository_id IS NOT NULL OR d.seq IS NULL OR NOT EXISTS (SELECT "
        "1 FROM deliveries e WHERE e.state = 'waiting' AND e.hook_id = d.hook_id AND e.id < d.id AND e.seq "
        "IS NOT NULL)) ORDER BY d.next_us, d.id LIMIT ?",
        DB_ARGS(db_int(HOOK_SENDING_MAX * 2)), error);
    bool more = true;

    while (rows != NULL) {
        if (!db_rows_next(rows, &more, error))
            return false;
        if (!more)
            return true;
        gint64 id = db_rows_int(rows, 0);

        if (g_hash_table_contains(l->sending, &id))
            continue;
        if (db_rows_int(rows, 8) <= now && l->posts->len < l->room)
            g_ptr_array_add(l->posts, read_post(l, rows));
        else if (l->next_us == 0)
            l->next_us = db_rows_int(rows, 8);
    }
    return false;
}

static void
on_looked(void *data, const GError *error)
{
    Look *l = data;
    Hooks *hooks = l->hooks;

    hooks->looking = false;
    for (guint i = 0; i < l->posts->len; i++) {
        Post *p = l->posts->pdata[i];

        hooks_ref(hooks);
        if (hooks->stopped || error != NULL) {
            post_free(p);
            continue;
        }
        g_hash_table_replace(hooks->sending, dup_id(p->id), p);
        send_post(p);
    }
    if (hooks->stopped)
        return;
    arm(hooks, error != NULL ? clock_wall_us() : l->next_us);
    if (hooks->look_again)
        hooks_send(hooks);
}

void
hooks_send(Hooks *hooks)
{
    guint under_way = g_hash_table_size(hooks->sending);
    GHashTableIter iter;
    gpointer id;

    if (hooks->stopped || under_way >= (guint)HOOK_SENDING_MAX)
        return;
    hooks->look_again = hooks->looking;
    if (hooks->looking)
        return;
    hooks->looking = true;
    Look *l = g_new0(Look, 1);

    *l = (Look){.hooks = hooks_ref(hooks), .room = HOOK_SENDING_MAX - under_way};
    l->posts = g_ptr_array_new();
    l->sending = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    g_hash_table_iter_init(&iter, hooks->sending);
    while (g_hash_table_iter_next(&iter, &id, NULL))
        g_hash_table_add(l->sending, dup_id(*(gint64 *)id));
    db_read(hooks->spec.db, look_work, on_looked, l, look_free);
}

/* ---- life ---- */

static void
on_tick(LoopTimer *timer)
{
    Hooks *hooks = (Hooks *)((char *)timer - offsetof(Hooks, tick));

    if (hooks->cursor == NULL)
        hooks_start(hooks);
    hooks_send(hooks);
}

Hooks *
hooks_new(const HooksSpec *spec)
{
    Hooks *hooks = g_new0(Hooks, 1);

    *hooks = (Hooks){.refs = 1, .spec = *spec, .tick = {.expired = on_tick}};
    hooks->watched = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    hooks->sending = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    hooks->client = http_client_new(NULL);
    http_client_allow(hooks->client, HOOK_SENDING_MAX, HOOK_SENDING_MAX);
    http_client_fence(hooks->client, spec->allow_loopback ? HTTP_REACH_LOOPBACK : HTTP_REACH_PUBLIC);
    return hooks;
}

Hooks *
hooks_ref(Hooks *hooks)
{
    hooks->refs++;
    return hooks;
}

void
hooks_unref(Hooks *hooks)
{
    if (--hooks->refs > 0)
        return;
    g_hash_table_unref(hooks->watched);
    g_hash_table_unref(hooks->sending);
    g_free(hooks);
}

void
hooks_free(Hooks *hooks)
{
    if (hooks == NULL)
        return;
    GHashTableIter iter;
    gpointer post;

    hooks->stopped = true;
    loop_timer_cancel(hooks->spec.loop, &hooks->tick);
    g_clear_pointer(&hooks->cursor, event_cursor_free);
    /* Its calls end without a word. */
    g_clear_pointer(&hooks->client, http_client_free);
    g_hash_table_iter_init(&iter, hooks->sending);
    while (g_hash_table_iter_next(&iter, NULL, &post)) {
        if (post != NULL)
            post_free(post);
    }
    hooks_unref(hooks);
}
