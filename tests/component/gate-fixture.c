/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-fixture.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* ---- the gate ---- */

static void
on_fact(Json *fact, void *ctx)
{
    g_ptr_array_add(((GateFixture *)ctx)->facts, fact);
}

static bool
may_tell(void *ctx)
{
    return !((GateFixture *)ctx)->log_is_full;
}

static void
on_request(HttpRequest *request, void *data)
{
    GateFixture *g = data;
    const GateCaller caller = {.box = g->box != NULL ? g->box : FIXTURE_BOX,
                               .agent = "coder-1",
                               .task = "task-1",
                               .squad = "squad-1",
                               .breaker = g->breaker};

    if (gate_owns(http_request_path(request)))
        gate_handle(g->gate, request, &caller);
    else
        http_respond_text(request, 404, "text/plain", "not the gate's\n");
}

void
gate_fixture_init(GateFixture *g, const GateTimes *times, const char *recordings)
{
    g_autoptr(GError) error = NULL;

    *g = (GateFixture){.recordings = g_strdup(recordings)};
    fixture_init_handler(&g->door, NULL, on_request, g);
    g->budgets = budgets_new();
    g->prices = price_table_new(&error);
    g_assert_no_error(error);
    g->breaker = breaker_new();
    g->facts = g_ptr_array_new_with_free_func((GDestroyNotify)json_decref);
    GateSpec spec = {
        .loop = g->door.loop,
        .budgets = g->budgets,
        .prices = g->prices,
        .recordings = g->recordings,
        .tell = on_fact,
        .may_tell = may_tell,
        .ctx = g,
        .times = {.retry_ms = FIXTURE_RETRY_MS},
    };
    if (times != NULL)
        spec.times = *times;
    g->gate = gate_new(&spec);
}

void
gate_fixture_clear(GateFixture *g)
{
    gate_free(g->gate);
    fixture_clear(&g->door);
    budgets_free(g->budgets);
    price_table_free(g->prices);
    breaker_free(g->breaker);
    g_ptr_array_unref(g->facts);
    g_free(g->recordings);
}

void
gate_fixture_provider(GateFixture *g, const char *json, const char *script)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) object = json_decode(json, strlen(json), &error);

    g_assert_no_error(error);
    g_autoptr(Provider) provider = provider_new(object, &error);
    g_assert_no_error(error);
    provider_take_key(provider, g_strdup(FIXTURE_KEY));
    gate_set_provider(g->gate, provider, script, &error);
    g_assert_no_error(error);
}

guint
gate_fixture_facts(GateFixture *g, const char *kind)
{
    guint n = 0;

    for (guint i = 0; i < g->facts->len; i++)
        n += strcmp(json_string_value(json_object_get(g->facts->pdata[i], "kind")), kind) == 0;
    return n;
}

Json *
gate_fixture_fact(GateFixture *g, const char *kind)
{
    for (guint i = g->facts->len; i > 0; i--) {
        Json *fact = g->facts->pdata[i - 1];

        if (strcmp(json_string_value(json_object_get(fact, "kind")), kind) == 0)
            return fact;
    }
    g_error("no fact of kind %s was told", kind);
}

/* ---- a client ---- */

static char *
make_post(const char *path, const char *headers, const char *body)
{
    return g_strdup_printf("POST %s HTTP/1.1\r\nHost: door\r\nConnection: close\r\nContent-Length: "
                           "%zu\r\n%s\r\n%s",
                           path, strlen(body), headers, body);
}

char *
gate_post(GateFixture *g, const char *path, const char *headers, const char *body)
{
    g_autofree char *request = make_post(path, headers, body);

    return client_ask(&g->door, request);
}

char *
gate_get(GateFixture *g, const char *target)
{
    g_autofree char *request = g_strdup_printf("GET %s HTTP/1.1\r\nHost: door\r\nConnection: close\r\n\r\n",
                                               target);

    return client_ask(&g->door, request);
}

int
gate_post_begin(GateFixture *g, const char *path, const char *body)
{
    g_autofree char *request = make_post(path, "", body);
    int fd = fixture_connect(&g->door);

    client_sends(fd, request);
    return fd;
}

char *
gate_body(const char *answer)
{
    const char *body = answer_body(answer);
    GString *out = g_string_new(NULL);

    if (strstr(answer, "Transfer-Encoding: chunked") == NULL)
        return g_string_free(g_string_append(out, body), FALSE);
    for (const char *last = body + strlen(body);;) {
        char *end;
        guint64 n = g_ascii_strtoull(body, &end, 16);

        if (n == 0 || (guint64)(last - end) < n + 4)
            return g_string_free(out, FALSE);
        g_string_append_len(out, end + 2, (gssize)n);
        body = end + 2 + n + 2;
    }
}

/* ---- a provider ---- */

typedef struct Pieces {
    Upstream *u;
    HttpRequest *request;
    guint at;
} Pieces;

static gboolean
wake(gpointer data)
{
    http_request_wake(data);
    http_request_unref(data);
    return G_SOURCE_REMOVE;
}

static HttpPull
pull_piece(void *ctx, Buf *out)
{
    Pieces *p = ctx;
    const char *piece = p->u->stream[p->at];

    if (piece == NULL)
        return p->u->hold ? HTTP_PULL_WAIT : HTTP_PULL_END;
    g_assert_true(buf_puts(out, piece));
    p->at++;
    p->u->sent++;
    return HTTP_PULL_DATA;
}

static void
pieces_closed(void *ctx)
{
    Pieces *p = ctx;

    p->u->gone += p->u->stream[p->at] != NULL || p->u->hold;
    if (p->u->open == p->request)
        p->u->open = NULL;
    http_request_unref(p->request);
    g_free(p);
}

static void
answer(Upstream *u, HttpRequest *request, int status)
{
    static const HttpSource source = {.pull = pull_piece, .closed = pieces_closed};

    if (u->header != NULL) {
        g_auto(GStrv) parts = g_strsplit(u->header, ": ", 2);

        http_response_header(request, parts[0], parts[1]);
    }
    if (u->stream == NULL || status != 200) {
        http_respond_text(request, status, u->type != NULL ? u->type : "application/json",
                          u->answer != NULL ? u->answer : "{}");
        return;
    }
    Pieces *p = g_new0(Pieces, 1);
    *p = (Pieces){u, http_request_ref(request), 0};
    u->open = request;
    http_respond_stream(request, status, u->type != NULL ? u->type : "text/event-stream", -1, &source, p);
    g_idle_add(wake, http_request_ref(request));
}

static void
on_body(HttpRequest *request, const guint8 *body, size_t n, const GError *error, void *data)
{
    Upstream *u = data;

    if (error != NULL)
        return;
    g_free(u->body);
    u->body = g_strndup((const char *)body, n);
    u->calls++;
    if (u->calls <= u->fail_first)
        answer(u, request, u->fail_status);
    else
        answer(u, request, u->status > 0 ? u->status : 200);
}

static void
on_call(HttpRequest *request, void *data)
{
    Upstream *u = data;

    g_free(u->method);
    g_free(u->target);
    u->method = g_strdup(http_request_method(request));
    u->target = g_strdup(http_request_target(request));
    g_string_truncate(u->headers, 0);
    for (guint i = 0; i < http_request_headers(request); i++) {
        const char *name, *value;

        http_request_header_at(request, i, &name, &value);
        g_autofree char *low = g_ascii_strdown(name, -1);
        g_string_append_printf(u->headers, "%s: %s\n", low, value);
    }
    http_request_read_all(request, 64 * MIB, on_body, u);
}

void
upstream_init(Upstream *u)
{
    *u = (Upstream){.headers = g_string_new(NULL)};
    fixture_init_handler(&u->server, NULL, on_call, u);
}

void
upstream_clear(Upstream *u)
{
    fixture_clear(&u->server);
    g_string_free(u->headers, TRUE);
    g_free(u->method);
    g_free(u->target);
    g_free(u->body);
}

char *
upstream_provider(const Upstream *u, const char *kind, const char *extra)
{
    return g_strdup_printf("{\"name\":\"up\",\"kind\":\"%s\",\"base_url\":\"http://127.0.0.1:%u/v1\"%s}",
                           kind, u->server.port, extra);
}

/* ---- both ---- */

void
gate_world_init(GateWorld *w, const char *kind)
{
    gate_fixture_init(&w->g, NULL, NULL);
    upstream_init(&w->u);
    g_autofree char *json = upstream_provider(&w->u, kind, "");
    gate_fixture_provider(&w->g, json, NULL);
}

void
gate_world_clear(GateWorld *w)
{
    gate_fixture_clear(&w->g);
    upstream_clear(&w->u);
}

gint64
fact_number(Json *fact, const char *name)
{
    Json *value = json_object_get(fact, name);

    g_assert_true(json_is_integer(value));
    return json_integer_value(value);
}

const char *
fact_text(Json *fact, const char *name)
{
    return json_string_value(json_object_get(fact, name));
}
