/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "github/client-private.h"

/* Timers of equal length share a queue, so only these are used. */
static const guint ticks_ms[] = {10 * 60 * 1000, 60 * 1000, 10 * 1000, 1000, 100, 10};

gint64
client_now_us(const GithubClient *client)
{
    return client->spec.now_us != NULL ? client->spec.now_us(client->spec.ctx) : clock_mono_us();
}

guint32
client_random(const GithubClient *client)
{
    return client->spec.random != NULL ? client->spec.random(client->spec.ctx) : g_random_int();
}

const char *
client_below(const GithubClient *client, const char *url)
{
    size_t n = strlen(client->spec.base_url);

    return strncmp(url, client->spec.base_url, n) == 0 && url[n] == '/' ? url + n : NULL;
}

/* ---- the end of a call ---- */

static void
call_free(GithubCall *call)
{
    g_queue_unlink(&call->client->calls, &call->link);
    if (call->http != NULL)
        http_call_cancel(call->http);
    g_free(call->method);
    g_free(call->path);
    g_free(call->accept);
    g_free((gpointer)(guintptr)call->look.path);
    g_free((gpointer)(guintptr)call->look.member);
    g_free(call->look_path);
    g_free(call->url);
    json_decref(call->body);
    buf_clear(&call->in);
    g_free(call);
}

static void
end(GithubCall *call, const GithubAnswer *answer, const GError *error)
{
    GithubFunc done = call->done;
    void *data = call->data;

    call_free(call);
    done(answer, error, data);
}

void
call_finish(GithubCall *call, const GithubAnswer *answer)
{
    call->client->n_found += answer->found;
    end(call, answer, NULL);
}

void
call_fail(GithubCall *call, const GithubAnswer *answer, const GError *error)
{
    static const GithubAnswer nothing = {0};

    end(call, answer != NULL ? answer : &nothing, error);
}

static void
fail_for_limit(GithubCall *call, gint64 wait_us)
{
    g_autoptr(GError) error = NULL;

    err_set(&error, ERR_LIMIT, "%s: its limit is reached: again in %" G_GINT64_FORMAT " s",
            call->client->spec.base_url, (wait_us + G_USEC_PER_SEC - 1) / G_USEC_PER_SEC);
    call_fail(call, &(GithubAnswer){.wait_us = wait_us}, error);
}

/* ---- the queue ---- */

/* When it may go; what is only waiting for a place of its kind has G_MAXINT64, for the one that leaves
 * the place looks again. */
static gint64
ready_us(const GithubCall *call, gint64 now)
{
    const GithubClient *c = call->client;
    gint64 due = MAX(call->due_us, github_budget_due_us(&c->budget, c->reading + c->writing, now));

    if (call_is_read(call))
        return c->reading >= GITHUB_READS_MAX ? G_MAXINT64 : due;
    return c->writing ? G_MAXINT64 : MAX(due, c->write_ok_us);
}

/* Until when limits hold everybody, if that is longer than this one waits; else 0. */
static gint64
held_too_long_us(const GithubCall *call, gint64 now)
{
    const GithubClient *c = call->client;
    gint64 held = github_budget_due_us(&c->budget, c->reading + c->writing, now);

    return held > now && held - call->since_us > call->patience_us ? held : 0;
}

/* The first that is due or has to wait for longer than it likes; NULL: none.  Writes keep their order. */
static GithubCall *
next_call(GithubClient *client, gint64 now, gint64 *ret_due)
{
    bool write_waits = false;

    *ret_due = G_MAXINT64;
    for (GList *l = client->calls.head; l != NULL; l = l->next) {
        GithubCall *call = l->data;
        bool is_read = call_is_read(call);

        if (call->http != NULL || (!is_read && write_waits))
            continue;
        gint64 ready = ready_us(call, now);

        if (ready <= now || held_too_long_us(call, now) != 0)
            return call;
        write_waits |= !is_read;
        *ret_due = MIN(*ret_due, ready);
    }
    return NULL;
}

static void
arm(GithubClient *client, gint64 due_us, gint64 now_us)
{
    gint64 ms = (due_us - now_us + 999) / 1000;
    size_t i = 0;

    if (due_us == G_MAXINT64) {
        loop_timer_cancel(client->spec.loop, &client->tick);
        return;
    }
    while (i < G_N_ELEMENTS(ticks_ms) - 1 && (gint64)ticks_ms[i] > ms)
        i++;
    loop_timer_set(client->spec.loop, &client->tick, ticks_ms[i]);
}

static void
start(GithubCall *call)
{
    g_autoptr(GError) error = NULL;

    if (!call_try(call, &error))
        call_fail(call, NULL, error);
}

/* Whoever is called back may start calls and end in here again: the outer one goes on. */
void
client_pump(GithubClient *client)
{
    gint64 now = client_now_us(client), due;
    GithubCall *call;

    if (client->pumping)
        return;
    client_ref(client);
    client->pumping = true;
    while ((call = next_call(client, now, &due)) != NULL) {
        gint64 held = held_too_long_us(call, now);

        if (held != 0)
            fail_for_limit(call, held - now);
        else
            start(call);
    }
    client->pumping = client->is_freed;
    if (!client->is_freed)
        arm(client, due, now);
    client_unref(client);
}

static void
on_tick(LoopTimer *timer)
{
    client_pump((GithubClient *)((char *)timer - offsetof(GithubClient, tick)));
}

gint64
github_client_due_us(const GithubClient *client)
{
    gint64 now = client_now_us(client), due = G_MAXINT64;

    for (GList *l = client->calls.head; l != NULL; l = l->next) {
        const GithubCall *call = l->data;

        if (call->http == NULL)
            due = MIN(due, ready_us(call, now));
    }
    return due == G_MAXINT64 ? 0 : due;
}

void
github_client_wake(GithubClient *client)
{
    client_pump(client);
}

/* ---- calls ---- */

/* What sets a value may be said twice; what adds something may not. */
static bool
method_repeats(const char *method)
{
    return strcmp(method, "POST") != 0;
}

static GithubCall *
call_new(GithubClient *client, const GithubRequest *r)
{
    GithubCall *call = g_new0(GithubCall, 1);
    const char *method = r->method != NULL ? r->method : "GET";

    *call = (GithubCall){
        .client = client,
        .method = g_strdup(method),
        .path = g_strdup(r->path),
        .accept = g_strdup(r->accept),
        .body = r->body != NULL ? json_deep_copy(r->body) : NULL,
        .may_repeat = r->look == NULL && (r->repeatable || method_repeats(method)),
        .patience_us = (gint64)(r->patience_ms > 0 ? r->patience_ms : (guint)GITHUB_PATIENCE_MS) * 1000,
        .since_us = client_now_us(client),
    };
    if (r->look != NULL)
        call->look = (GithubLook){g_strdup(r->look->path), g_strdup(r->look->member), r->look->is_it};
    call->phase = r->look != NULL && r->look_first ? CALL_LOOKS : CALL_ACTS;
    call->link.data = call;
    buf_init(&call->in, GITHUB_ANSWER_MAX);
    return call;
}

typedef struct Refused {
    GithubFunc done;
    void *data;
    GError *error;
} Refused;

static gboolean
tell_refused(gpointer data)
{
    Refused *r = data;

    r->done(&(GithubAnswer){0}, r->error, r->data);
    g_error_free(r->error);
    g_free(r);
    return G_SOURCE_REMOVE;
}

static void
refuse(GithubFunc done, void *data, GError *error)
{
    Refused *r = g_new0(Refused, 1);

    *r = (Refused){done, data, error};
    g_idle_add(tell_refused, r);
}

void
github_call(GithubClient *client, const GithubRequest *request, GithubFunc done, void *data)
{
    GError *error = NULL;

    if (client->is_freed)
        err_set(&error, ERR_CANCELLED, "the client ends");
    else if (client->calls.length >= GITHUB_WAITING_MAX)
        err_set(&error, ERR_LIMIT, "%s: %d calls wait already", client->spec.base_url, GITHUB_WAITING_MAX);
    else if (request->path[0] != '/' || strlen(request->path) > GITHUB_PATH_MAX)
        err_set(&error, ERR_INVALID, "a path begins with '/' and has at most %d bytes", GITHUB_PATH_MAX);
    if (error != NULL) {
        refuse(done, data, error);
        return;
    }
    GithubCall *call = call_new(client, request);

    call->done = done;
    call->data = data;
    g_queue_push_tail_link(&client->calls, &call->link);
    /* Not from in here: it may fail at once. */
    loop_timer_set(client->spec.loop, &client->tick, 0);
}

/* ---- life ---- */

GithubClient *
github_client_new(const GithubClientSpec *spec)
{
    GithubClient *client = g_new0(GithubClient, 1);

    *client = (GithubClient){
        .refs = 1, .spec = *spec, .budget = GITHUB_BUDGET_INIT, .tick = {.expired = on_tick}};
    client->spec.base_url = g_strdup(spec->base_url);
    client->reads = http_client_new(NULL);
    client->writes = http_client_new(NULL);
    http_client_allow(client->reads, GITHUB_READS_MAX, GITHUB_READS_MAX);
    client->cache = github_cache_new(GITHUB_CACHE_ENTRIES, GITHUB_CACHE_BYTES);
    return client;
}

GithubClient *
client_ref(GithubClient *client)
{
    client->refs++;
    return client;
}

void
client_unref(GithubClient *client)
{
    if (--client->refs > 0)
        return;
    http_client_free(client->reads);
    http_client_free(client->writes);
    github_cache_free(client->cache);
    g_free((gpointer)(guintptr)client->spec.base_url);
    g_free(client);
}

void
github_client_free(GithubClient *client)
{
    g_autoptr(GError) error = NULL;
    GithubCall *call;

    if (client == NULL)
        return;
    err_set(&error, ERR_CANCELLED, "the client ends");
    client->is_freed = true;
    client->pumping = true;
    while ((call = g_queue_peek_head(&client->calls)) != NULL)
        call_fail(call, NULL, error);
    loop_timer_cancel(client->spec.loop, &client->tick);
    client_unref(client);
}

const char *
github_client_base(const GithubClient *client)
{
    return client->spec.base_url;
}

void
github_client_forget(GithubClient *client)
{
    github_cache_clear(client->cache);
    client->budget = (GithubBudget)GITHUB_BUDGET_INIT;
}

void
github_client_stats(const GithubClient *client, GithubStats *ret_stats)
{
    guint under_way = client->reading + client->writing;

    *ret_stats = (GithubStats){.budget = client->budget,
                               .waiting = client->calls.length - under_way,
                               .under_way = under_way,
                               .calls = client->n_calls,
                               .cached = client->n_cached,
                               .retries = client->n_retries,
                               .found = client->n_found};
}
