/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "github/client-private.h"
#include "github/text.h"

/* One answer while it is judged. */
typedef struct Heard {
    GithubHeaders headers;
    GithubAnswer answer;
    const char *etag, *location;
    char *failure; /* for people; NULL: nothing was said */
} Heard;

static void
heard_clear(Heard *h)
{
    json_decref(h->answer.json);
    g_free((gpointer)(guintptr)h->answer.next);
    g_free(h->failure);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Heard, heard_clear)

/* ---- reading ---- */

static void
read_headers(Heard *h, HttpCall *http)
{
    h->headers = (GithubHeaders){.limit = http_call_header(http, "x-ratelimit-limit"),
                                 .remaining = http_call_header(http, "x-ratelimit-remaining"),
                                 .reset = http_call_header(http, "x-ratelimit-reset"),
                                 .resource = http_call_header(http, "x-ratelimit-resource"),
                                 .retry_after = http_call_header(http, "retry-after"),
                                 .date = http_call_header(http, "date")};
    h->answer.scopes = http_call_header(http, "x-oauth-scopes");
    h->answer.expires = http_call_header(http, "github-authentication-token-expiration");
    h->answer.accepted = http_call_header(http, "x-accepted-github-permissions");
    h->etag = http_call_header(http, "etag");
    h->location = http_call_header(http, "location");
}

static Json *
read_body(const GithubCall *call, GError **error)
{
    size_t n;
    const guint8 *bytes = buf_peek(&call->in, &n);

    if (n == 0)
        return NULL;
    if (call->accept == NULL || call->phase == CALL_LOOKS)
        return json_decode_foreign(bytes, n, GITHUB_VALUES_MAX, NULL, error);
    Json *text = json_stringn((const char *)bytes, n);

    if (text == NULL)
        err_set(error, ERR_INVALID, "the answer is no text");
    return text;
}

/* Pages that are elsewhere are nobody's. */
static bool
read_next(const GithubCall *call, Heard *h, HttpCall *http, GError **error)
{
    g_autofree char *next = github_link_next(http_call_header(http, "link"), GITHUB_PATH_MAX);
    const char *path = next != NULL ? client_below(call->client, next) : NULL;

    if (next != NULL && path == NULL)
        return err_set(error, ERR_DENIED, "%s: its next page would be elsewhere",
                       call->client->spec.base_url);
    h->answer.next = g_strdup(path);
    return true;
}

static void
read_failure(const GithubCall *call, Heard *h)
{
    const GithubClientSpec *spec = &call->client->spec;
    char *token = spec->token != NULL ? spec->token(spec->ctx) : NULL;

    h->failure = github_failure_text(h->answer.json, token);
    github_wipe(token);
}

/* ---- what follows ---- */

static void
set_error(const GithubCall *call, const Heard *h, ErrKind kind, GError **error)
{
    int n = (int)strcspn(call->path, "?");
    bool needs = h->answer.status == 403 && h->answer.accepted != NULL;
    g_autofree char *rights = needs ? github_clean(h->answer.accepted, 100) : NULL;

    err_set(error, kind, "%s: %s %.*s: %d%s%s%s%s%s", call->client->spec.base_url, call->method, n,
            call->path, h->answer.status, h->failure != NULL ? ": " : "",
            h->failure != NULL ? h->failure : "", needs ? " (it needs " : "", needs ? rights : "",
            needs ? ")" : "");
}

static void
fail_status(GithubCall *call, const Heard *h)
{
    g_autoptr(GError) error = NULL;

    set_error(call, h, github_status_kind(h->answer.status), &error);
    call_fail(call, &h->answer, error);
}

/* A try whose end is not known.  `error` says why. */
static void
try_again(GithubCall *call, const GithubAnswer *answer, gint64 wait_us, const GError *error)
{
    bool acted = call->phase == CALL_ACTS && !call_is_read(call);

    call->may_be_done |= acted;
    call->tries++;
    if (acted && call->look.path == NULL && !call->may_repeat) {
        g_autoptr(GError) unknown = g_error_copy(error);

        g_prefix_error(&unknown, "whether it was done is not known: ");
        call_fail(call, answer, unknown);
    } else if (call->tries >= GITHUB_TRIES) {
        call_fail(call, answer, error);
    } else {
        if (acted && call->look.path != NULL)
            call->phase = CALL_LOOKS;
        call->client->n_retries++;
        call->due_us = client_now_us(call->client) + wait_us;
    }
}

/* A connection that never was has sent nothing. */
static void
hear_broken(GithubCall *call, const GError *error)
{
    bool sent = !g_error_matches(error, ERR_DOMAIN, ERR_UNAVAILABLE);
    gint64 wait = github_backoff_us(call->tries + 1, client_random(call->client));

    if (err_kind(error) == ERR_DENIED || err_kind(error) == ERR_INTERNAL) {
        call_fail(call, NULL, error);
    } else if (sent) {
        try_again(call, NULL, wait, error);
    } else if (++call->tries >= GITHUB_TRIES) {
        call_fail(call, NULL, error);
    } else {
        call->client->n_retries++;
        call->due_us = client_now_us(call->client) + wait;
    }
}

static void
hear_limit(GithubCall *call, Heard *h, gint64 wait_us)
{
    GithubClient *client = call->client;

    github_budget_hold(&client->budget, client_now_us(client) + wait_us);
    h->answer.wait_us = wait_us;
    if (++call->tries < GITHUB_TRIES) {
        client->n_retries++;
        return; /* whether it waits so long is seen by the queue */
    }
    g_autoptr(GError) error = NULL;

    set_error(call, h, ERR_LIMIT, &error);
    call_fail(call, &h->answer, error);
}

static void
hear_moved(GithubCall *call, const Heard *h)
{
    g_autofree char *from = call_url(call);
    g_autofree char *to = h->location != NULL && strlen(h->location) <= GITHUB_PATH_MAX
                              ? g_uri_resolve_relative(from, h->location, G_URI_FLAGS_ENCODED, NULL)
                              : NULL;
    g_autoptr(GError) error = NULL;

    if (to == NULL || client_below(call->client, to) == NULL)
        err_set(&error, ERR_DENIED, "%s: it leads elsewhere, where the token must not go",
                call->client->spec.base_url);
    else if (++call->redirects > GITHUB_REDIRECTS_MAX)
        err_set(&error, ERR_INVALID, "%s: it leads from one place to the next", call->client->spec.base_url);
    if (error != NULL) {
        call_fail(call, &h->answer, error);
        return;
    }
    if (call->phase == CALL_LOOKS) {
        g_free(call->look_path);
        call->look_path = g_strdup(client_below(call->client, to));
        return;
    }
    g_free(call->url);
    call->url = g_steal_pointer(&to);
    call->client->write_ok_us = 0; /* nothing was written */
}

/* ---- good answers ---- */

static void
hear_page(GithubCall *call, const Heard *h)
{
    const GithubLook *look = &call->look;
    Json *list = look->member != NULL ? json_object_get(h->answer.json, look->member) : h->answer.json;

    for (size_t i = 0; json_is_array(list) && i < json_array_size(list); i++) {
        if (look->is_it(json_array_get(list, i), call->body)) {
            call_finish(call, &(GithubAnswer){.status = 200, .json = json_array_get(list, i), .found = true});
            return;
        }
    }
    if (!json_is_array(list) && look->is_it(list, call->body)) {
        call_finish(call, &(GithubAnswer){.status = 200, .json = list, .found = true});
        return;
    }
    g_clear_pointer(&call->look_path, g_free);
    if (h->answer.next != NULL && ++call->look_pages < GITHUB_LOOK_PAGES) {
        call->look_path = g_strdup(h->answer.next);
        return;
    }
    call->look_pages = 0;
    call->phase = CALL_ACTS;
}

static void
hear_good(GithubCall *call, Heard *h)
{
    GithubCache *cache = call->client->cache;
    bool is_read = call_is_read(call);
    size_t n;

    if (call->phase == CALL_LOOKS) {
        hear_page(call, h);
        return;
    }
    (void)buf_peek(&call->in, &n);
    if (is_read && h->etag != NULL && h->answer.json != NULL && call->accept == NULL)
        github_cache_put(cache, call->path, &(GithubCached){h->etag, h->answer.json, h->answer.next}, n);
    call_finish(call, &h->answer);
}

static void
hear_unchanged(GithubCall *call, Heard *h)
{
    const GithubCached *cached = github_cache_find(call->client->cache, call->path);
    g_autoptr(GError) error = NULL;

    if (cached == NULL || call->phase == CALL_LOOKS) {
        err_set(&error, ERR_INVALID, "%s: 304 for what was not asked so", call->client->spec.base_url);
        call_fail(call, &h->answer, error);
        return;
    }
    call->client->n_cached++;
    h->answer.status = 200;
    h->answer.cached = true;
    h->answer.json = json_incref(cached->json);
    h->answer.next = g_strdup(cached->next);
    call_finish(call, &h->answer);
}

static void
hear_done(GithubCall *call, Heard *h, HttpCall *http, const GError *unreadable)
{
    g_autoptr(GError) error = NULL;

    if (h->answer.status == 304)
        hear_unchanged(call, h);
    else if (unreadable != NULL)
        call_fail(call, &h->answer, unreadable);
    else if (!read_next(call, h, http, &error))
        call_fail(call, &h->answer, error);
    else
        hear_good(call, h);
}

static void
hear_failed(GithubCall *call, const Heard *h)
{
    bool is_absent = h->answer.status == 404;

    if (is_absent && call->phase == CALL_LOOKS)
        call->phase = CALL_ACTS;
    else if (is_absent && call->may_be_done && strcmp(call->method, "DELETE") == 0)
        call_finish(call, &(GithubAnswer){.status = 204, .found = true}); /* a lost try has removed it */
    else
        fail_status(call, h);
}

static void
judge(GithubCall *call, Heard *h, HttpCall *http)
{
    g_autoptr(GError) unreadable = NULL, error = NULL;
    gint64 wait;

    h->answer.json = read_body(call, &unreadable);
    if (h->answer.status >= 400)
        read_failure(call, h);
    switch (github_judge(h->answer.status, &h->headers, h->failure, call->tries + 1,
                         client_random(call->client), clock_wall_us(), &wait)) {
    case GITHUB_DONE:
        hear_done(call, h, http, unreadable);
        break;
    case GITHUB_MOVED:
        hear_moved(call, h);
        break;
    case GITHUB_AGAIN:
        set_error(call, h, github_status_kind(h->answer.status), &error);
        try_again(call, &h->answer, wait, error);
        break;
    case GITHUB_HELD:
        hear_limit(call, h, wait);
        break;
    case GITHUB_FAILED:
        hear_failed(call, h);
        break;
    }
}

void
call_heard(GithubCall *call, HttpCall *http, int status, const GError *error)
{
    GithubClient *client = call->client;
    g_auto(Heard) h = {.answer = {.status = status}};
    gint64 now = client_now_us(client);

    /* Whoever is called back may start calls, and free the client. */
    client_ref(client);
    client->pumping = true;
    client->reading -= !call->writes_now;
    if (call->writes_now) {
        client->writing = false;
        client->write_ok_us = now + (gint64)client->spec.write_pause_ms * 1000;
    }
    if (call->too_much) {
        g_autoptr(GError) much = NULL;

        err_set(&much, ERR_LIMIT, "%s: an answer of more than %d MiB", client->spec.base_url,
                GITHUB_ANSWER_MAX >> 20);
        call_fail(call, NULL, much);
    } else if (error != NULL) {
        hear_broken(call, error);
    } else {
        read_headers(&h, http);
        github_budget_note(&client->budget, &h.headers, now, clock_wall_us());
        judge(call, &h, http);
    }
    client->pumping = client->is_freed;
    client_pump(client);
    client_unref(client);
}
