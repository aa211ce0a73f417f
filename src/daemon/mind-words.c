/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mind-words.h"

#include <string.h>

#include "base/err.h"
#include "report/text.h"
#include "json/json.h"

static const char *
text_of(Json *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* ---- whom to ask ---- */

static bool
has_model(Json *row, const char *model, bool listed)
{
    Json *patterns = json_object_get(row, "models");

    if (json_array_size(patterns) == 0)
        return !listed;
    for (size_t i = 0; i < json_array_size(patterns) && listed; i++) {
        const char *pattern = json_string_value(json_array_get(patterns, i));

        if (pattern != NULL && g_pattern_match_simple(pattern, model))
            return true;
    }
    return false;
}

static Json *
find_provider(Json *providers, const char *name)
{
    for (size_t i = 0; i < json_array_size(providers); i++) {
        Json *row = json_array_get(providers, i);

        if (g_strcmp0(text_of(row, "name"), name) == 0)
            return row;
    }
    return NULL;
}

/* As gate_choose() would, but for the dialect, which follows from it. */
static Json *
find_for_model(Json *providers, const char *model)
{
    for (int listed = 1; listed >= 0; listed--) {
        for (size_t i = 0; i < json_array_size(providers); i++) {
            Json *row = json_array_get(providers, i);

            if (has_model(row, model, listed != 0))
                return row;
        }
    }
    return NULL;
}

ProviderKind
mind_kind(Json *providers, Json *own, const MindAsk *ask)
{
    Json *row = ask->provider != NULL ? find_provider(providers, ask->provider)
                                      : find_for_model(providers, ask->model);
    ProviderKind kind = PROVIDER_COMPATIBLE;

    if (row != NULL && provider_kind_from_name(text_of(row, "kind"), &kind))
        return kind;
    /* Those of the environment are called as their kind is. */
    if (ask->provider != NULL && provider_kind_from_name(ask->provider, &kind))
        return kind;
    for (size_t i = 0; ask->provider == NULL && i < json_array_size(own); i++) {
        const char *name = json_string_value(json_array_get(own, i));

        if (name != NULL && strcmp(name, "anthropic") == 0 && g_str_has_prefix(ask->model, "claude"))
            return PROVIDER_ANTHROPIC;
    }
    return PROVIDER_COMPATIBLE;
}

/* ---- the question ---- */

const char *
mind_path(ProviderKind kind)
{
    return kind == PROVIDER_ANTHROPIC ? "/anthropic/v1/messages" : "/openai/v1/chat/completions";
}

static Json *
message(const char *role, const char *text)
{
    return json_pack("{s:s, s:s}", "role", role, "content", text);
}

char *
mind_encode(ProviderKind kind, const MindAsk *ask)
{
    g_autofree char *model = ask->provider != NULL ? g_strconcat(ask->provider, "/", ask->model, NULL)
                                                   : g_strdup(ask->model);
    json_int_t tokens = ask->output_max > 0 ? ask->output_max : MIND_OUTPUT_TOKENS;
    /* What others who speak the dialect do not know, its newer models want. */
    const char *bound = kind == PROVIDER_OPENAI ? "max_completion_tokens" : "max_tokens";
    g_autoptr(Json) messages = json_array();
    g_autoptr(Json) body = json_pack("{s:s, s:I, s:O}", "model", model, bound, tokens, "messages", messages);

    if (ask->system != NULL && kind == PROVIDER_ANTHROPIC)
        json_object_set_new(body, "system", json_string(ask->system));
    else if (ask->system != NULL)
        json_array_append_new(messages, message("system", ask->system));
    json_array_append_new(messages, message("user", ask->prompt));
    return json_encode(body);
}

/* ---- the answer ---- */

static const char *
find_text(ProviderKind kind, Json *body)
{
    Json *content = json_object_get(body, "content");

    if (kind != PROVIDER_ANTHROPIC)
        return text_of(json_object_get(json_array_get(json_object_get(body, "choices"), 0), "message"),
                       "content");
    /* What it thought may stand before what it says. */
    for (size_t i = 0; i < json_array_size(content); i++) {
        Json *block = json_array_get(content, i);

        if (g_strcmp0(text_of(block, "type"), "text") == 0)
            return text_of(block, "text");
    }
    return NULL;
}

static guint64
count_of(Json *usage, const char *name)
{
    json_int_t n = json_integer_value(json_object_get(usage, name));

    return n > 0 ? (guint64)n : 0;
}

bool
mind_decode(ProviderKind kind, const char *bytes, size_t n, Json **ret_body, MindAnswer *answer,
            GError **error)
{
    bool anthropic = kind == PROVIDER_ANTHROPIC;
    g_autoptr(Json) body = json_decode(bytes, n, error);
    const char *text = find_text(kind, body);
    Json *usage = json_object_get(body, "usage");

    if (body == NULL) {
        g_prefix_error(error, "the model's answer: ");
        return false;
    }
    if (text == NULL || strspn(text, " \t\r\n") == strlen(text))
        return err_set(error, ERR_INVALID, "the model's answer has no text");
    if (strlen(text) > MIND_ANSWER_MAX)
        return err_set(error, ERR_INVALID, "the model's answer is longer than %d bytes", MIND_ANSWER_MAX);
    answer->text = text;
    answer->model = text_of(body, "model");
    answer->input_tokens = count_of(usage, anthropic ? "input_tokens" : "prompt_tokens");
    answer->output_tokens = count_of(usage, anthropic ? "output_tokens" : "completion_tokens");
    *ret_body = g_steal_pointer(&body);
    return true;
}

static ErrKind
kind_of_status(int status, const char *code)
{
    if (status == 402 || g_strcmp0(code, "loop_broken") == 0)
        return ERR_LIMIT;
    if (status == 401 || status == 403 || g_strcmp0(code, "upstream_auth") == 0)
        return ERR_DENIED;
    if (status == 404)
        return ERR_NOT_FOUND;
    if (status == 408 || status == 429 || status >= 500)
        return ERR_UNAVAILABLE;
    return ERR_INVALID;
}

bool
mind_refused(int status, const char *bytes, size_t n, GError **error)
{
    g_autoptr(Json) body = json_decode(bytes, n, NULL);
    Json *problem = json_object_get(body, "error");
    const char *words = text_of(problem, "message"), *code = text_of(problem, "code");
    g_autofree char *clean = text_dup_name(words != NULL ? words : "", MIND_PROBLEM_MAX, &(bool){false});

    return err_set(error, kind_of_status(status, code), "%s (status %d)",
                   clean[0] != '\0' ? clean : "the model did not answer", status);
}
