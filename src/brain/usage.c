/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/usage.h"

#include <string.h>

#include "base/err.h"
#include "brain/usage-private.h"
#include "http/sse.h"

enum {
    TOKENS_MAX = 1000 * 1000 * 1000, /* more is nonsense, and would overflow a price */
};

struct UsageReader {
    Dialect dialect;
    bool stream;
    SseDecoder *sse;
    GString *body; /* of a whole answer; NULL: too long to be looked at */
    GError *error; /* of an event; the feed under way returns it */
    bool failed;
    Usage seen;
    bool has_input, has_output;
    bool complete;
    bool last_is_extra;
    guint64 said; /* bytes of text and arguments: what an estimate goes by */
};

/* ---- the numbers ---- */

static guint64
tokens(Json *object, const char *name)
{
    Json *value = json_object_get(object, name);
    double n = json_number_value(value);

    return n > 0 ? (guint64)MIN(n, (double)TOKENS_MAX) : 0;
}

/* Chat completions and embeddings say prompt and completion, responses input and output; the
 * cached ones are counted in. */
static void
read_openai(Json *usage, Usage *ret)
{
    bool is_chat = json_object_get(usage, "prompt_tokens") != NULL;
    Json *details = json_object_get(usage, is_chat ? "prompt_tokens_details" : "input_tokens_details");
    guint64 input = tokens(usage, is_chat ? "prompt_tokens" : "input_tokens");

    *ret = (Usage){
        .cached_tokens = MIN(tokens(details, "cached_tokens"), input),
        .output_tokens = tokens(usage, is_chat ? "completion_tokens" : "output_tokens"),
    };
    ret->input_tokens = input - ret->cached_tokens;
}

static void
read_anthropic_input(Json *usage, Usage *ret)
{
    ret->input_tokens = tokens(usage, "input_tokens");
    ret->cached_tokens = tokens(usage, "cache_read_input_tokens");
    ret->cache_write_tokens = tokens(usage, "cache_creation_input_tokens");
}

bool
usage_of_answer(Dialect dialect, Json *answer, Usage *ret)
{
    Json *usage = json_object_get(answer, "usage");

    if (!json_is_object(usage))
        return false;
    *ret = (Usage){0};
    if (dialect == DIALECT_ANTHROPIC) {
        read_anthropic_input(usage, ret);
        ret->output_tokens = tokens(usage, "output_tokens");
    } else {
        read_openai(usage, ret);
    }
    return true;
}

/* ---- one event ---- */

static void
count_text(UsageReader *r, Json *value)
{
    r->said += json_string_length(value);
}

static void
count_choice(UsageReader *r, Json *choice)
{
    Json *delta = json_object_get(choice, "delta");
    Json *call;
    size_t i;

    count_text(r, json_object_get(delta, "content"));
    count_text(r, json_object_get(delta, "reasoning_content"));
    json_array_foreach(json_object_get(delta, "tool_calls"), i, call)
        count_text(r, json_object_get(json_object_get(call, "function"), "arguments"));
    /* The answer's last word, even where a server leaves out the mark after it. */
    if (json_is_string(json_object_get(choice, "finish_reason")))
        r->complete = true;
}

static void
take_openai(UsageReader *r, Json *event)
{
    Json *choices = json_object_get(event, "choices");
    Json *response = json_object_get(event, "response");
    const char *type = json_string_value(json_object_get(event, "type"));
    bool said = usage_of_answer(DIALECT_OPENAI, response != NULL ? response : event, &r->seen);
    size_t i;
    Json *choice;

    r->has_input |= said;
    r->has_output |= said;
    r->last_is_extra = said && json_is_array(choices) && json_array_size(choices) == 0;
    json_array_foreach(choices, i, choice) count_choice(r, choice);
    count_text(r, json_object_get(event, "delta"));
    if (type != NULL &&
        (strcmp(type, "response.completed") == 0 || strcmp(type, "response.incomplete") == 0 ||
         strcmp(type, "response.failed") == 0 || strcmp(type, "error") == 0))
        r->complete = true;
    if (json_is_object(json_object_get(event, "error")))
        r->complete = true;
}

static void
take_anthropic(UsageReader *r, Json *event)
{
    const char *type = json_string_value(json_object_get(event, "type"));
    Json *usage = json_object_get(event, "usage");
    Json *delta = json_object_get(event, "delta");

    if (type == NULL)
        return;
    if (strcmp(type, "message_start") == 0) {
        Json *started = json_object_get(json_object_get(event, "message"), "usage");

        if (json_is_object(started)) {
            read_anthropic_input(started, &r->seen);
            r->seen.output_tokens = tokens(started, "output_tokens");
            r->has_input = true;
        }
    } else if (strcmp(type, "message_delta") == 0 && json_is_object(usage)) {
        /* These are totals, and correct what the start said where they name it. */
        if (json_object_get(usage, "input_tokens") != NULL) {
            read_anthropic_input(usage, &r->seen);
            r->has_input = true;
        }
        r->seen.output_tokens = tokens(usage, "output_tokens");
        r->has_output = true;
    } else if (strcmp(type, "content_block_delta") == 0) {
        count_text(r, json_object_get(delta, "text"));
        count_text(r, json_object_get(delta, "partial_json"));
        count_text(r, json_object_get(delta, "thinking"));
    } else if (strcmp(type, "message_stop") == 0 || strcmp(type, "error") == 0) {
        r->complete = true;
    }
}

static void
on_event(const SseEvent *event, void *data)
{
    UsageReader *r = data;

    if (r->error != NULL)
        return;
    if (strcmp(event->data, "[DONE]") == 0) {
        r->complete = true;
        return;
    }
    g_autoptr(Json)
        object = json_decode_foreign(event->data, event->data_len, USAGE_VALUES_MAX, NULL, &r->error);
    if (object == NULL)
        return;
    if (r->dialect == DIALECT_ANTHROPIC)
        take_anthropic(r, object);
    else
        take_openai(r, object);
}

/* ---- the reader ---- */

UsageReader *
usage_reader_new(Dialect dialect, bool stream)
{
    UsageReader *r = g_new0(UsageReader, 1);

    r->dialect = dialect;
    r->stream = stream;
    if (stream)
        r->sse = sse_decoder_new(USAGE_LINE_MAX, on_event, r);
    else
        r->body = g_string_new(NULL);
    return r;
}

void
usage_reader_free(UsageReader *reader)
{
    if (reader == NULL)
        return;
    sse_decoder_free(reader->sse);
    if (reader->body != NULL)
        g_string_free(reader->body, TRUE);
    g_clear_error(&reader->error);
    g_free(reader);
}

static bool
feed_body(UsageReader *r, const void *bytes, size_t n)
{
    r->said += n;
    if (r->body == NULL)
        return true;
    if (n > USAGE_BODY_MAX - r->body->len)
        g_string_free(g_steal_pointer(&r->body), TRUE);
    else
        g_string_append_len(r->body, bytes, (gssize)n);
    return true;
}

bool
usage_reader_feed(UsageReader *reader, const void *bytes, size_t n, GError **error)
{
    if (!reader->stream)
        return feed_body(reader, bytes, n);
    if (reader->failed)
        return err_set(error, ERR_INVALID, "the stream was malformed");
    reader->last_is_extra = false;
    if (!sse_decoder_feed(reader->sse, bytes, n, reader->error == NULL ? &reader->error : NULL) ||
        reader->error != NULL) {
        reader->failed = true;
        g_propagate_error(error, g_steal_pointer(&reader->error));
        return false;
    }
    return true;
}

bool
usage_reader_is_complete(const UsageReader *reader)
{
    return reader->complete;
}

bool
usage_reader_last_is_extra(const UsageReader *reader)
{
    return reader->last_is_extra;
}

static void
read_body(UsageReader *r)
{
    g_autoptr(Json) answer = r->body != NULL ? json_decode_foreign(r->body->str, r->body->len,
                                                                   USAGE_VALUES_MAX, NULL, NULL)
                                             : NULL;

    r->has_input = r->has_output = answer != NULL && usage_of_answer(r->dialect, answer, &r->seen);
}

void
usage_reader_result(UsageReader *reader, size_t request_bytes, Usage *ret)
{
    if (!reader->stream)
        read_body(reader);
    *ret = reader->seen;
    if (!reader->has_input)
        ret->input_tokens = (request_bytes + USAGE_BYTES_PER_TOKEN - 1) / USAGE_BYTES_PER_TOKEN;
    /* A stream that broke off: the start said how much had been written by then. */
    if (!reader->has_output)
        ret->output_tokens = MAX(ret->output_tokens,
                                 (reader->said + USAGE_BYTES_PER_TOKEN - 1) / USAGE_BYTES_PER_TOKEN);
    ret->estimated = !reader->has_input || !reader->has_output;
}
