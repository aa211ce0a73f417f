/* SPDX-License-Identifier: Apache-2.0 */
/* What is said to agents about what Coop saw. */
#include <string.h>

#include "team/flow-private.h"

enum {
    FEEDBACK_MAX = 12 * 1024,
    OUTPUT_MAX = 2048, /* of one check */
    FAILING_MAX = 20,  /* names of tests */
};

char *
flow_cut(const char *text, size_t max)
{
    g_autofree char *valid = g_utf8_make_valid(text != NULL ? text : "", -1);

    if (strlen(valid) <= max)
        return g_steal_pointer(&valid);
    const char *end = g_utf8_find_prev_char(valid, valid + max + 1);

    return g_strndup(valid, (gsize)(end - valid));
}

/* The end says more than the beginning. */
static const char *
tail(const char *text, size_t max)
{
    size_t n = strlen(text);
    const char *at = n > max ? text + n - max : text;

    while ((*at & 0xc0) == 0x80)
        at++;
    return at;
}

static void
append_failing(GString *out, const Json *tests)
{
    const Json *failing = json_object_get(tests, "failing");
    size_t i;
    const Json *name;

    if (json_is_object(tests))
        g_string_append_printf(out, "Tests: %" G_GINT64_FORMAT " in all, %" G_GINT64_FORMAT " failed.\n",
                               row_int(tests, "total"), row_int(tests, "failed"));
    json_array_foreach(failing, i, name)
    {
        if (i < FAILING_MAX && json_is_string(name))
            g_string_append_printf(out, "- %s\n", json_string_value(name));
    }
}

static void
append_check(GString *out, const Json *check)
{
    const char *output = row_text(check, "output");

    if (row_int(check, "exit_code") == 0)
        return;
    g_string_append_printf(out, "\nCoop ran `%s` (%s): it ended with %" G_GINT64_FORMAT ".\n",
                           row_text(check, "run"), row_text(check, "name"), row_int(check, "exit_code"));
    append_failing(out, json_object_get(check, "tests"));
    if (output != NULL && output[0] != '\0')
        g_string_append_printf(out, "The end of what it said:\n%s\n", tail(output, OUTPUT_MAX));
}

char *
flow_feedback(const Json *agent)
{
    const Json *result = json_object_get(agent, "result");
    g_autoptr(GString) out = g_string_new(NULL);
    const char *problem = row_text(agent, "problem");
    size_t i;
    const Json *check;

    if (problem != NULL)
        g_string_append_printf(out, "%s\n", problem);
    json_array_foreach(json_object_get(result, "checks"), i, check) append_check(out, check);
    return out->len > 0 ? flow_cut(out->str, FEEDBACK_MAX) : NULL;
}

bool
flow_has_no_model(const Json *agent)
{
    return flow_is(agent, "state", "failed") &&
           flow_is(json_object_get(agent, "report"), "reason", "no_model");
}

char *
flow_summary_of(const Json *agent)
{
    const Json *checks = json_object_get(json_object_get(agent, "result"), "checks");
    const char *problem = row_text(agent, "problem");
    size_t i;
    const Json *check;

    if (problem != NULL)
        return flow_cut(problem, FLOW_WORDS_MAX);
    json_array_foreach(checks, i, check)
    {
        const Json *tests = json_object_get(check, "tests");

        if (row_int(check, "exit_code") == 0)
            continue;
        if (row_int(tests, "failed") > 0)
            return g_strdup_printf("%s: %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " tests failed",
                                   row_text(check, "name"), row_int(tests, "failed"),
                                   row_int(tests, "total"));
        return g_strdup_printf("%s ended with %" G_GINT64_FORMAT, row_text(check, "name"),
                               row_int(check, "exit_code"));
    }
    return g_strdup("nothing was changed");
}

static void
append_finding(GString *out, const Json *finding)
{
    const char *path = row_text(finding, "path"), *severity = row_text(finding, "severity");

    g_string_append(out, "- ");
    if (path != NULL)
        g_string_append_printf(out, "%s:%" G_GINT64_FORMAT ": ", path, row_int(finding, "line"));
    if (severity != NULL)
        g_string_append_printf(out, "(%s) ", severity);
    g_string_append_printf(out, "%s\n", row_text(finding, "body"));
}

static void
append_report(GString *out, const Json *agent)
{
    const Json *report = json_object_get(agent, "report");
    const char *summary = row_text(report, "summary");
    g_autofree char *seen = flow_feedback(agent);
    size_t i;
    const Json *finding;

    g_string_append_printf(out, "%s says:\n", row_text(agent, "archetype"));
    if (summary != NULL)
        g_string_append_printf(out, "%s\n", summary);
    json_array_foreach(json_object_get(report, "findings"), i, finding) append_finding(out, finding);
    if (seen != NULL)
        g_string_append(out, seen);
    g_string_append_c(out, '\n');
}

char *
flow_findings(const Json *agents, gint64 round)
{
    g_autoptr(GString) out = g_string_new(NULL);
    size_t i;
    const Json *agent;

    json_array_foreach(agents, i, agent)
    {
        bool looks = flow_is(agent, "kind", "test") || flow_is(agent, "kind", "review");

        if (looks && row_int(agent, "try") == round && flow_is(agent, "state", "done"))
            append_report(out, agent);
    }
    return flow_cut(out->str, FEEDBACK_MAX);
}
