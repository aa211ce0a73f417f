/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/keep.h"

#include <string.h>

#include "agent/summary.h"
#include "base/err.h"
#include "base/log.h"

enum {
    MESSAGE_OVERHEAD = 32, /* bytes of what stands around a message's text */
    ANSWER_SHARE = 2,      /* at least a half of the context is for the question */
    SHORTER_PERCENT = 60,
};

static const double bytes_per_token_first = 3.5, bytes_per_token_min = 1.5, bytes_per_token_max = 6;

void
keep_init(Keep *keep, const Brief *brief, Model *model, Talk *talk)
{
    gint64 limit = MAX(brief->context_tokens - brief->output_tokens, brief->context_tokens / ANSWER_SHARE);

    *keep = (Keep){.brief = brief,
                   .model = model,
                   .talk = talk,
                   .fixed_bytes = strlen(brief->system),
                   .limit = limit,
                   .bytes_per_token = bytes_per_token_first};
}

/* ---- how long it is ---- */

static size_t
message_bytes(Json *message)
{
    size_t n = MESSAGE_OVERHEAD + json_string_length(json_object_get(message, "text"));
    size_t i;
    Json *call;

    json_array_foreach(json_object_get(message, "calls"), i, call)
        n += MESSAGE_OVERHEAD + json_string_length(json_object_get(call, "arguments"));
    return n;
}

static size_t
question_bytes(const Keep *keep)
{
    size_t n = keep->fixed_bytes;
    size_t i;
    Json *message;

    json_array_foreach(talk_messages(keep->talk), i, message) n += message_bytes(message);
    return n;
}

gint64
keep_tokens(const Keep *keep)
{
    return (gint64)((double)question_bytes(keep) / keep->bytes_per_token);
}

static void
learn(Keep *keep, size_t asked_bytes, gint64 tokens)
{
    /* A script's numbers, or those of very short questions, say nothing. */
    if (tokens < MESSAGE_OVERHEAD)
        return;
    keep->bytes_per_token = CLAMP((double)asked_bytes / (double)tokens, bytes_per_token_min,
                                  bytes_per_token_max);
}

/* ---- cutting ---- */

static char *
cut_text(const char *text)
{
    g_autofree char *begin = g_utf8_make_valid(text, KEEP_CUT);

    return g_strdup_printf("%s\n[… cut: %zu bytes in all; look again if you need it …]", begin, strlen(text));
}

static bool
is_long(const Json *text)
{
    /* With what is written in its place it has to become shorter. */
    return json_string_length(text) > (size_t)KEEP_CUT * 2;
}

/* What was written into a file is in the file. */
static void
cut_arguments(Keep *keep, size_t index, size_t number, Json *call)
{
    g_autoptr(Json) tree = dialect_arguments(call);
    const char *name;
    Json *value;
    void *next;

    if (!is_long(json_object_get(call, "arguments")))
        return;
    json_object_foreach_safe(tree, next, name, value)
    {
        if (!is_long(value))
            continue;
        g_autofree char *text = cut_text(json_string_value(value));
        json_object_set_new(tree, name, json_string(text));
    }
    g_autofree char *text = json_encode(tree);
    talk_set_arguments(keep->talk, index, number, text);
}

static void
cut_message(Keep *keep, size_t index, Json *message)
{
    Json *text = json_object_get(message, "text");
    size_t i;
    Json *call;

    if (talk_is_role(message, "tool") && is_long(text)) {
        g_autofree char *shorter = cut_text(json_string_value(text));

        talk_set_text(keep->talk, index, shorter);
    }
    json_array_foreach(json_object_get(message, "calls"), i, call) cut_arguments(keep, index, i, call);
}

void
keep_cut(Keep *keep, gint64 tokens, size_t spare)
{
    Json *messages = talk_messages(keep->talk);
    size_t n = json_array_size(messages);

    for (size_t i = 1; i + spare < n && keep_tokens(keep) > tokens; i++)
        cut_message(keep, i, json_array_get(messages, i));
}

/* ---- summarising ---- */

/* Among the messages 1..to-1: an earlier summary alone does not become shorter. */
static bool
has_answer(Json *messages, size_t to)
{
    for (size_t i = 1; i < to; i++) {
        if (talk_is_role(json_array_get(messages, i), "assistant"))
            return true;
    }
    return false;
}

size_t
keep_boundary(const Keep *keep)
{
    Json *messages = talk_messages(keep->talk);
    double recent = (double)(keep->limit * KEEP_RECENT_PERCENT / 100) * keep->bytes_per_token;
    size_t at = json_array_size(messages), boundary = 0;
    double kept = 0;

    /* Only where an answer begins: results stay behind their calls. */
    while (at > 1) {
        Json *message = json_array_get(messages, --at);

        kept += (double)message_bytes(message);
        if (boundary > 0 && kept > recent)
            break;
        if (talk_is_role(message, "assistant"))
            boundary = at;
    }
    return has_answer(messages, boundary) ? boundary : 0;
}

static bool
summarise(Keep *keep, ModelReason *ret_reason, GError **error)
{
    size_t to = keep_boundary(keep);
    gint64 bytes = (gint64)((double)keep->limit * KEEP_LOW_PERCENT / 100 * keep->bytes_per_token);

    if (to == 0)
        return true;
    g_autofree char *text = summary_make(keep->model, talk_messages(keep->talk), to, bytes, ret_reason,
                                         error);
    if (text == NULL)
        return false;
    talk_replace(keep->talk, 1, to, text);
    return true;
}

/* Makes it fit.  False: the model's own refusal, or MODEL_CONTEXT. */
static bool
fit(Keep *keep, ModelReason *ret_reason, GError **error)
{
    gint64 high = keep->limit * KEEP_HIGH_PERCENT / 100, low = keep->limit * KEEP_LOW_PERCENT / 100;

    if (keep_tokens(keep) <= high)
        return true;
    keep_cut(keep, low, KEEP_RECENT);
    bool good = keep_tokens(keep) <= high || summarise(keep, ret_reason, error);
    if (good && keep_tokens(keep) > high)
        keep_cut(keep, high, 0);
    talk_save(keep->talk);
    log_info("agent", "the conversation was made shorter", log_int("tokens", keep_tokens(keep)));
    if (!good || keep_tokens(keep) <= keep->limit)
        return good;
    *ret_reason = MODEL_CONTEXT;
    return err_set(error, ERR_LIMIT, "what has to be said takes more than %" G_GINT64_FORMAT " tokens",
                   keep->limit);
}

bool
keep_ask(Keep *keep, Json *tools, Answer *ret_answer, ModelReason *ret_reason, GError **error)
{
    g_autofree char *described = json_encode(tools);

    keep->fixed_bytes = strlen(keep->brief->system) + strlen(described);
    for (guint shorter = 0;; shorter++) {
        g_autoptr(GError) failed = NULL;

        if (!fit(keep, ret_reason, error))
            return false;
        if (model_ask(keep->model, keep->brief->system, talk_messages(keep->talk), tools, ret_answer,
                      ret_reason, &failed))
            break;
        if (*ret_reason != MODEL_CONTEXT || shorter == KEEP_SHORTER_MAX) {
            g_propagate_error(error, g_steal_pointer(&failed));
            return false;
        }
        answer_clear(ret_answer);
        keep->limit = MIN(keep->limit, keep_tokens(keep)) * SHORTER_PERCENT / 100;
    }
    learn(keep, question_bytes(keep), ret_answer->input_tokens);
    return true;
}
