/* SPDX-License-Identifier: Apache-2.0 */
/* Chat completions, embeddings, and what the three APIs' answers have in common. */
#include <string.h>

#include "base/clock.h"
#include "brain/script-private.h"

enum { DIMENSIONS = 256, DIMENSIONS_MAX = 4096, INPUTS_MAX = 2048 };

char *
said_next_piece(const Said *said, const char **at)
{
    const char *end = *at;

    if (**at == '\0')
        return NULL;
    for (guint i = 0; i < said->chunk && *end != '\0'; i++)
        end += g_utf8_skip[(guchar)*end];
    char *piece = g_strndup(*at, (size_t)(end - *at));
    *at = end;
    return piece;
}

void
said_add_event(const Said *said, Tape *tape, const char *event, Json *object)
{
    g_autoptr(Json) taken = object;
    g_autofree char *text = json_encode(taken);
    g_autofree char *line = event != NULL ? g_strdup_printf("event: %s\ndata: %s\n\n", event, text)
                                          : g_strdup_printf("data: %s\n\n", text);

    tape_add(tape, tape->pieces->len == 0 ? said->first_ms : said->delay_ms, line, strlen(line));
}

Tape *
said_whole(const Said *said, Json *object)
{
    g_autoptr(Json) taken = object;
    g_autofree char *text = json_encode(taken);
    Tape *tape = tape_new(200, false);

    /* Half of it, where it shall break off. */
    tape_add(tape, said->first_ms, text, said->is_cut ? strlen(text) / 2 : strlen(text));
    tape->is_cut = said->is_cut;
    return tape;
}

static Json *
chat_usage(const Said *said)
{
    const Usage *u = &said->usage;
    guint64 input = u->input_tokens + u->cached_tokens;

    return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", (json_int_t)input, "completion_tokens",
                     (json_int_t)u->output_tokens, "total_tokens", (json_int_t)(input + u->output_tokens),
                     "prompt_tokens_details", "cached_tokens", (json_int_t)u->cached_tokens);
}

static const char *
chat_reason(const Said *said)
{
    return said->tools->len > 0 ? "tool_calls" : "stop";
}

static Json *
chat_object(const Said *said, const char *kind)
{
    Json *object = json_pack("{s:s, s:I, s:s}", "object", kind, "created",
                             (json_int_t)(clock_wall_us() / G_USEC_PER_SEC), "model", said->model);
    g_autofree char *id = g_strdup_printf("chatcmpl-%s", said->id);

    json_object_set_new(object, "id", json_string(id));
    return object;
}

static Json *
chat_call(const SaidTool *tool)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", tool->id, "type", "function", "function", "name",
                     tool->name, "arguments", tool->arguments);
}

static Json *
chat_whole(const Said *said)
{
    Json *object = chat_object(said, "chat.completion");
    Json *message = json_pack("{s:s, s:s?, s:n}", "role", "assistant", "content", said->text, "refusal");
    Json *calls = json_array();

    for (guint i = 0; i < said->tools->len; i++)
        json_array_append_new(calls, chat_call(said->tools->pdata[i]));
    if (said->tools->len > 0)
        json_object_set(message, "tool_calls", calls);
    json_decref(calls);
    json_object_set_new(object, "choices",
                        json_pack("[{s:i, s:o, s:s, s:n}]", "index", 0, "message", message, "finish_reason",
                                  chat_reason(said), "logprobs"));
    json_object_set_new(object, "usage", chat_usage(said));
    return object;
}

/* `delta` is taken; `reason` NULL: not the end. */
static void
chat_delta(const Said *said, Tape *tape, Json *delta, const char *reason)
{
    Json *object = chat_object(said, "chat.completion.chunk");

    json_object_set_new(object, "choices",
                        json_pack("[{s:i, s:o, s:s?}]", "index", 0, "delta", delta, "finish_reason", reason));
    said_add_event(said, tape, NULL, object);
}

static void
chat_stream_tool(const Said *said, Tape *tape, guint index, const SaidTool *tool)
{
    const char *at = tool->arguments;
    g_autofree char *piece = NULL;

    chat_delta(said, tape,
               json_pack("{s:[{s:i, s:s, s:s, s:{s:s, s:s}}]}", "tool_calls", "index", (int)index, "id",
                         tool->id, "type", "function", "function", "name", tool->name, "arguments", ""),
               NULL);
    while ((piece = said_next_piece(said, &at)) != NULL) {
        chat_delta(said, tape,
                   json_pack("{s:[{s:i, s:{s:s}}]}", "tool_calls", "index", (int)index, "function",
                             "arguments", piece),
                   NULL);
        g_clear_pointer(&piece, g_free);
    }
}

Tape *
render_chat(const Said *said, bool is_stream)
{
    const char *at = said->text != NULL ? said->text : "";
    g_autofree char *piece = NULL;

    if (!is_stream)
        return said_whole(said, chat_whole(said));
    Tape *tape = tape_new(200, true);
    chat_delta(said, tape, json_pack("{s:s, s:s}", "role", "assistant", "content", ""), NULL);
    while ((piece = said_next_piece(said, &at)) != NULL) {
        chat_delta(said, tape, json_pack("{s:s}", "content", piece), NULL);
        g_clear_pointer(&piece, g_free);
    }
    for (guint i = 0; i < said->tools->len; i++)
        chat_stream_tool(said, tape, i, said->tools->pdata[i]);
    tape->is_cut = said->is_cut;
    if (said->is_cut)
        return tape;
    chat_delta(said, tape, json_object(), chat_reason(said));
    /* The gate asks for this chunk always, and keeps it from who did not. */
    Json *last = chat_object(said, "chat.completion.chunk");
    json_object_set_new(last, "choices", json_array());
    json_object_set_new(last, "usage", chat_usage(said));
    said_add_event(said, tape, NULL, last);
    tape_add(tape, 0, "data: [DONE]\n\n", strlen("data: [DONE]\n\n"));
    return tape;
}

/* ---- embeddings: numbers that depend on the text, and mean nothing ---- */

static Json *
embedding(const char *text, guint n, bool base64)
{
    g_autofree float *values = g_new(float, n);
    guint32 state = g_str_hash(text);

    for (guint i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)state / (float)G_MAXUINT32 - 0.5f;
    }
    if (base64) {
        g_autofree char *encoded = g_base64_encode((const guint8 *)values, n * sizeof(float));

        return json_string(encoded);
    }
    Json *array = json_array();
    for (guint i = 0; i < n; i++)
        json_array_append_new(array, json_real((double)values[i]));
    return array;
}

Tape *
render_embeddings(const Said *said, Json *body)
{
    Json *input = json_object_get(body, "input");
    Json *dimensions = json_object_get(body, "dimensions");
    bool base64 = g_strcmp0(json_string_value(json_object_get(body, "encoding_format")), "base64") == 0;
    guint n = json_is_integer(dimensions)
                  ? (guint)CLAMP(json_integer_value(dimensions), 1, (json_int_t)DIMENSIONS_MAX)
                  : DIMENSIONS;
    size_t inputs = json_is_array(input) ? MIN(json_array_size(input), (size_t)INPUTS_MAX) : 1;
    Json *data = json_array();

    for (size_t i = 0; i < inputs; i++) {
        g_autofree char *text = json_encode(json_is_array(input) ? json_array_get(input, i) : input);

        json_array_append_new(data, json_pack("{s:s, s:i, s:o}", "object", "embedding", "index", (int)i,
                                              "embedding", embedding(text, n, base64)));
    }
    json_int_t tokens = (json_int_t)said->usage.input_tokens;
    return said_whole(said,
                      json_pack("{s:s, s:o, s:s, s:{s:I, s:I}}", "object", "list", "data", data, "model",
                                said->model, "usage", "prompt_tokens", tokens, "total_tokens", tokens));
}
