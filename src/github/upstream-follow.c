/* SPDX-License-Identifier: Apache-2.0 */
/* Events become rows, one after the other, together with the place in the log.  Whatever fails leaves the
 * place where it was, and the next tick begins again behind it; the same event asks for nothing twice. */
#include "base/failpoint.h"
#include "base/log.h"
#include "github/text.h"
#include "github/upstream-private.h"

static const char place_name[] = "github.seq";

static void follow(Upstream *u);

static void
step_free(gpointer data)
{
    UpstreamStep *s = data;

    g_free(s->repository_id);
    g_free(s->kind);
    json_decref(s->data);
    upstream_unref(s->upstream);
    g_free(s);
}

static bool
step_work(DbTx *tx, void *data, GError **error)
{
    const UpstreamStep *s = data;
    g_autofree char *seq = g_strdup_printf("%" G_GINT64_FORMAT, s->seq);

    if (s->kind != NULL && !upstream_ask(tx, s, error))
        return false;
    FAILPOINT("upstream-asking");
    return db_exec(
        tx,
        "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = "
        "excluded.value",
        DB_ARGS(db_text(place_name), db_text(seq)), error);
}

/* ---- on the loop ---- */

static void
begin_again(Upstream *u, const GError *error)
{
    log_warn("github", "events wait for what follows from them", log_gerror(error));
    g_clear_pointer(&u->cursor, event_cursor_free);
    if (!u->stopped)
        loop_timer_set(u->spec.loop, &u->tick, UPSTREAM_TICK_MS);
}

static void
on_stepped(void *data, const GError *error)
{
    UpstreamStep *s = data;
    Upstream *u = s->upstream;

    u->following = false;
    if (error != NULL) {
        begin_again(u, error);
    } else if (!u->stopped) {
        if (s->repository_id != NULL)
            upstream_wake(u);
        follow(u);
    }
}

static void
write_step(Upstream *u, UpstreamStep *s)
{
    s->upstream = upstream_ref(u);
    u->following = true;
    u->passed = 0;
    db_write(u->spec.db, step_work, on_stepped, s, step_free);
}

/* What was done there, and came here, does not go back. */
static bool
is_from_there(const Event *event, const Json *data)
{
    return github_text(data, "source") != NULL ||
           (event->actor != NULL && g_str_has_prefix(event->actor, "github:"));
}

/* NULL: nothing follows from it. */
static UpstreamStep *
step_of(Upstream *u, const Event *event)
{
    g_autoptr(Json) whole = json_decode(event->json, event->json_len, NULL);
    Json *data = json_object_get(whole, "data");
    const char *id = github_text(data, "repository_id");
    Repo *repo = id != NULL && !is_from_there(event, data) ? forge_find_id(u->spec.forge, id) : NULL;
    g_auto(GithubPlace) place = {0};

    if (repo == NULL || !upstream_find_place(u, repo, &place, NULL))
        return NULL;
    UpstreamStep *s = g_new0(UpstreamStep, 1);

    *s = (UpstreamStep){.seq = event->seq,
                        .repository_id = g_strdup(id),
                        .kind = g_strdup(event->kind),
                        .data = json_incref(data),
                        .is_of_box = event->box_id != NULL};
    return s;
}

static void
take(Upstream *u, const Event *event)
{
    UpstreamStep *s = step_of(u, event);

    if (s == NULL && ++u->passed >= UPSTREAM_PLACE_EVERY) {
        s = g_new0(UpstreamStep, 1);
        s->seq = event->seq;
    }
    if (s != NULL)
        write_step(u, s);
}

static void
follow(Upstream *u)
{
    while (!u->stopped && !u->following && u->cursor != NULL) {
        g_autoptr(Event) event = NULL;

        switch (event_cursor_next(u->cursor, &event)) {
        case EVENT_READY:
            take(u, event);
            break;
        case EVENT_WAIT:
            return;
        case EVENT_RESYNC:
            break;
        case EVENT_FAILED:
            g_clear_pointer(&u->cursor, event_cursor_free);
            loop_timer_set(u->spec.loop, &u->tick, UPSTREAM_TICK_MS);
            return;
        }
    }
}

static void
on_wake(void *data)
{
    follow(data);
}

/* ---- beginning ---- */

typedef struct Beginning {
    Upstream *upstream;
    gint64 place;
} Beginning;

static bool
read_place(DbTx *tx, void *data, GError **error)
{
    Beginning *b = data;
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT value FROM settings WHERE name = ?", DB_ARGS(db_text(place_name)), error);
    bool more = false;

    if (rows == NULL || !db_rows_next(rows, &more, error))
        return false;
    if (more)
        b->place = g_ascii_strtoll(db_rows_text(rows, 0), NULL, 10);
    return true;
}

static void
on_place(void *data, const GError *error)
{
    static const char *const kinds[] = {"branch.created", "commit.pushed",  "pr.*", "comment.*",
                                        "review.*",       "check.reported", NULL};
    Beginning *b = data;
    Upstream *u = b->upstream;

    if (error != NULL)
        begin_again(u, error);
    if (error != NULL || u->stopped || u->cursor != NULL)
        return;
    b->place = MAX(b->place, event_log_first_seq(u->spec.events) - 1);
    u->cursor = event_cursor_new(u->spec.events, &(EventFilter){.kinds = kinds}, b->place, on_wake, u);
    event_cursor_is_own(u->cursor);
    follow(u);
}

static void
beginning_free(gpointer data)
{
    Beginning *b = data;

    upstream_unref(b->upstream);
    g_free(b);
}

void
upstream_follow_start(Upstream *u)
{
    Beginning *b = g_new0(Beginning, 1);

    *b = (Beginning){upstream_ref(u), event_log_last_seq(u->spec.events)};
    db_read(u->spec.db, read_place, on_place, b, beginning_free);
}
