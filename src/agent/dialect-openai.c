/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/dialect.h"
#include "base/err.h"

/* ---- the question ---- */

static Json *
render_call(Json *call)
{
    return json_pack("{s:O, s:s, s:{s:O, s:O}}", "id", json_object_get(call, "id"), "type", "function",
                     "function", "name", json_object_get(call, "name"), "arguments",
                     json_object_get(call, "arguments"));
}

static Json *
render_assistant(Json *message)
{
    Json *calls = json_object_get(message, "calls");
    const char *text = json_string_value(json_object_get(message, "text"));
    Json *out = json_pack("{s:s, s:s?}", "role", "assistant", "content",
                          text != NULL && *text != '\0' ? text : NULL);
    size_t i;
    Json *call;

    if (json_array_size(calls) == 0) {
        json_object_set_new(out, "content", json_string(text != NULL ? text : ""));
        return out;
    }
    Json *list = json_array();
    json_array_foreach(calls, i, call) json_array_append_new(list, render_call(call));
    json_object_set_new(out, "tool_calls", list);
    return out;
}

static Json *
render_message(Json *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));

    if (strcmp(role, "assistant") == 0)
        return render_assistant(message);
    if (strcmp(role, "tool") == 0)
        return json_pack("{s:s, s:O, s:O}", "role", "tool", "tool_call_id", json_object_get(message, "id"),
                         "content", json_object_get(message, "text"));
    return json_pack("{s:s, s:O}", "role", "user", "content", json_object_get(message, "text"));
}

static Json *
render(const Question *question)
{
    Json *body = json_pack(
        "{s:s, s:b, s:{s:b}, s:I}", "model", question->model, "stream", 1, "stream_options", "include_usage",
        1, question->old_bound ? "max_tokens" : "max_completion_tokens", (json_int_t)question->output_tokens);
    Json *messages = json_array(), *tools = json_array();
    size_t i;
    Json *value;

    json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "system", "content", question->system));
    json_array_foreach(question->messages, i, value) json_array_append_new(messages, render_message(value));
    json_array_foreach(question->tools, i, value)
        json_array_append_new(tools, json_pack("{s:s, s:O}", "type", "function", "function", value));
    json_object_set_new(body, "messages", messages);
    if (json_array_size(tools) > 0)
        json_object_set(body, "tools", tools);
    json_decref(tools);
    return body;
}

/* ---- the answer ---- */

static bool
read_calls(Answer *answer, Json *calls, GError **error)
{
    size_t i;
    Json *call;

    json_array_foreach(calls, i, call)
    {
        Json *function = json_object_get(call, "function");
        const AnswerPiece piece = {
            .index = dialect_number(call, "index"),
            .id = json_string_value(json_object_get(call, "id")),
            .name = json_string_value(json_object_get(function, "name")),
            .arguments = json_string_value(json_object_get(function, "arguments")),
        };

        if (!answer_add_call(answer, &piece, error))
            return false;
    }
    return true;
}

static void
read_usage(Answer *answer, Json *usage)
{
    if (!json_is_object(usage))
        return;
    answer->input_tokens = dialect_number(usage, "prompt_tokens");
    answer->output_tokens = dialect_number(usage, "completion_tokens");
    answer->cached_tokens = dialect_number(json_object_get(usage, "prompt_tokens_details"), "cached_tokens");
}

static bool
read_chunk(Answer *answer, Json *chunk, GError **error)
{
    Json *choice = json_array_get(json_object_get(chunk, "choices"), 0);
    Json *delta = json_object_get(choice, "delta");
    const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
    const char *code, *text;

    if (dialect_read_error(chunk, &code, &text)) {
        answer_set_error(answer, code, text);
        return true;
    }
    read_usage(answer, json_object_get(chunk, "usage"));
    if (reason != NULL) {
        answer->finished = true;
        answer->cut_short = strcmp(reason, "length") == 0;
    }
    /* Servers of open models call their thoughts by one of these. */
    return answer_add_thought(answer, json_string_value(json_object_get(delta, "reasoning_content")),
                              error) &&
           answer_add_thought(answer, json_string_value(json_object_get(delta, "reasoning")), error) &&
           answer_add_text(answer, json_string_value(json_object_get(delta, "content")), error) &&
           read_calls(answer, json_object_get(delta, "tool_calls"), error);
}

static bool
on_event(Answer *answer, const SseEvent *event, GError **error)
{
    static const char end[] = "[DONE]";

    if (event->data_len == strlen(end) && memcmp(event->data, end, strlen(end)) == 0) {
        answer->finished = true;
        return true;
    }
    g_autoptr(Json) chunk = dialect_decode(event, error);
    if (chunk == NULL)
        return false;
    return read_chunk(answer, chunk, error);
}

const Dialect dialect_openai = {
    .name = "openai",
    .base_env = "OPENAI_BASE_URL",
    .base_path = "/openai/v1",
    .path = "/chat/completions",
    .headers = (const char *const[]){"Content-Type: application/json", "Accept: text/event-stream",
                                     "Authorization: Bearer coop", NULL},
    .render = render,
    .on_event = on_event,
};
