/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <string.h>

#include "report/text.h"

static const char *const unit_names[] = {
    [REPORT_TESTS] = "tests",
    [REPORT_PACKAGES] = "packages",
    [REPORT_MIXED] = "mixed",
};
G_STATIC_ASSERT(G_N_ELEMENTS(unit_names) == REPORT_UNIT_MAX);

TestReport *
report_new(const char *runner)
{
    TestReport *report = g_new0(TestReport, 1);

    report->runner = g_strdup(runner);
    report->duration_ms = -1;
    report->failing = g_ptr_array_new_with_free_func(g_free);
    return report;
}

void
report_free(TestReport *report)
{
    if (report == NULL)
        return;
    g_free(report->runner);
    g_ptr_array_unref(report->failing);
    g_free(report);
}

void
report_add_failing(TestReport *report, const char *name)
{
    if (report->failing->len == REPORT_NAMES_MAX) {
        report->names_cut = true;
        return;
    }
    g_ptr_array_add(report->failing, text_dup_name(name, REPORT_NAME_MAX, &report->names_cut));
}

/* "jest, pytest" holds "jest". */
static bool
holds_runner(const char *list, const char *runner)
{
    g_auto(GStrv) names = g_strsplit(list, ", ", -1);

    return g_strv_contains((const char *const *)names, runner);
}

static void
merge_runner(TestReport *into, const char *list)
{
    g_auto(GStrv) names = g_strsplit(list, ", ", -1);

    for (char **name = names; *name != NULL; name++) {
        if (holds_runner(into->runner, *name))
            continue;
        g_autofree char *before = into->runner;

        into->runner = g_strdup_printf("%s, %s", before, *name);
    }
}

/* One that found nothing has no say in the unit. */
static ReportUnit
merged_unit(const TestReport *a, const TestReport *b)
{
    if (a->unit == b->unit || b->total == 0)
        return a->unit;
    return a->total == 0 ? b->unit : REPORT_MIXED;
}

void
report_merge(TestReport *into, const TestReport *other)
{
    merge_runner(into, other->runner);
    into->unit = merged_unit(into, other);
    into->total += other->total;
    into->passed += other->passed;
    into->failed += other->failed;
    into->skipped += other->skipped;
    into->errors += other->errors;
    if (other->duration_ms >= 0)
        into->duration_ms = MAX(into->duration_ms, 0) + other->duration_ms;
    for (guint i = 0; i < other->failing->len; i++)
        report_add_failing(into, other->failing->pdata[i]);
    into->names_cut |= other->names_cut;
    into->partial |= other->partial;
}

Json *
report_to_json(const TestReport *report)
{
    json_t *failing = json_array();

    for (guint i = 0; i < report->failing->len; i++)
        json_array_append_new(failing, json_string(report->failing->pdata[i]));
    json_t *object = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:b, s:b}", "runner", report->runner,
                               "unit", unit_names[report->unit], "total", (json_int_t)report->total, "passed",
                               (json_int_t)report->passed, "failed", (json_int_t)report->failed, "skipped",
                               (json_int_t)report->skipped, "errors", (json_int_t)report->errors, "failing",
                               failing, "names_cut", (int)report->names_cut, "partial", (int)report->partial);

    g_assert(object != NULL);
    if (report->duration_ms >= 0)
        json_object_set_new(object, "duration_ms", json_integer(report->duration_ms));
    return object;
}

void
report_json_shorten(Json *report)
{
    Json *names = json_object_get(report, "failing");
    size_t i, bytes = 0;
    Json *name;

    json_array_foreach(names, i, name)
    {
        bytes += json_string_length(name);
        if (bytes > REPORT_SHORT_BYTES)
            break;
    }
    if (i == json_array_size(names))
        return;
    while (json_array_size(names) > i)
        json_array_remove(names, json_array_size(names) - 1);
    json_object_set_new(report, "names_cut", json_true());
}
