/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "base/version.h"
#include "github/client-private.h"
#include "github/text.h"

static const char accept_json[] = "application/vnd.github+json";

static bool
on_data(HttpCall *http, const guint8 *bytes, size_t n, void *ctx)
{
    GithubCall *call = ctx;

    if (buf_put(&call->in, bytes, n))
        return true;
    /* Nothing more is read; `done` would wait for that. */
    call->too_much = true;
    call->http = NULL;
    http_call_cancel(http);
    call_heard(call, NULL, 0, NULL);
    return false;
}

static void
on_done(HttpCall *http, int status, const GError *error, void *ctx)
{
    GithubCall *call = ctx;

    call->http = NULL;
    call_heard(call, http, status, error);
}

const char github_path_graphql[] = "/graphql";

/* GitHub has it below its host, a GitHub of one's own beside the API. */
static char *
graphql_url(const char *base)
{
    static const char end[] = "/v3";
    size_t n = strlen(base) - (g_str_has_suffix(base, end) ? strlen(end) : 0);

    return g_strdup_printf("%.*s%s", (int)n, base, github_path_graphql);
}

char *
call_url(const GithubCall *call)
{
    const char *base = call->client->spec.base_url;

    if (call->phase == CALL_LOOKS)
        return g_strconcat(base, call->look_path != NULL ? call->look_path : call->look.path, NULL);
    if (strcmp(call->path, github_path_graphql) == 0)
        return graphql_url(base);
    return call->url != NULL ? g_strdup(call->url) : g_strconcat(base, call->path, NULL);
}

static void
add_header(GPtrArray *headers, const char *name, const char *value)
{
    g_ptr_array_add(headers, g_strconcat(name, ": ", value, NULL));
}

static void
add_token(const GithubCall *call, GPtrArray *headers)
{
    const GithubClientSpec *spec = &call->client->spec;
    char *token = spec->token != NULL ? spec->token(spec->ctx) : NULL;

    if (token == NULL)
        return;
    g_ptr_array_add(headers, g_strconcat("Authorization: Bearer ", token, NULL));
    github_wipe(token);
}

/* The first one may be the token's. */
static GPtrArray *
make_headers(const GithubCall *call)
{
    GPtrArray *headers = g_ptr_array_new_with_free_func((GDestroyNotify)github_wipe);
    const GithubCached *cached = call->phase == CALL_ACTS && call_is_read(call)
                                     ? github_cache_find(call->client->cache, call->path)
                                     : NULL;

    add_token(call, headers);
    add_header(headers, "Accept", call->accept != NULL ? call->accept : accept_json);
    add_header(headers, "X-GitHub-Api-Version", "2022-11-28");
    g_ptr_array_add(headers, g_strconcat("User-Agent: Coop/", version_number(), NULL));
    if (cached != NULL && call->accept == NULL)
        add_header(headers, "If-None-Match", cached->etag);
    if (call->body != NULL && !call_is_read(call))
        add_header(headers, "Content-Type", "application/json");
    if (!call_is_read(call))
        add_header(headers, "Connection", "close");
    g_ptr_array_add(headers, NULL);
    return headers;
}

bool
call_try(GithubCall *call, GError **error)
{
    static const HttpCallHandler handler = {.data = on_data, .done = on_done};
    GithubClient *client = call->client;
    g_autofree char *url = call_url(call);
    g_autoptr(GPtrArray) headers = make_headers(call);
    bool is_read = call_is_read(call);
    g_autofree char *body = !is_read && call->body != NULL ? json_encode(call->body) : NULL;
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    spec.method = is_read ? "GET" : call->method;
    spec.url = url;
    spec.headers = (const char *const *)headers->pdata;
    spec.body = body;
    spec.body_len = body != NULL ? strlen(body) : 0;
    spec.first_byte_ms = client->spec.timeout_ms > 0 ? client->spec.timeout_ms : (guint)GITHUB_TIMEOUT_MS;
    spec.stall_ms = spec.first_byte_ms;
    spec.total_ms = GITHUB_TOTAL_MS;
    buf_clear(&call->in);
    buf_init(&call->in, GITHUB_ANSWER_MAX);
    call->too_much = false;
    call->http = http_client_call(is_read ? client->reads : client->writes, &spec, &handler, call, error);
    if (call->http == NULL)
        return false;
    call->writes_now = !is_read;
    client->reading += is_read;
    client->writing |= !is_read;
    client->n_calls++;
    return true;
}
