/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "brain/script-private.h"

static const char *
stop_reason(const Said *said)
{
    return said->tools->len > 0 ? "tool_use" : "end_turn";
}

static Json *
usage_object(const Said *said, guint64 output)
{
    const Usage *u = &said->usage;

    return json_pack("{s:I, s:I, s:I, s:I}", "input_tokens", (json_int_t)u->input_tokens,
                     "cache_read_input_tokens", (json_int_t)u->cached_tokens, "cache_creation_input_tokens",
                     (json_int_t)u->cache_write_tokens, "output_tokens", (json_int_t)output);
}

static Json *
tool_block(const SaidTool *tool, Json *input)
{
    return json_pack("{s:s, s:s, s:s, s:o}", "type", "tool_use", "id", tool->id, "name", tool->name, "input",
                     input);
}

static Json *
message(const Said *said, Json *content, const char *reason, guint64 output)
{
    g_autofree char *id = g_strdup_printf("msg_%s", said->id);

    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:n, s:o}", "id", id, "type", "message", "role",
                     "assistant", "model", said->model, "content", content, "stop_reason", reason,
                     "stop_sequence", "usage", usage_object(said, output));
}

static Json *
whole(const Said *said)
{
    Json *content = json_array();

    if (said->text != NULL)
        json_array_append_new(content, json_pack("{s:s, s:s}", "type", "text", "text", said->text));
    for (guint i = 0; i < said->tools->len; i++) {
        const SaidTool *tool = said->tools->pdata[i];

        json_array_append_new(content,
                              tool_block(tool, json_decode(tool->arguments, strlen(tool->arguments), NULL)));
    }
    return message(said, content, stop_reason(said), said->usage.output_tokens);
}

/* `block` is taken; `type` and `member` say how its deltas look. */
static void
stream_block(const Said *said, Tape *tape, guint index, Json *block, const char *const delta[2],
             const char *text)
{
    g_autofree char *piece = NULL;

    said_add_event(said, tape, "content_block_start",
                   json_pack("{s:s, s:i, s:o}", "type", "content_block_start", "index", (int)index,
                             "content_block", block));
    while ((piece = said_next_piece(said, &text)) != NULL) {
        said_add_event(said, tape, "content_block_delta",
                       json_pack("{s:s, s:i, s:{s:s, s:s}}", "type", "content_block_delta", "index",
                                 (int)index, "delta", "type", delta[0], delta[1], piece));
        g_clear_pointer(&piece, g_free);
    }
    if (said->is_cut)
        return;
    said_add_event(said, tape, "content_block_stop",
                   json_pack("{s:s, s:i}", "type", "content_block_stop", "index", (int)index));
}

Tape *
render_messages(const Said *said, bool is_stream)
{
    static const char *const text_delta[2] = {"text_delta", "text"};
    static const char *const json_delta[2] = {"input_json_delta", "partial_json"};
    guint index = 0;

    if (!is_stream)
        return said_whole(said, whole(said));
    Tape *tape = tape_new(200, true);
    said_add_event(
        said, tape, "message_start",
        json_pack("{s:s, s:o}", "type", "message_start", "message", message(said, json_array(), NULL, 1)));
    if (said->text != NULL)
        stream_block(said, tape, index++, json_pack("{s:s, s:s}", "type", "text", "text", ""), text_delta,
                     said->text);
    for (guint i = 0; i < said->tools->len; i++) {
        const SaidTool *tool = said->tools->pdata[i];

        stream_block(said, tape, index++, tool_block(tool, json_object()), json_delta, tool->arguments);
    }
    tape->is_cut = said->is_cut;
    if (said->is_cut)
        return tape;
    said_add_event(said, tape, "message_delta",
                   json_pack("{s:s, s:{s:s, s:n}, s:{s:I}}", "type", "message_delta", "delta", "stop_reason",
                             stop_reason(said), "stop_sequence", "usage", "output_tokens",
                             (json_int_t)said->usage.output_tokens));
    said_add_event(said, tape, "message_stop", json_pack("{s:s}", "type", "message_stop"));
    return tape;
}
