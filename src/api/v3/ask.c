/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/ask.h"

#include <string.h>

#include "api/repos.h"
#include "api/state.h"
#include "base/err.h"

V3Ask *
v3_ask_of(ApiCall *call, gint64 number, const char *resource, int status, V3Render render)
{
    Repo *repo = call_repo(call);

    if (repo == NULL)
        return NULL;
    V3Ask *ask = g_new0(V3Ask, 1);

    *ask = (V3Ask){.call = call,
                   .repo = repo_ref(repo),
                   .resource = resource,
                   .status = status,
                   .render = render,
                   .number = number};
    v3_read_page(call, &ask->page);
    http_request_ref(call->request);
    return ask;
}

V3Ask *
v3_ask_new(ApiCall *call, const char *resource, int status, V3Render render)
{
    gint64 number = 0;

    return call_param(call, "number") == NULL || v3_param_int(call, "number", &number)
               ? v3_ask_of(call, number, resource, status, render)
               : NULL;
}

void
v3_ask_free(V3Ask *ask)
{
    repo_unref(ask->repo);
    http_request_unref(ask->call->request);
    g_free(ask);
}

void
v3_ask_fail(V3Ask *ask, const GError *error)
{
    ErrKind kind = err_kind(error);

    if (kind == ERR_CONFLICT || kind == ERR_LIMIT || kind == ERR_INVALID)
        v3_respond_invalid(ask->call, &(V3Invalid){ask->resource, NULL, "custom", error->message});
    else
        call_respond_error(ask->call, error);
    v3_ask_free(ask);
}

Json *
v3_ask_render(const V3Ask *ask, V3Render render, const Json *row)
{
    g_auto(V3Place) place = {0};
    RepoInfo info;

    v3_place_init(&place, ask->call->api, ask->repo);
    repo_info(ask->repo, &info);
    return render(&(V3Scene){&place, &info}, row);
}

void
v3_ask_on_row(Json *row, const GError *error, void *data)
{
    V3Ask *ask = data;

    if (error != NULL) {
        v3_ask_fail(ask, error);
        return;
    }
    v3_respond(ask->call, ask->status, v3_ask_render(ask, ask->render, row));
    v3_ask_free(ask);
}

void
v3_ask_on_list(Json *list, const GError *error, void *data)
{
    V3Ask *ask = data;
    g_auto(V3Place) place = {0};
    RepoInfo info;

    if (error != NULL) {
        v3_ask_fail(ask, error);
        return;
    }
    v3_place_init(&place, ask->call->api, ask->repo);
    repo_info(ask->repo, &info);
    v3_link(ask->call, &ask->page, row_int(list, "total"));
    v3_respond(ask->call, ask->status,
               v3_each(&(V3Scene){&place, &info}, json_object_get(list, "items"), ask->render));
    v3_ask_free(ask);
}

void
v3_ask_on_gone(Json *value, const GError *error, void *data)
{
    V3Ask *ask = data;

    if (error != NULL) {
        v3_ask_fail(ask, error);
        return;
    }
    v3_respond_empty(ask->call);
    v3_ask_free(ask);
}

const char **
v3_read_names(ApiCall *call, const Json *array, const char *resource, const char *field)
{
    g_autofree const char **names = g_new0(const char *, json_array_size(array) + 1);
    size_t i;
    Json *item;

    json_array_foreach(array, i, item)
    {
        names[i] = json_string_value(json_is_object(item) ? json_object_get(item, "name") : item);
        if (names[i] == NULL) {
            v3_respond_invalid(call, &(V3Invalid){resource, field, "invalid", "each must be a string"});
            return NULL;
        }
    }
    return g_steal_pointer(&names);
}

bool
v3_read_body(ApiCall *call, Json *body, const char *resource, const char **ret_text)
{
    const JsonField fields[] = {{"body", JSON_KIND_STRING, ret_text, true, 1, G_MAXINT32}, {NULL}};

    return v3_read_fields(call, body, fields, resource);
}

/* ---- the query ---- */

static bool
refuse(ApiCall *call, const char *resource, const char *name)
{
    v3_respond_invalid(call, &(V3Invalid){resource, name, "invalid", NULL});
    return false;
}

bool
v3_query_word(ApiCall *call, const char *resource, const char *name, const char *const *words, guint *ret)
{
    g_autofree char *value = NULL;

    if (!v3_query(call, name, &value))
        return false;
    if (value == NULL)
        return true;
    for (guint i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], value) == 0) {
            *ret = i;
            return true;
        }
    }
    return refuse(call, resource, name);
}

bool
v3_query_time(ApiCall *call, const char *resource, const char *name, gint64 *ret_us)
{
    g_autofree char *value = NULL;

    if (!v3_query(call, name, &value))
        return false;
    if (value == NULL)
        return true;
    g_autoptr(GTimeZone) utc = g_time_zone_new_utc();
    g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(value, utc);

    if (time == NULL)
        return refuse(call, resource, name);
    *ret_us = g_date_time_to_unix(time) * G_USEC_PER_SEC;
    return true;
}

bool
v3_query_sort(ApiCall *call, const char *resource, const char *const *sorts, guint *ret_sort,
              bool *ret_ascending)
{
    static const char *const directions[] = {"desc", "asc", NULL};
    guint direction = *ret_ascending;

    if (!v3_query_word(call, resource, "sort", sorts, ret_sort) ||
        !v3_query_word(call, resource, "direction", directions, &direction))
        return false;
    *ret_ascending = direction == 1;
    return true;
}
