/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "report/report.h"

/* The input is what a command printed: on one stream, and up to the first NUL on one, then on the
 * other. */

typedef struct Target {
    ReportReader *reader;
    ReportStream stream;
} Target;

static bool
feed(void *ctx, const guint8 *bytes, size_t n)
{
    const Target *target = ctx;

    report_reader_feed(target->reader, target->stream, bytes, n);
    return true;
}

static void
check_report(const TestReport *report)
{
    gint64 told = report->passed + report->failed + report->skipped;

    g_assert(report->passed >= 0 && report->failed >= 0 && report->skipped >= 0 && report->errors >= 0);
    g_assert(report->partial ? told <= report->total : told == report->total);
    g_assert(report->duration_ms >= -1);
    g_assert(report->failing->len <= REPORT_NAMES_MAX);
    for (guint i = 0; i < report->failing->len; i++) {
        const char *name = report->failing->pdata[i];

        g_assert(strlen(name) <= REPORT_NAME_MAX && g_utf8_validate(name, -1, NULL));
        for (const char *p = name; *p != '\0'; p++)
            g_assert((guint8)*p >= 0x20 && *p != 0x7f);
    }
}

static char *
end(ReportReader *reader)
{
    g_autoptr(TestReport) report = report_reader_end(reader);

    if (report == NULL)
        return NULL;
    check_report(report);
    g_autoptr(Json) json = report_to_json(report);

    return json_encode(json);
}

static char *
read_one(const guint8 *data, size_t n, size_t cut)
{
    g_autoptr(ReportReader) reader = report_reader_new();
    Target target = {reader, REPORT_STDOUT};

    fuzz_feed(data, n, cut, feed, &target);
    return end(reader);
}

/* The streams do not meet: it is the same however they are woven. */
static char *
read_both(const guint8 *data, size_t n, ReportStream first)
{
    const guint8 *nul = n > 0 ? memchr(data, '\0', n) : NULL;
    size_t half = nul != NULL ? (size_t)(nul - data) : n / 2;
    g_autoptr(ReportReader) reader = report_reader_new();
    Target out = {reader, REPORT_STDOUT};
    Target err = {reader, REPORT_STDERR};

    if (first == REPORT_STDOUT)
        fuzz_feed(data, half, half, feed, &out);
    fuzz_feed(data + half, n - half, n - half, feed, &err);
    if (first == REPORT_STDERR)
        fuzz_feed(data, half, half, feed, &out);
    return end(reader);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    g_autofree char *whole = read_one(data, n, n);
    g_autofree char *pieces = read_one(data, n, cut);

    g_assert(g_strcmp0(whole, pieces) == 0);
    if (cut != n)
        return;
    g_autofree char *one_way = read_both(data, n, REPORT_STDOUT);
    g_autofree char *other_way = read_both(data, n, REPORT_STDERR);

    g_assert(g_strcmp0(one_way, other_way) == 0);
}
