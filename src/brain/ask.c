/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/ask.h"

#include <sodium.h>
#include <string.h>

#include "base/err.h"

void
ask_free(Ask *ask)
{
    if (ask == NULL)
        return;
    json_decref(ask->body);
    g_free(ask->model);
    g_free(ask);
}

static void
drop_work(void *data)
{
    ask_free(data);
}

static void
drop_done(void *data)
{
    /* It is gone. */
}

void
ask_drop(Ask *ask, Loop *loop)
{
    if (ask == NULL || ask->values <= ASK_DROP_INLINE_MAX)
        ask_free(ask);
    else
        loop_offload(loop, drop_work, drop_done, ask);
}

static bool
read_model(Ask *ask, GError **error)
{
    Json *model = json_object_get(ask->body, "model");

    if (!json_is_string(model))
        return err_set(error, ERR_INVALID, "'model' must be a string");
    if (strlen(json_string_value(model)) != json_string_length(model) ||
        !route_model_is_plain(json_string_value(model)))
        return err_set(error, ERR_INVALID, "'model' is not a model's name");
    ask->model = g_strdup(json_string_value(model));
    return true;
}

static bool
read_stream(Ask *ask, GError **error)
{
    Json *stream = json_object_get(ask->body, "stream");

    if (stream != NULL && !json_is_boolean(stream) && !json_is_null(stream))
        return err_set(error, ERR_INVALID, "'stream' must be true or false");
    if (json_is_true(stream) && !ask->route->streams)
        return err_set(error, ERR_INVALID, "this path has no streams");
    ask->stream = json_is_true(stream);
    return true;
}

static bool
read_count(Json *body, const char *name, guint64 *ret, GError **error)
{
    Json *value = json_object_get(body, name);

    if (value == NULL || json_is_null(value))
        return true;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > ASK_OUTPUT_MAX)
        return err_set(error, ERR_INVALID, "'%s' must be a number from 0 to %d", name, ASK_OUTPUT_MAX);
    *ret = (guint64)json_integer_value(value);
    return true;
}

/* How much the answer may cost at most: the client's own bound, for each of its choices.  Of
 * several the highest: which one a provider obeys is its own business. */
static bool
read_bounds(Ask *ask, GError **error)
{
    static const char *const names[] = {"max_tokens", "max_completion_tokens", "max_output_tokens"};
    guint64 most = 0, choices = 1;
    bool is_bound = false;

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        guint64 count = G_MAXUINT64;

        if (!read_count(ask->body, names[i], &count, error))
            return false;
        if (count == G_MAXUINT64)
            continue;
        is_bound = true;
        most = MAX(most, count);
    }
    if (!read_count(ask->body, "n", &choices, error))
        return false;
    if (!is_bound)
        most = ask->route->streams ? ASK_OUTPUT_DEFAULT : 0;
    ask->max_output = most * MAX(choices, 1);
    return true;
}

/* Without this chunk a stream of chat completions does not say what it used. */
static bool
want_usage(Ask *ask, GError **error)
{
    Json *options = json_object_get(ask->body, "stream_options");

    if (!ask->stream || ask->route->kind != ROUTE_CHAT)
        return true;
    if (options == NULL || json_is_null(options)) {
        options = json_object();
        json_object_set_new(ask->body, "stream_options", options);
    }
    if (!json_is_object(options))
        return err_set(error, ERR_INVALID, "'stream_options' must be an object");
    ask->adds_usage = !json_is_true(json_object_get(options, "include_usage"));
    json_object_set_new(options, "include_usage", json_true());
    return true;
}

Ask *
ask_new(const Route *route, const void *bytes, size_t n, GError **error)
{
    g_autoptr(Ask) ask = g_new0(Ask, 1);

    ask->route = route;
    ask->bytes = n;
    ask->body = json_decode_foreign(bytes, n, ASK_VALUES_MAX, &ask->values, error);
    if (ask->body == NULL)
        return NULL;
    if (!json_is_object(ask->body)) {
        err_set(error, ERR_INVALID, "the body must be a JSON object");
        return NULL;
    }
    if (!read_model(ask, error) || !read_stream(ask, error) || !read_bounds(ask, error) ||
        !ask_check_state(route->kind, ask->body, error) || !want_usage(ask, error))
        return NULL;
    /* Left out, it means true to the provider. */
    if (route->kind == ROUTE_RESPONSES)
        json_object_set_new(ask->body, "store", json_false());
    return g_steal_pointer(&ask);
}

Ask *
ask_new_get(const Route *route, const char *model)
{
    Ask *ask = g_new0(Ask, 1);

    ask->route = route;
    ask->model = g_strdup(model);
    return ask;
}

char *
ask_encode(Ask *ask, const char *model)
{
    json_object_set_new(ask->body, "model", json_string(model));
    return json_encode(ask->body);
}

void
ask_digest(const Ask *ask, guint8 ret_digest[ASK_DIGEST_LEN])
{
    static const char *const left_out[] = {"metadata", "client_metadata", "user", "safety_identifier",
                                           "prompt_cache_key"};
    crypto_generichash_state state;
    g_autoptr(Json) body = ask->body != NULL ? json_copy(ask->body) : json_object();

    for (size_t i = 0; i < G_N_ELEMENTS(left_out); i++)
        json_object_del(body, left_out[i]);
    g_autofree char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
    const char *model = ask->body == NULL && ask->model != NULL ? ask->model : "";

    crypto_generichash_init(&state, NULL, 0, ASK_DIGEST_LEN);
    crypto_generichash_update(&state, (const guint8 *)ask->route->path, strlen(ask->route->path) + 1);
    crypto_generichash_update(&state, (const guint8 *)model, strlen(model) + 1);
    crypto_generichash_update(&state, (const guint8 *)text, strlen(text));
    crypto_generichash_final(&state, ret_digest, ASK_DIGEST_LEN);
}
