/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/task-log.h"

#include <string.h>

#include "cli/follow.h"
#include "cli/forge-call.h"
#include "cli/team-call.h"

enum { PAGE = 500, TIME_AT = 11, TIME_LEN = 8, OID_SHOWN = 8 };

/* ---- words for an event ---- */

static gint64
number(const Json *data, const char *name)
{
    return json_integer_value(json_object_get(data, name));
}

/* The first of these members that is there. */
static const char *
any_text(const Json *data, const char *a, const char *b)
{
    const char *text = forge_text(data, a);

    return text[0] != '\0' ? text : forge_text(data, b);
}

static char *
words_plain(const Json *event, const Json *data, const char *text)
{
    return g_strdup(text);
}

static char *
words_title(const Json *event, const Json *data, const char *text)
{
    return g_strdup_printf("%s: %s", text, any_text(data, "title", "name"));
}

static char *
words_box(const Json *event, const Json *data, const char *text)
{
    const char *agent = any_text(data, "agent_id", "template");

    return g_strdup_printf("%s: %s%s%s", text, forge_text(event, "box_id"), agent[0] != '\0' ? " for " : "",
                           agent);
}

static char *
words_moved(const Json *event, const Json *data, const char *text)
{
    const char *why = any_text(data, "problem", "reason");

    return g_strdup_printf("%s: %s -> %s%s%s", text, forge_text(data, "from"), forge_text(data, "to"),
                           why[0] != '\0' ? ": " : "", why);
}

static char *
words_tests(const Json *event, const Json *data, const char *text)
{
    const Json *tests = json_is_object(json_object_get(data, "tests")) ? json_object_get(data, "tests")
                                                                       : data;

    return g_strdup_printf("%s: total %" G_GINT64_FORMAT ", passed %" G_GINT64_FORMAT
                           ", failed %" G_GINT64_FORMAT,
                           text, number(tests, "total"), number(tests, "passed"), number(tests, "failed"));
}

static char *
words_step(const Json *event, const Json *data, const char *text)
{
    const char *state = forge_text(data, "state"), *why = any_text(data, "problem", "reason");

    return g_strdup_printf("%s %s: %s%s%s", strcmp(state, "done") == 0 ? "feature marked complete" : text,
                           strcmp(state, "done") == 0 ? "" : state, any_text(data, "title", "name"),
                           why[0] != '\0' ? ": " : "", why);
}

static char *
words_commit(const Json *event, const Json *data, const char *text)
{
    const char *branch = any_text(data, "branch", "ref"), *oid = any_text(data, "after", "head_oid");

    return g_strdup_printf("%s: %s %.*s", text, branch, OID_SHOWN, oid);
}

static char *
words_said(const Json *event, const Json *data, const char *text)
{
    return g_strdup_printf("%s %s: %s", any_text(data, "agent", "name"), text,
                           any_text(data, "text", "summary"));
}

static char *
words_pull(const Json *event, const Json *data, const char *text)
{
    return g_strdup_printf("%s: #%" G_GINT64_FORMAT " %s", text, number(data, "number"),
                           forge_text(data, "title"));
}

static char *
words_human(const Json *event, const Json *data, const char *text)
{
    const char *answer = forge_text(data, "answer");

    return g_strdup_printf("%s: %s", text, answer[0] != '\0' ? answer : any_text(data, "question", "text"));
}

typedef char *(*Words)(const Json *event, const Json *data, const char *text);

/* `step`: of the seven; 0: none. */
static const struct {
    const char *kind;
    guint step;
    OutStyle style;
    const char *text;
    Words words;
} kinds[] = {
    {"task.created", 0, OUT_BOLD, "task", words_title},
    {"council.opened", 1, OUT_PLAIN, "council plans", words_plain},
    {"opinion.given", 0, OUT_DIM, "an opinion was given", words_plain},
    {"ranking.given", 0, OUT_DIM, "opinions were ranked", words_plain},
    {"council.closed", 0, OUT_PLAIN, "council has closed", words_plain},
    {"task.planned", 1, OUT_GOOD, "council plans: the plan is there", words_plain},
    {"task.moved", 0, OUT_DIM, "task", words_moved},
    {"branch.created", 0, OUT_DIM, "branch", words_commit},
    {"pr.opened", 0, OUT_PLAIN, "pull request opened", words_pull},
    {"box.created", 2, OUT_PLAIN, "sandbox created", words_box},
    {"step.started", 0, OUT_PLAIN, "work begins", words_title},
    {"agent.said", 0, OUT_PLAIN, "says", words_said},
    {"commit.pushed", 3, OUT_PLAIN, "code generated", words_commit},
    {"tests.reported", 4, OUT_PLAIN, "tests executed", words_tests},
    {"step.ended", 6, OUT_GOOD, "step", words_step},
    {"review.submitted", 0, OUT_PLAIN, "review", words_pull},
    {"checks.ended", 0, OUT_PLAIN, "Coop's own checks have ended", words_plain},
    {"pr.ready", 0, OUT_PLAIN, "pull request ready", words_pull},
    {"pr.merged", 0, OUT_GOOD, "merged", words_pull},
    {"merge.conflicted", 0, OUT_WARN, "conflict", words_pull},
    {"budget.exceeded", 0, OUT_WARN, "a budget is used up", words_plain},
    {"loop.broken", 0, OUT_WARN, "an agent went round in circles", words_plain},
    {"human.asked", 0, OUT_WARN, "question", words_human},
    {"human.answered", 0, OUT_PLAIN, "answer", words_human},
    {"box.failed", 0, OUT_BAD, "sandbox failed", words_box},
    {"box.killed", 7, OUT_PLAIN, "sandbox cleaned up", words_box},
    {"box.expired", 7, OUT_PLAIN, "sandbox cleaned up", words_box},
    {"task.retried", 0, OUT_PLAIN, "tried again", words_plain},
    {"task.completed", 0, OUT_GOOD, "done", words_plain},
    {"task.failed", 0, OUT_BAD, "failed", words_moved},
    {"task.cancelled", 0, OUT_WARN, "cancelled", words_plain},
};

static void
show_line(Out *out, const Json *event, guint step, OutStyle style, const char *text)
{
    g_autofree char *mark = step > 0 ? g_strdup_printf("[%u/7]", step) : g_strdup("     ");

    out_text(out, OUT_DIM, "%.*s ", TIME_LEN,
             strlen(forge_text(event, "at")) > TIME_AT ? forge_text(event, "at") + TIME_AT : "");
    out_text(out, style, "%s %s\n", mark, text);
}

/* What the last lines of a command were, where it failed. */
static void
show_output(Out *out, const Json *data)
{
    const char *text = any_text(data, "stderr", "output");
    g_auto(GStrv) lines = g_strsplit(text, "\n", 0);

    for (char **line = lines; *line != NULL; line++) {
        if ((*line)[0] != '\0')
            out_text(out, OUT_DIM, "         stderr: %s\n", *line);
    }
}

static void
show_tests_passed(Out *out, const Json *event, const Json *data)
{
    const Json *tests = json_is_object(json_object_get(data, "tests")) ? json_object_get(data, "tests")
                                                                       : data;

    if (number(tests, "total") > 0 && number(tests, "failed") == 0)
        show_line(out, event, 5, OUT_GOOD, "tests passed");
    else if (number(tests, "failed") > 0)
        show_line(out, event, 0, OUT_BAD, "tests failed");
}

static bool
is_end(const char *kind)
{
    return strcmp(kind, "task.completed") == 0 || strcmp(kind, "task.failed") == 0 ||
           strcmp(kind, "task.cancelled") == 0;
}

/* False: it is over. */
static bool
show(Out *out, const Json *event, void *ctx)
{
    const char *kind = forge_text(event, "kind");
    const Json *data = json_object_get(event, "data");
    bool goes_on = !is_end(kind);

    if (out_format(out) == OUT_JSON) {
        out_json(out, event);
        return goes_on;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) != 0)
            continue;
        g_autofree char *text = kinds[i].words(event, data, kinds[i].text);

        show_line(out, event, kinds[i].step, kinds[i].style, text);
        if (strcmp(kind, "tests.reported") == 0)
            show_tests_passed(out, event, data);
        show_output(out, data);
    }
    return goes_on;
}

/* ---- the log ---- */

static ExitCode
show_all(Cli *cli, Remote *remote, const char *task_id, gint64 *ret_after, bool *ret_over)
{
    bool more = true;

    while (more) {
        g_autofree char *path = g_strdup_printf("/api/v1/events?task=%s&after=%" G_GINT64_FORMAT "&limit=%d",
                                                task_id, *ret_after, PAGE);
        g_autoptr(Json) page = NULL;
        ExitCode code = remote_call(remote, "GET", path, NULL, &page);
        size_t i;
        Json *event;

        if (code != EXIT_CODE_OK)
            return code;
        json_array_foreach(json_object_get(page, "events"), i, event)
        {
            /* Some come after the end: what a model cost, a last word of a box. */
            if (!show(cli_out(cli), event, NULL))
                *ret_over = true;
            else if (strcmp(forge_text(event, "kind"), "task.retried") == 0)
                *ret_over = false;
        }
        more = json_is_true(json_object_get(page, "more")) && number(page, "next_after") > *ret_after;
        *ret_after = MAX(*ret_after, number(page, "next_after"));
    }
    return EXIT_CODE_OK;
}

ExitCode
task_log(Cli *cli, Remote *remote, const char *task_id, bool follow)
{
    gint64 after = 0;
    bool over = false;
    ExitCode code = show_all(cli, remote, task_id, &after, &over);

    if (code != EXIT_CODE_OK || !follow || over)
        return code;
    g_autofree char *path = g_strdup_printf("/api/v1/events?task=%s&after=%" G_GINT64_FORMAT, task_id, after);

    return follow_run_as(cli, remote, &(FollowSpec){.path = path, .limit = -1, .known = true, .show = show});
}
