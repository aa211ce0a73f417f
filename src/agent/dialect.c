/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/dialect.h"

#include <string.h>

#include "base/err.h"

struct Stream {
    const Dialect *dialect;
    Answer *answer;
    SseDecoder *decoder;
    GError *error; /* of an event; the rest is not looked at */
};

const Dialect *
dialect_find(const char *name)
{
    static const Dialect *const all[] = {&dialect_openai, &dialect_anthropic};

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        if (g_strcmp0(all[i]->name, name) == 0)
            return all[i];
    }
    return NULL;
}

static void
on_event(const SseEvent *event, void *data)
{
    Stream *s = data;

    if (s->error == NULL && event->data_len > 0)
        (void)s->dialect->on_event(s->answer, event, &s->error); /* stream_feed() looks at the error */
}

Stream *
stream_new(const Dialect *dialect, Answer *answer)
{
    Stream *s = g_new0(Stream, 1);

    s->dialect = dialect;
    s->answer = answer;
    s->decoder = sse_decoder_new(STREAM_EVENT_MAX, on_event, s);
    return s;
}

void
stream_free(Stream *stream)
{
    if (stream == NULL)
        return;
    sse_decoder_free(stream->decoder);
    g_clear_error(&stream->error);
    g_free(stream);
}

bool
stream_feed(Stream *stream, const void *bytes, size_t n, GError **error)
{
    if (stream->error == NULL && !sse_decoder_feed(stream->decoder, bytes, n, error))
        return false;
    if (stream->error == NULL)
        return true;
    g_propagate_error(error, g_error_copy(stream->error));
    return false;
}

bool
dialect_read_error(Json *body, const char **ret_code, const char **ret_text)
{
    Json *inner = json_object_get(body, "error");
    const char *code = json_string_value(json_object_get(inner, "code"));

    if (inner == NULL || json_is_null(inner))
        return false;
    *ret_code = code != NULL ? code : json_string_value(json_object_get(inner, "type"));
    *ret_text = json_is_string(inner) ? json_string_value(inner)
                                      : json_string_value(json_object_get(inner, "message"));
    return true;
}

Json *
dialect_decode(const SseEvent *event, GError **error)
{
    Json *tree = json_decode_foreign(event->data, event->data_len, STREAM_EVENT_VALUES_MAX, NULL, error);

    if (tree == NULL)
        g_prefix_error(error, "the model's stream: ");
    return tree;
}

Json *
dialect_arguments(Json *call)
{
    const char *text = json_string_value(json_object_get(call, "arguments"));
    Json *tree = text != NULL ? json_decode(text, strlen(text), NULL) : NULL;

    if (json_is_object(tree))
        return tree;
    json_decref(tree);
    return json_object();
}

gint64
dialect_number(Json *object, const char *name)
{
    Json *value = json_object_get(object, name);

    return json_is_integer(value) ? MAX(json_integer_value(value), 0) : -1;
}
