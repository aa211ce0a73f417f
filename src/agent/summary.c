/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/summary.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"

enum { PART_MAX = 1500, LIST_PART_MAX = 120, LIST_MAX = 60, SUMMARY_MAX = 16 * 1024 };

static const char system_prompt[] = "You write down what an agent has to remember of its own work on a task, "
                                    "so that it can go on without the "
                                    "conversation itself.";
static const char request[] = "Summarise the work so far in at most 500 words: what was decided and why, "
                              "which files were changed and how, "
                              "what was run and what came of it, what is known to fail, what remains to be "
                              "done. Names of files, functions "
                              "and commands exactly as they are. Only the summary.";
static const char title[] = "# Summary of the work so far (the conversation itself was too long to keep)\n";

static void
add_part(GString *out, const char *what, const char *text, size_t max)
{
    size_t n = strlen(text);
    g_autofree char *valid = g_utf8_make_valid(text, (gssize)MIN(n, max));

    if (n > 0)
        g_string_append_printf(out, "%s: %s%s\n", what, valid, n > max ? " …" : "");
}

static void
add_message(GString *out, Json *message, size_t max)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    const char *text = json_string_value(json_object_get(message, "text"));
    size_t i;
    Json *call;

    add_part(out, strcmp(role, "tool") == 0 ? "result" : role, text != NULL ? text : "", max);
    json_array_foreach(json_object_get(message, "calls"), i, call)
    {
        const char *name = json_string_value(json_object_get(call, "name"));
        const char *arguments = json_string_value(json_object_get(call, "arguments"));

        add_part(out, name, arguments, max);
    }
}

/* From the end, until there is enough; the order stays. */
static char *
write_down(Json *messages, size_t to, size_t part_max, gsize bytes_max)
{
    GString *all = g_string_new(NULL);

    for (size_t i = to; i > 1; i--) {
        g_autoptr(GString) one = g_string_new(NULL);

        add_message(one, json_array_get(messages, i - 1), part_max);
        if (all->len + one->len > bytes_max) {
            g_string_prepend(all, "[… earlier turns left out …]\n");
            break;
        }
        g_string_prepend_len(all, one->str, (gssize)one->len);
    }
    return g_string_free(all, FALSE);
}

static char *
list_calls(Json *messages, size_t to)
{
    size_t from = to > LIST_MAX ? to - LIST_MAX : 1;
    GString *out = g_string_new(title);

    for (size_t i = from; i < to; i++)
        add_message(out, json_array_get(messages, i), LIST_PART_MAX);
    return g_string_free(out, FALSE);
}

static bool
must_end(ModelReason reason)
{
    return reason == MODEL_BUDGET || reason == MODEL_LOOP || reason == MODEL_NONE || reason == MODEL_STOPPED;
}

char *
summary_make(Model *model, Json *messages, size_t to, gint64 bytes_max, ModelReason *ret_reason,
             GError **error)
{
    g_autofree char *story = write_down(messages, to, PART_MAX, (gsize)bytes_max);
    const char *goal = json_string_value(json_object_get(json_array_get(messages, 0), "text"));
    g_autofree char *text = g_strdup_printf("%s\n\n# What was said and done\n%s\n\n%s",
                                            goal != NULL ? goal : "", story, request);
    g_autoptr(Json) question = json_pack("[{s:s, s:s}]", "role", "user", "text", text);
    g_autoptr(GError) failed = NULL;
    g_auto(Answer) answer = {0};

    if (question != NULL && model_ask(model, system_prompt, question, NULL, &answer, ret_reason, &failed) &&
        answer.text->len > 0) {
        g_string_truncate(answer.text, MIN(answer.text->len, (gsize)SUMMARY_MAX));
        return g_strconcat(title, answer.text->str, NULL);
    }
    if (failed != NULL && must_end(*ret_reason)) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return NULL;
    }
    log_warn("agent", "no summary", log_str("error", failed != NULL ? failed->message : "it was empty"));
    return list_calls(messages, to);
}
