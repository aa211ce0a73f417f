/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/check-output.h"

#include <string.h>

enum { REPORT_MAX = 4 << 20 }; /* what is read for a report at once; then only the end */

struct CheckOutput {
    GString *head;
    guint8 tail[CHECK_OUTPUT_TAIL]; /* a ring: what came after the head */
    size_t at;                      /* where the next byte goes */
    guint64 bytes;
    GChecksum *digest;
    ReportReader *reader; /* NULL: has ended */
};

CheckOutput *
check_output_new(void)
{
    CheckOutput *o = g_new0(CheckOutput, 1);

    o->head = g_string_new(NULL);
    o->digest = g_checksum_new(G_CHECKSUM_SHA256);
    o->reader = report_reader_new();
    return o;
}

void
check_output_free(CheckOutput *o)
{
    if (o == NULL)
        return;
    g_string_free(o->head, TRUE);
    g_checksum_free(o->digest);
    g_clear_pointer(&o->reader, report_reader_free);
    g_free(o);
}

static void
keep_tail(CheckOutput *o, const guint8 *bytes, size_t n)
{
    if (n > CHECK_OUTPUT_TAIL) {
        bytes += n - CHECK_OUTPUT_TAIL;
        n = CHECK_OUTPUT_TAIL;
    }
    size_t first = MIN(n, CHECK_OUTPUT_TAIL - o->at);

    memcpy(o->tail + o->at, bytes, first);
    memcpy(o->tail, bytes + first, n - first);
    o->at = (o->at + n) % CHECK_OUTPUT_TAIL;
}

void
check_output_add(CheckOutput *o, ReportStream stream, const void *bytes, size_t n)
{
    size_t to_head = MIN(n, CHECK_OUTPUT_HEAD - o->head->len);

    g_checksum_update(o->digest, bytes, (gssize)n);
    if (o->bytes < REPORT_MAX)
        report_reader_feed(o->reader, stream, bytes, n);
    g_string_append_len(o->head, bytes, (gssize)to_head);
    keep_tail(o, (const guint8 *)bytes + to_head, n - to_head);
    o->bytes += n;
}

static void
append_tail(const CheckOutput *o, GString *text)
{
    guint64 behind = o->bytes - o->head->len;

    if (behind >= CHECK_OUTPUT_TAIL)
        g_string_append_len(text, (const char *)o->tail + o->at, (gssize)(CHECK_OUTPUT_TAIL - o->at));
    g_string_append_len(text, (const char *)o->tail, (gssize)MIN(behind, o->at));
}

static char *
kept_text(const CheckOutput *o)
{
    g_autoptr(GString) all = g_string_new_len(o->head->str, (gssize)o->head->len);
    guint64 behind = o->bytes - o->head->len;

    if (behind > CHECK_OUTPUT_TAIL)
        g_string_append_printf(all, "\n[%" G_GUINT64_FORMAT " bytes are left out here]\n",
                               behind - CHECK_OUTPUT_TAIL);
    append_tail(o, all);
    return g_utf8_make_valid(all->str, (gssize)all->len);
}

/* Summaries come last. */
static TestReport *
end_report(CheckOutput *o)
{
    g_autoptr(GString) tail = g_string_new(NULL);

    if (o->bytes >= REPORT_MAX) {
        report_reader_gap(o->reader, REPORT_STDOUT);
        report_reader_gap(o->reader, REPORT_STDERR);
        append_tail(o, tail);
        report_reader_feed(o->reader, REPORT_STDOUT, tail->str, tail->len);
    }
    return report_reader_end(o->reader);
}

void
check_output_end(CheckOutput *o, CheckOutputEnd *ret_end)
{
    g_autoptr(TestReport) report = end_report(o);

    g_clear_pointer(&o->reader, report_reader_free);
    *ret_end = (CheckOutputEnd){.text = kept_text(o), .bytes = o->bytes};
    g_strlcpy(ret_end->sha256, g_checksum_get_string(o->digest), sizeof ret_end->sha256);
    if (report == NULL)
        return;
    ret_end->tests = report_to_json(report);
    report_json_shorten(ret_end->tests);
}

void
check_output_end_clear(CheckOutputEnd *end)
{
    g_clear_pointer(&end->text, g_free);
    g_clear_pointer(&end->tests, json_decref);
}
