/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/route.h"

#include <string.h>

#include "base/err.h"
#include "http/url.h"

#define OPENAI_PREFIX "/openai/"
#define ANTHROPIC_PREFIX "/anthropic/"

static const Route routes[] = {
    {ROUTE_CHAT, DIALECT_OPENAI, "POST", "/openai/v1/chat/completions", "/chat/completions", true, true,
     SHAPE_CHAT},
    {ROUTE_RESPONSES, DIALECT_OPENAI, "POST", "/openai/v1/responses", "/responses", true, true,
     SHAPE_RESPONSES},
    {ROUTE_EMBEDDINGS, DIALECT_OPENAI, "POST", "/openai/v1/embeddings", "/embeddings", true, false,
     SHAPE_CHAT},
    {ROUTE_MODELS, DIALECT_OPENAI, "GET", "/openai/v1/models", "/models", false, false, SHAPE_CHAT},
    {ROUTE_MODEL, DIALECT_OPENAI, "GET", "/openai/v1/models/", "/models/", false, false, SHAPE_CHAT},
    {ROUTE_MESSAGES, DIALECT_ANTHROPIC, "POST", "/anthropic/v1/messages", "/messages", true, true,
     SHAPE_MESSAGES},
    {ROUTE_COUNT_TOKENS, DIALECT_ANTHROPIC, "POST", "/anthropic/v1/messages/count_tokens",
     "/messages/count_tokens", false, false, SHAPE_MESSAGES},
    {ROUTE_MODELS, DIALECT_ANTHROPIC, "GET", "/anthropic/v1/models", "/models", false, false, SHAPE_MESSAGES},
    {ROUTE_MODEL, DIALECT_ANTHROPIC, "GET", "/anthropic/v1/models/", "/models/", false, false,
     SHAPE_MESSAGES},
};

/* What real clients also ask for, and what they are told.  Each of these keeps something at the
 * provider, where all boxes share one account. */
static const char *const stateful[] = {
    "/openai/v1/files",
    "/openai/v1/uploads",
    "/openai/v1/batches",
    "/openai/v1/assistants",
    "/openai/v1/threads",
    "/openai/v1/fine_tuning",
    "/openai/v1/vector_stores",
    "/openai/v1/containers",
    "/openai/v1/conversations",
    "/openai/v1/evals",
    "/openai/v1/responses/",
    "/openai/v1/chat/completions/",
    "/anthropic/v1/messages/batches",
    "/anthropic/v1/files",
    "/anthropic/v1/skills",
    "/anthropic/v1/organizations",
};

bool
route_model_is_plain(const char *model)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:/@+";
    size_t n = strlen(model);

    if (n == 0 || n > ROUTE_MODEL_NAME_MAX || strspn(model, allowed) != n)
        return false;
    g_auto(GStrv) segments = g_strsplit(model, "/", -1);
    for (char **s = segments; *s != NULL; s++) {
        if (**s == '\0' || **s == '.')
            return false;
    }
    return true;
}

char *
route_model(const Route *route, const char *path)
{
    const char *rest = path + strlen(route->path);
    g_autofree char *model = url_decode(rest, strlen(rest), false);

    if (model == NULL || !route_model_is_plain(model))
        return NULL;
    return g_steal_pointer(&model);
}

static bool
path_fits(const Route *route, const char *path)
{
    if (route->kind == ROUTE_MODEL)
        return g_str_has_prefix(path, route->path) && path[strlen(route->path)] != '\0';
    return strcmp(route->path, path) == 0;
}

static const Route *
find_by_path(const char *path)
{
    for (size_t i = 0; i < G_N_ELEMENTS(routes); i++) {
        if (path_fits(&routes[i], path))
            return &routes[i];
    }
    return NULL;
}

static bool
is_stateful(const char *path)
{
    for (size_t i = 0; i < G_N_ELEMENTS(stateful); i++) {
        if (g_str_has_prefix(path, stateful[i]))
            return true;
    }
    return false;
}

const Route *
route_find(HttpRequest *request, Dialect *ret_dialect, Fault *ret_fault, const char **ret_message)
{
    const char *path = http_request_path(request);
    const Route *route = find_by_path(path);

    *ret_dialect = g_str_has_prefix(path, ANTHROPIC_PREFIX) ? DIALECT_ANTHROPIC : DIALECT_OPENAI;
    if (route == NULL && is_stateful(path)) {
        *ret_fault = FAULT_STATEFUL;
        *ret_message = "this gateway keeps nothing at a provider: files, batches, threads, stored responses "
                       "and the like are refused";
        return NULL;
    }
    if (route == NULL) {
        *ret_fault = FAULT_PATH;
        *ret_message = "the gateway has no such path";
        return NULL;
    }
    if (http_request_header(request, "Upgrade") != NULL) {
        *ret_fault = FAULT_UPGRADE;
        *ret_message = "the gateway speaks plain HTTP here: send a POST";
        return NULL;
    }
    if (strcmp(http_request_method(request), route->method) != 0) {
        *ret_fault = FAULT_METHOD;
        *ret_message = "this path has another method";
        return NULL;
    }
    return route;
}

/* Only what is known to be harmless, and only with values that need no escape. */
char *
route_query(const Route *route, const char *query, GError **error)
{
    static const char *const names[] = {"beta", "limit", "after_id", "before_id", NULL};
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    g_autoptr(GString) out = g_string_new(NULL);

    if (!url_query_only(query, names, error))
        return NULL;
    for (const char *const *name = names; *name != NULL; name++) {
        g_autofree char *value = NULL;

        if (!url_query_get(query, *name, &value, error))
            return NULL;
        if (value == NULL)
            continue;
        if (route->dialect != DIALECT_ANTHROPIC || strspn(value, allowed) != strlen(value)) {
            err_set(error, ERR_INVALID, "the query parameter '%s' is not passed on here", *name);
            return NULL;
        }
        g_string_append_printf(out, "%c%s=%s", out->len == 0 ? '?' : '&', *name, value);
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}
