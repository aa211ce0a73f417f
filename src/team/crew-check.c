/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a step, run by Coop in the agent's box, one after the other.  They are logged runs, so what
 * they print and what their tests came to is seen by everybody who follows the box. */
#include <signal.h>
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "team/crew-private.h"

enum { MS_PER_S = 1000, TAIL_SLACK = 4 * CREW_OUTPUT_TAIL };

static const char mark[] = "coop-check";
static void next_check(Shift *s);

void
shift_check_free(void *check)
{
    ShiftCheck *c = check;

    g_free(c->name);
    g_free(c->run);
    g_free(c->workdir);
    g_strfreev(c->env);
    g_free(c);
}

/* ---- which ---- */

GPtrArray *
shift_told_checks(const Shift *s)
{
    Json *told = shift_told(s, "checks");
    GPtrArray *list;
    size_t i;
    Json *one;

    if (json_array_size(told) == 0)
        return NULL;
    list = g_ptr_array_new_with_free_func(shift_check_free);
    json_array_foreach(told, i, one)
    {
        const char *run = row_text(one, "run"), *name = row_text(one, "name");
        ShiftCheck *c = g_new0(ShiftCheck, 1);

        *c = (ShiftCheck){.name = g_strdup(name != NULL ? name : run),
                          .run = g_strdup(run),
                          .workdir = g_strdup(""),
                          .timeout_s = CREW_CHECK_S};
        if (run != NULL && list->len < CREW_CHECKS_MAX)
            g_ptr_array_add(list, c);
        else
            shift_check_free(c);
    }
    return list;
}

GPtrArray *
shift_planned_checks(const CheckPlan *plan)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(shift_check_free);

    for (guint i = 0; i < plan->commands->len; i++) {
        const PlanCommand *from = plan->commands->pdata[i];
        ShiftCheck *c = g_new0(ShiftCheck, 1);

        *c = (ShiftCheck){.name = g_strdup(from->name),
                          .run = g_strdup(from->run),
                          .workdir = g_strdup(from->workdir),
                          .env = g_strdupv(from->env),
                          .timeout_s = MIN(from->timeout_s, CREW_CHECK_S),
                          .is_setup = from->is_setup};
        g_ptr_array_add(list, c);
    }
    return list;
}

/* ---- what came of one ---- */

/* The last lines of what it printed. */
static char *
dup_tail(const GString *tail)
{
    const char *from = tail->str;

    if (tail->len > CREW_OUTPUT_TAIL) {
        from += tail->len - CREW_OUTPUT_TAIL;
        const char *line = strchr(from, '\n');

        from = line != NULL && line[1] != '\0' ? line + 1 : from;
    }
    return g_utf8_make_valid(from, -1);
}

static Json *
check_json(const ShiftCheck *c, const Run *run, const RunEnd *end, const Shift *s)
{
    const TestReport *report = run_test_report(run);
    Json *tests = report != NULL ? report_to_json(report) : json_null();
    g_autofree char *output = dup_tail(s->tail), *errors = dup_tail(s->err_tail);

    if (report != NULL)
        report_json_shorten(tests);
    return json_pack("{s:s, s:s, s:i, s:s, s:I, s:o, s:s, s:s, s:s}", "name", c->name, "run", c->run,
                     "exit_code", run_end_exit_code(end), "reason", run_reason_name(end->reason),
                     "duration_ms", (json_int_t)(end->duration_us / 1000), "tests", tests, "output", output,
                     "stderr", errors, "seen_by", "coop");
}

static bool
has_passed(const Run *run, const RunEnd *end)
{
    const TestReport *report = run_test_report(run);

    return end->reason == RUN_EXIT && end->code == 0 &&
           (report == NULL || (report->failed == 0 && report->errors == 0));
}

static void
keep_tail(GString *tail, const guint8 *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\0')
            g_string_append_c(tail, (char)bytes[i]);
    }
    if (tail->len > TAIL_SLACK)
        g_string_erase(tail, 0, (gssize)(tail->len - CREW_OUTPUT_TAIL));
}

static void
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    Shift *s = ctx;

    keep_tail(s->tail, bytes, n);
    if (stream == STREAM_STDERR)
        keep_tail(s->err_tail, bytes, n);
}

/* Who tests gets the coverage too, where the tools of the box tell it.  Only what passes is taken so: what
 * fails is run again as it is, because counting must not be what fails it. */
static bool
measures(const Shift *s, const ShiftCheck *c)
{
    return strcmp(shift_text(s, "kind"), "test") == 0 && !c->is_setup && !s->unmeasured;
}

static void
on_ended(Run *run, const RunEnd *end, void *ctx)
{
    g_autoptr(Shift) s = shift_ref(ctx);
    const ShiftCheck *c = s->checks->pdata[s->check];

    FAILPOINT("crew-checked");
    if (end->reason == RUN_STOPPED || end->reason == RUN_LOST) {
        g_clear_pointer(&s->check_run, run_unref);
        shift_lost(s, "its box ended while its work was checked");
        return;
    }
    bool passed = has_passed(run, end);

    if (!passed && measures(s, c)) {
        g_clear_pointer(&s->check_run, run_unref);
        s->unmeasured = true;
        next_check(s);
        return;
    }
    s->unmeasured = false;
    json_array_append_new(json_object_get(s->result, "checks"), check_json(c, run, end, s));
    s->checks_failed |= !passed;
    s->skip_checks |= c->is_setup && !passed;
    g_clear_pointer(&s->check_run, run_unref);
    s->check++;
    next_check(s);
}

void
shift_check_stop(Shift *s)
{
    if (s->check_run == NULL)
        return;
    run_untap(s->check_run);
    g_clear_pointer(&s->check_run, run_unref);
}

/* ---- one after the other ---- */

/* pytest takes words from its environment, node has to be given its own, Jest is given them behind the
 * command; thresholds of the repository are not what is asked here. */
static const char measuring[] =
    "cd -- \"$1\" || exit\n"
    "at=/tmp/coop-coverage-$$ run=$2\n"
    "mkdir -p \"$at\"\n"
    "if python3 -c 'import pytest_cov' 2>/dev/null; then\n"
    "    export COVERAGE_FILE=\"$at/data\"\n"
    "    export PYTEST_ADDOPTS=\"$PYTEST_ADDOPTS --cov --cov-report=term --cov-fail-under=0\"\n"
    "fi\n"
    "if node=$(command -v node); then\n"
    "    printf '#!/bin/sh\\nfor word; do\\n' >\"$at/node\"\n"
    "    printf '    [ \"$word\" != --test ] || exec %s --experimental-test-coverage \"$@\"\\n' \"$node\" "
    ">>\"$at/node\"\n"
    "    printf 'done\\nexec %s \"$@\"\\n' \"$node\" >>\"$at/node\"\n"
    "    chmod +x \"$at/node\"\n"
    "    PATH=$at:$PATH\n"
    "fi\n"
    "jest=\"--coverage --coverageReporters=text-summary --coverageDirectory=$at --coverageThreshold={}\"\n"
    "case $run in\n"
    "    jest|jest\\ *|npx\\ jest*) run=\"$run $jest\" ;;\n"
    "    npm\\ test|npm\\ run\\ test) ! grep -q '\"test\": *\"[^\"]*jest' package.json || run=\"$run -- "
    "$jest\" ;;\n"
    "esac\n"
    "exec /bin/sh -c \"$run\"\n";

static bool
start_check(Shift *s, const ShiftCheck *c, GError **error)
{
    static const RunTap tap = {on_output, NULL, on_ended};
    static const char script[] = "cd -- \"$1\" && exec /bin/sh -c \"$2\"";
    static const char *const ci[] = {"CI=true", NULL};
    g_autofree char *place = g_build_filename(s->workdir, c->workdir, NULL);
    g_auto(GStrv) env = c->env != NULL ? g_strdupv(c->env) : g_new0(char *, 1);
    guint n = g_strv_length(env);

    env = g_renew(char *, env, n + 2);
    env[n] = g_strdup(ci[0]);
    env[n + 1] = NULL;
    const RunSpec spec = {.argv = (const char *const[]){"/bin/sh", "-c", measures(s, c) ? measuring : script,
                                                        mark, place, c->run, NULL},
                          .env = (const char *const *)env,
                          .user = "",
                          .cwd = "",
                          .timeout_ms = c->timeout_s * MS_PER_S};

    g_string_truncate(s->tail, 0);
    g_string_truncate(s->err_tail, 0);
    s->check_run = box_start(s->box, &spec, "coop", error);
    if (s->check_run == NULL)
        return false;
    run_tap(s->check_run, &tap, s);
    return true;
}

static void
next_check(Shift *s)
{
    g_autoptr(GError) error = NULL;

    if (s->skip_checks || s->check == s->checks->len) {
        shift_proved(s);
        return;
    }
    if (!start_check(s, s->checks->pdata[s->check], &error))
        shift_lost(s, error->message);
}

/* One of an earlier life of the server may still run, and would be in the way. */
static void
end_old(Json *row, void *data)
{
    Shift *s = data;
    const char *word = json_string_value(json_array_get(json_object_get(row, "argv"), 3));
    Run *run = g_strcmp0(word, mark) == 0 ? box_find_run(s->box, (guint32)row_int(row, "run")) : NULL;

    if (run != NULL && !run_has_ended(run))
        run_signal(run, SIGKILL);
}

void
shift_check_all(Shift *s)
{
    s->check = 0;
    s->checks_failed = s->skip_checks = s->unmeasured = false;
    if (s->tail == NULL) {
        s->tail = g_string_new(NULL);
        s->err_tail = g_string_new(NULL);
    }
    box_each_command(s->box, end_old, s);
    next_check(s);
}
