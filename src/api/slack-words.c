/* SPDX-License-Identifier: Apache-2.0 */
#include "api/slack-words.h"

#include <string.h>

enum { WORDS_MAX = 1000 }; /* characters of what agents and people wrote */

char *
slack_escape(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text != NULL ? text : "", -1);
    g_autofree char *cut = g_utf8_strlen(valid, -1) > WORDS_MAX ? g_utf8_substring(valid, 0, WORDS_MAX)
                                                                : NULL;
    GString *out = g_string_new(cut != NULL ? cut : valid);

    g_string_replace(out, "&", "&amp;", 0);
    g_string_replace(out, "<", "&lt;", 0);
    g_string_replace(out, ">", "&gt;", 0);
    if (cut != NULL)
        g_string_append(out, "…");
    return g_string_free(out, FALSE);
}

static void
add_head(GString *out, const Json *task)
{
    g_autofree char *title = slack_escape(row_text(task, "title"));

    g_string_append_printf(out, "Task #%" G_GINT64_FORMAT " (%s)", row_int(task, "number"), title);
}

static void
add_words(GString *out, const char *before, const char *text)
{
    g_autofree char *words = text != NULL ? slack_escape(text) : NULL;

    if (words != NULL)
        g_string_append_printf(out, "%s%s", before, words);
}

char *
slack_status(const Json *task)
{
    GString *out = g_string_new(NULL);
    const Json *progress = json_object_get(task, "progress");

    add_head(out, task);
    g_string_append_printf(out, " is *%s*", row_text(task, "state"));
    if (row_int(progress, "total") > 0)
        g_string_append_printf(out, ", %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " steps done",
                               row_int(progress, "done"), row_int(progress, "total"));
    add_words(out, "\nIt waits for ", row_text(task, "waiting_for"));
    add_words(out, "\n", row_text(task, "problem"));
    add_words(out, "\n", row_text(task, "pull_url"));
    return g_string_free(out, FALSE);
}

/* ---- news ---- */

static bool
say_planned(GString *out, const HookEvent *event, const Json *task)
{
    g_string_append_printf(out, ": the plan is ready, %" G_GINT64_FORMAT " steps.",
                           row_int(event->data, "steps"));
    return true;
}

static bool
say_moved(GString *out, const HookEvent *event, const Json *task)
{
    gint64 number = row_int(task, "number");

    if (g_strcmp0(row_text(event->data, "to"), "approving") != 0)
        return false;
    g_string_append_printf(out,
                           ": a plan waits for a person. `coop plan show %" G_GINT64_FORMAT
                           "`, `coop plan approve %" G_GINT64_FORMAT "`",
                           number, number);
    return true;
}

/* The row learns of it after the event. */
static bool
say_opened(GString *out, const HookEvent *event, const Json *task)
{
    g_string_append_printf(out, ": the pull request is open: %s/%s/pull/%" G_GINT64_FORMAT, event->address,
                           row_text(event->data, "repository"), row_int(event->data, "number"));
    return true;
}

static bool
say_asked(GString *out, const HookEvent *event, const Json *task)
{
    const char *question = row_text(event->data, "question");

    g_string_append(out, " waits for an answer:");
    add_words(out, "\n>", question != NULL ? question : row_text(event->data, "text"));
    g_string_append_printf(out, "\n`/code-team answer %" G_GINT64_FORMAT " …`", row_int(task, "number"));
    return true;
}

static bool
say_ended(GString *out, const HookEvent *event, const Json *task)
{
    const Json *tests = json_object_get(event->data, "tests");
    const char *rung = row_text(event->data, "rung"), *state = row_text(event->data, "state");

    g_string_append_printf(out, " is *%s*.",
                           g_strcmp0(state, "done") == 0 && rung != NULL ? rung
                           : state != NULL                               ? state
                                                                         : "over");
    add_words(out, " ", row_text(task, "problem"));
    g_string_append_printf(
        out, "\nTests: %" G_GINT64_FORMAT " total, %" G_GINT64_FORMAT " passed, %" G_GINT64_FORMAT " failed",
        row_int(tests, "total"), row_int(tests, "passed"), row_int(tests, "failed"));
    add_words(out, "\n", row_text(task, "pull_url"));
    return true;
}

static const struct {
    const char *kind;
    bool (*say)(GString *out, const HookEvent *event, const Json *task);
} news[] = {
    {"human.asked", say_asked},    {"pr.opened", say_opened},  {"task.cancelled", say_ended},
    {"task.completed", say_ended}, {"task.failed", say_ended}, {"task.moved", say_moved},
    {"task.planned", say_planned},
};

Json *
slack_progress(Repo *repo, const HookEvent *event, void *ctx)
{
    const Json *task = json_object_get(event->about, "task");
    g_autoptr(GString) out = g_string_new(NULL);

    if (!json_is_object(task))
        return NULL;
    add_head(out, task);
    for (size_t i = 0; i < G_N_ELEMENTS(news); i++) {
        if (strcmp(news[i].kind, event->kind) == 0 && news[i].say(out, event, task))
            return json_pack("{s:s, s:s}", "response_type", "in_channel", "text", out->str);
    }
    return NULL;
}
