/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/task-log.h"

#include <string.h>

#include "cli/follow.h"
#include "cli/forge-call.h"
#include "cli/team-call.h"

enum { PAGE = 500, TIME_AT = 11, TIME_LEN = 8, OID_SHOWN = 8, STEP_COMPLETE = 6 };

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
words_problem(const Json *event, const Json *data, const char *text)
{
    return g_strdup_printf("%s: %s", text, forge_text(data, "problem"));
}

static char *
words_title(const Json *event, const Json *data, const char *text)
{
    return g_strdup_printf("%s: %s", text, any_text(data, "title", "name"));
}

static char *
words_box(const Json *event, const Json *data, const char *text)
{
    const char *agent = forge_text(data, "name");

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

    if (strcmp(state, "done") == 0)
        return g_strdup_printf("feature marked complete: %s", any_text(data, "title", "name"));
    return g_strdup_printf("%s %s: %s%s%s", text, state, any_text(data, "title", "name"),
                           why[0] != '\0' ? ": " : "", why);
}

static char *
words_commit(const Json *event, const Json *data, const char *text)
{
    const char *branch = any_text(data, "name", "branch"), *oid = any_text(data, "after", "head_oid");

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
words_review(const Json *event, const Json *data, const char *text)
{
    return g_strdup_printf("%s of #%" G_GINT64_FORMAT ": %s", text, number(data, "number"),
                           forge_text(data, "state"));
}

static char *
words_human(const Json *event, const Json *data, const char *text)
{
    const char *answer = forge_text(data, "answer");

    return g_strdup_printf("%s: %s", text, answer[0] != '\0' ? answer : any_text(data, "question", "text"));
}

static char *
words_planned(const Json *event, const Json *data, const char *text)
{
    return g_strdup_printf("%s: %" G_GINT64_FORMAT " steps, by %s", text, number(data, "steps"),
                           forge_text(data, "producer"));
}

/* Only what did not work. */
static char *
words_tool(const Json *event, const Json *data, const char *text)
{
    gint64 code = number(data, "exit_code");

    return code != 0 ? g_strdup_printf("%s %s: %s ended with %" G_GINT64_FORMAT,
                                       any_text(data, "agent", "role"), text, forge_text(data, "name"), code)
                     : NULL;
}

/* The checks of Coop's that no report of tests tells about. */
static char *
words_left(const Json *event, const Json *data, const char *text)
{
    g_autoptr(GString) said = g_string_new(text);
    guint told = 0;
    size_t i;
    const Json *check;

    json_array_foreach(json_object_get(data, "checks"), i, check)
    {
        if (json_is_true(json_object_get(check, "tests")))
            continue;
        g_string_append_printf(said, "%s %s ended with %" G_GINT64_FORMAT, told++ > 0 ? "," : ":",
                               forge_text(check, "name"), number(check, "exit_code"));
    }
    return told > 0 ? g_string_free(g_steal_pointer(&said), FALSE) : NULL;
}

static char *
words_over(const Json *event, const Json *data, const char *text)
{
    const Json *tests = json_object_get(data, "final_tests"), *why = json_object_get(data, "reasons");
    bool ready = json_is_true(json_object_get(data, "production_ready"));
    const char *reason = json_string_value(json_array_get(why, 0));
    g_autofree char *tail = ready            ? g_strdup("production-ready")
                            : reason != NULL ? g_strdup_printf("not production-ready: %s", reason)
                                             : g_strdup("not production-ready");

    return g_strdup_printf(
        "%s: tests total %" G_GINT64_FORMAT ", passed %" G_GINT64_FORMAT ", failed %" G_GINT64_FORMAT "; %s",
        text, number(tests, "total"), number(tests, "passed"), number(tests, "failed"), tail);
}

/* NULL: there is nothing to say. */
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
    {"task.planned", 1, OUT_GOOD, "council plans", words_planned},
    {"task.moved", 0, OUT_DIM, "task", words_moved},
    {"branch.created", 0, OUT_DIM, "branch", words_commit},
    {"pr.opened", 0, OUT_PLAIN, "pull request opened", words_pull},
    {"box.created", 2, OUT_PLAIN, "sandbox created", words_box},
    {"step.started", 0, OUT_PLAIN, "work begins", words_title},
    {"agent.said", 0, OUT_PLAIN, "says", words_said},
    {"tool.used", 0, OUT_DIM, "used", words_tool},
    {"agent.left", 4, OUT_PLAIN, "tests executed", words_left},
    {"commit.pushed", 3, OUT_PLAIN, "code generated", words_commit},
    {"tests.reported", 4, OUT_PLAIN, "tests executed", words_tests},
    {"step.ended", STEP_COMPLETE, OUT_PLAIN, "step", words_step},
    {"review.submitted", 0, OUT_PLAIN, "review", words_review},
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
    {"kept.failed", 0, OUT_BAD, "its files could not be kept", words_problem},
    {"kept.removed", 0, OUT_WARN, "what was kept of it made room for others", words_plain},
    {"box.expired", 7, OUT_PLAIN, "sandbox cleaned up", words_box},
    {"task.retried", 0, OUT_PLAIN, "tried again", words_plain},
    {"task.completed", 0, OUT_GOOD, "done", words_over},
    {"task.failed", 0, OUT_BAD, "failed", words_over},
    {"task.cancelled", 0, OUT_WARN, "cancelled", words_over},
};

/* A step of the plan that failed is none of the seven. */
static guint
step_of(const Json *data, guint step)
{
    const char *state = forge_text(data, "state");

    return step == STEP_COMPLETE && strcmp(state, "done") != 0 ? 0 : step;
}

static void
show_line(Out *out, const Json *event, guint step, OutStyle style, const char *text)
{
    g_autofree char *mark = step > 0 ? g_strdup_printf("[%u/7]", step) : g_strdup("     ");

    out_text(out, OUT_DIM, "%.*s ", TIME_LEN,
             strlen(forge_text(event, "at")) > TIME_AT ? forge_text(event, "at") + TIME_AT : "");
    out_text(out, style, "%s %s\n", mark, text);
}

static void
show_output_line(Out *out, const char *stream, const char *line)
{
    if (line[0] != '\0')
        out_text(out, OUT_DIM, "         %s: %s\n", stream, line);
}

/* What the last lines of a command were, where it failed.  An agent's tool tells both streams as they came,
 * and beside that what of it was on standard error. */
static void
show_output(Out *out, const Json *data, bool together)
{
    g_auto(GStrv) errors = g_strsplit(forge_text(data, "stderr"), "\n", 0);
    g_auto(GStrv) lines = g_strsplit(forge_text(data, "output"), "\n", 0);

    for (char **line = errors; !together && *line != NULL; line++)
        show_output_line(out, "stderr", *line);
    for (char **line = lines; *line != NULL; line++) {
        bool is_error = together && g_strv_contains((const char *const *)errors, *line);

        show_output_line(out, is_error ? "stderr" : "output", *line);
    }
}

/* Of the event that tells how tests went: a report of them, or the end of who was checked without one. */
static void
show_tests(Out *out, const Json *event, const char *kind, const Json *data)
{
    const Json *tests = json_is_object(json_object_get(data, "tests")) ? json_object_get(data, "tests")
                                                                       : data;
    const Json *passed = json_object_get(data, "passed");
    bool reported = strcmp(kind, "tests.reported") == 0, left = strcmp(kind, "agent.left") == 0;

    if ((reported && number(tests, "total") > 0 && number(tests, "failed") == 0) ||
        (left && json_is_true(passed)))
        show_line(out, event, 5, OUT_GOOD, "tests passed");
    else if ((reported && number(tests, "failed") > 0) || (left && json_is_false(passed)))
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

        if (text == NULL)
            continue;
        show_line(out, event, step_of(data, kinds[i].step), kinds[i].style, text);
        show_tests(out, event, kind, data);
        show_output(out, data, strcmp(kind, "tool.used") == 0);
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
