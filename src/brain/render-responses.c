/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "brain/script-private.h"

/* A stream of OpenAI's responses API under way. */
typedef struct Stream {
    const Said *said;
    Tape *tape;
    guint number; /* of the next event */
} Stream;

static Json *
text_part(const char *text)
{
    return json_pack("{s:s, s:s, s:[]}", "type", "output_text", "text", text, "annotations");
}

/* `text` NULL: nothing of it yet. */
static Json *
message_item(const Said *said, const char *text)
{
    g_autofree char *id = g_strdup_printf("msg_%s", said->id);
    Json *content = json_array();

    if (text != NULL)
        json_array_append_new(content, text_part(text));
    return json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", id, "type", "message", "status",
                     text != NULL ? "completed" : "in_progress", "role", "assistant", "content", content);
}

static Json *
call_item(const SaidTool *tool, const char *arguments)
{
    g_autofree char *id = g_strdup_printf("fc_%s", tool->id);

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "id", id, "type", "function_call", "status",
                     *arguments != '\0' ? "completed" : "in_progress", "call_id", tool->id, "name",
                     tool->name, "arguments", arguments);
}

static Json *
output_items(const Said *said)
{
    Json *output = json_array();

    if (said->text != NULL)
        json_array_append_new(output, message_item(said, said->text));
    for (guint i = 0; i < said->tools->len; i++) {
        const SaidTool *tool = said->tools->pdata[i];

        json_array_append_new(output, call_item(tool, tool->arguments));
    }
    return output;
}

static Json *
response_object(const Said *said, bool complete)
{
    const Usage *u = &said->usage;
    guint64 input = u->input_tokens + u->cached_tokens;
    g_autofree char *id = g_strdup_printf("resp_%s", said->id);
    Json *object = json_pack(
        "{s:s, s:s, s:I, s:s, s:s, s:n, s:n, s:n, s:{}, s:b, s:[], s:s, s:b}", "id", id, "object", "response",
        "created_at", (json_int_t)(clock_wall_us() / G_USEC_PER_SEC), "status",
        complete ? "completed" : "in_progress", "model", said->model, "error", "incomplete_details",
        "instructions", "metadata", "parallel_tool_calls", 1, "tools", "tool_choice", "auto", "store", 0);

    json_object_set_new(object, "output", complete ? output_items(said) : json_array());
    json_object_set_new(
        object, "usage",
        !complete ? json_null()
                  : json_pack("{s:I, s:{s:I}, s:I, s:{s:i}, s:I}", "input_tokens", (json_int_t)input,
                              "input_tokens_details", "cached_tokens", (json_int_t)u->cached_tokens,
                              "output_tokens", (json_int_t)u->output_tokens, "output_tokens_details",
                              "reasoning_tokens", 0, "total_tokens", (json_int_t)(input + u->output_tokens)));
    return object;
}

/* `object` is taken. */
static void
emit(Stream *s, const char *type, Json *object)
{
    json_object_set_new(object, "type", json_string(type));
    json_object_set_new(object, "sequence_number", json_integer((json_int_t)s->number++));
    said_add_event(s->said, s->tape, type, object);
}

static void
emit_item(Stream *s, const char *type, guint index, Json *item)
{
    emit(s, type, json_pack("{s:i, s:o}", "output_index", (int)index, "item", item));
}

/* A piece, or all, of what an item says. */
static void
emit_text(Stream *s, const char *type, guint index, const char *item_id, const char *member, const char *text)
{
    emit(s, type,
         json_pack("{s:i, s:i, s:s, s:s}", "output_index", (int)index, "content_index", 0, "item_id", item_id,
                   member, text));
}

static void
stream_pieces(Stream *s, const char *type, guint index, const char *item_id, const char *text)
{
    g_autofree char *piece = NULL;

    while ((piece = said_next_piece(s->said, &text)) != NULL) {
        emit_text(s, type, index, item_id, "delta", piece);
        g_clear_pointer(&piece, g_free);
    }
}

static void
emit_part(Stream *s, const char *type, guint index, const char *item_id, const char *text)
{
    emit(s, type,
         json_pack("{s:i, s:i, s:s, s:o}", "output_index", (int)index, "content_index", 0, "item_id", item_id,
                   "part", text_part(text)));
}

static void
stream_message(Stream *s, guint index)
{
    g_autofree char *id = g_strdup_printf("msg_%s", s->said->id);

    emit_item(s, "response.output_item.added", index, message_item(s->said, NULL));
    emit_part(s, "response.content_part.added", index, id, "");
    stream_pieces(s, "response.output_text.delta", index, id, s->said->text);
    if (s->said->is_cut)
        return;
    emit_text(s, "response.output_text.done", index, id, "text", s->said->text);
    emit_part(s, "response.content_part.done", index, id, s->said->text);
    emit_item(s, "response.output_item.done", index, message_item(s->said, s->said->text));
}

static void
stream_call(Stream *s, guint index, const SaidTool *tool)
{
    g_autofree char *id = g_strdup_printf("fc_%s", tool->id);

    emit_item(s, "response.output_item.added", index, call_item(tool, ""));
    stream_pieces(s, "response.function_call_arguments.delta", index, id, tool->arguments);
    if (s->said->is_cut)
        return;
    emit_text(s, "response.function_call_arguments.done", index, id, "arguments", tool->arguments);
    emit_item(s, "response.output_item.done", index, call_item(tool, tool->arguments));
}

Tape *
render_responses(const Said *said, bool is_stream)
{
    Stream s = {.said = said};
    guint index = 0;

    if (!is_stream)
        return said_whole(said, response_object(said, true));
    s.tape = tape_new(200, true);
    emit(&s, "response.created", json_pack("{s:o}", "response", response_object(said, false)));
    emit(&s, "response.in_progress", json_pack("{s:o}", "response", response_object(said, false)));
    if (said->text != NULL)
        stream_message(&s, index++);
    for (guint i = 0; i < said->tools->len; i++)
        stream_call(&s, index++, said->tools->pdata[i]);
    s.tape->is_cut = said->is_cut;
    if (!said->is_cut)
        emit(&s, "response.completed", json_pack("{s:o}", "response", response_object(said, true)));
    return s.tape;
}
