/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/dialect.h"
#include "base/err.h"

/* ---- the question ---- */

static Json *
render_assistant(Json *message)
{
    Json *blocks = json_array();
    const char *text = json_string_value(json_object_get(message, "text"));
    size_t i;
    Json *call;

    if (text != NULL && *text != '\0')
        json_array_append_new(blocks, json_pack("{s:s, s:s}", "type", "text", "text", text));
    json_array_foreach(json_object_get(message, "calls"), i, call) json_array_append_new(
        blocks, json_pack("{s:s, s:O, s:O, s:o}", "type", "tool_use", "id", json_object_get(call, "id"),
                          "name", json_object_get(call, "name"), "input", dialect_arguments(call)));
    return blocks;
}

static Json *
render_blocks(Json *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));

    if (strcmp(role, "assistant") == 0)
        return render_assistant(message);
    if (strcmp(role, "tool") == 0)
        return json_pack("[{s:s, s:O, s:O}]", "type", "tool_result", "tool_use_id",
                         json_object_get(message, "id"), "content", json_object_get(message, "text"));
    return json_pack("[{s:s, s:O}]", "type", "text", "text", json_object_get(message, "text"));
}

/* Roles take turns there: results and words that follow each other are one message. */
static Json *
render_messages(Json *messages)
{
    Json *list = json_array(), *last = NULL;
    const char *last_role = NULL;
    size_t i;
    Json *message;

    json_array_foreach(messages, i, message)
    {
        const char *own = json_string_value(json_object_get(message, "role"));
        const char *role = strcmp(own, "assistant") == 0 ? "assistant" : "user";
        g_autoptr(Json) blocks = render_blocks(message);

        if (json_array_size(blocks) == 0)
            continue;
        if (g_strcmp0(role, last_role) == 0) {
            json_array_extend(json_object_get(last, "content"), blocks);
            continue;
        }
        last = json_pack("{s:s, s:O}", "role", role, "content", blocks);
        last_role = role;
        json_array_append_new(list, last);
    }
    return list;
}

/* What stands before such a mark is cheap the next time. */
static void
mark_cached(Json *block)
{
    json_object_set_new(block, "cache_control", json_pack("{s:s}", "type", "ephemeral"));
}

static Json *
render_tools(Json *tools)
{
    Json *list = json_array();
    size_t i;
    Json *tool;

    json_array_foreach(tools, i, tool)
        json_array_append_new(list, json_pack("{s:O, s:O, s:O}", "name", json_object_get(tool, "name"),
                                              "description", json_object_get(tool, "description"),
                                              "input_schema", json_object_get(tool, "parameters")));
    return list;
}

static Json *
render(const Question *question)
{
    Json *messages = render_messages(question->messages);
    Json *last = json_array_get(messages, json_array_size(messages) - 1);
    Json *blocks = json_object_get(last, "content");
    Json *body = json_pack("{s:s, s:b, s:I, s:[{s:s, s:s}], s:o}", "model", question->model, "stream", 1,
                           "max_tokens", (json_int_t)question->output_tokens, "system", "type", "text",
                           "text", question->system, "messages", messages);

    mark_cached(json_array_get(json_object_get(body, "system"), 0));
    if (json_array_size(blocks) > 0)
        mark_cached(json_array_get(blocks, json_array_size(blocks) - 1));
    if (json_array_size(question->tools) > 0)
        json_object_set_new(body, "tools", render_tools(question->tools));
    return body;
}

/* ---- the answer ---- */

static void
read_usage(Answer *answer, Json *usage)
{
    gint64 fresh = dialect_number(usage, "input_tokens");
    gint64 cached = dialect_number(usage, "cache_read_input_tokens");
    gint64 written = dialect_number(usage, "cache_creation_input_tokens");
    gint64 output = dialect_number(usage, "output_tokens");

    if (fresh >= 0)
        answer->input_tokens = fresh + MAX(cached, 0) + MAX(written, 0);
    if (cached >= 0)
        answer->cached_tokens = cached;
    if (output >= 0)
        answer->output_tokens = output;
}

static bool
on_block_start(Answer *answer, Json *event, GError **error)
{
    Json *block = json_object_get(event, "content_block");
    const char *type = json_string_value(json_object_get(block, "type"));
    const AnswerPiece piece = {
        .index = dialect_number(event, "index"),
        .id = json_string_value(json_object_get(block, "id")),
        .name = json_string_value(json_object_get(block, "name")),
    };

    if (g_strcmp0(type, "tool_use") == 0)
        return answer_add_call(answer, &piece, error);
    return answer_add_text(answer, json_string_value(json_object_get(block, "text")), error);
}

static bool
on_block_delta(Answer *answer, Json *event, GError **error)
{
    Json *delta = json_object_get(event, "delta");
    const char *json = json_string_value(json_object_get(delta, "partial_json"));
    const AnswerPiece piece = {.index = dialect_number(event, "index"), .arguments = json};

    if (json != NULL)
        return answer_add_call(answer, &piece, error);
    return answer_add_thought(answer, json_string_value(json_object_get(delta, "thinking")), error) &&
           answer_add_text(answer, json_string_value(json_object_get(delta, "text")), error);
}

static bool
on_message_delta(Answer *answer, Json *event, GError **error)
{
    const char *reason = json_string_value(json_object_get(json_object_get(event, "delta"), "stop_reason"));

    answer->cut_short = g_strcmp0(reason, "max_tokens") == 0;
    read_usage(answer, json_object_get(event, "usage"));
    return true;
}

static bool
on_message_start(Answer *answer, Json *event, GError **error)
{
    read_usage(answer, json_object_get(json_object_get(event, "message"), "usage"));
    return true;
}

static bool
on_message_stop(Answer *answer, Json *event, GError **error)
{
    answer->finished = true;
    return true;
}

static bool
on_error(Answer *answer, Json *event, GError **error)
{
    const char *code = NULL, *text = NULL;

    (void)dialect_read_error(event, &code, &text); /* one without words is an error too */
    answer_set_error(answer, code, text);
    return true;
}

static bool
on_event(Answer *answer, const SseEvent *event, GError **error)
{
    static const struct {
        const char *type;
        bool (*read)(Answer *answer, Json *event, GError **error);
    } types[] = {
        {"message_start", on_message_start},     {"content_block_start", on_block_start},
        {"content_block_delta", on_block_delta}, {"message_delta", on_message_delta},
        {"message_stop", on_message_stop},       {"error", on_error},
    };
    g_autoptr(Json) tree = dialect_decode(event, error);

    if (tree == NULL)
        return false;
    const char *type = json_string_value(json_object_get(tree, "type"));
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
        if (g_strcmp0(types[i].type, type) == 0)
            return types[i].read(answer, tree, error);
    }
    return true;
}

const Dialect dialect_anthropic = {
    .name = "anthropic",
    .base_env = "ANTHROPIC_BASE_URL",
    .base_path = "/anthropic",
    .path = "/v1/messages",
    .headers = (const char *const[]){"Content-Type: application/json", "Accept: text/event-stream",
                                     "anthropic-version: 2023-06-01", "x-api-key: coop", NULL},
    .render = render,
    .on_event = on_event,
};
