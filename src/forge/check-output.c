/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/check-output.h"

#include <string.h>

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
    report_reader_feed(o->reader, stream, bytes, n);
    g_string_append_len(o->head, bytes, (gssize)to_head);
    keep_tail(o, (const guint8 *)bytes + to_head, n - to_head);
    o->bytes += n;
}

static char *
kept_text(const CheckOutput *o)
{
    g_autoptr(GString) all = g_string_new_len(o->head->str, (gssize)o->head->len);
    guint64 behind = o->bytes - o->head->len;

    if (behind > CHECK_OUTPUT_TAIL)
        g_string_append_printf(all, "\n[%" G_GUINT64_FORMAT " bytes are left out here]\n",
                               behind - CHECK_OUTPUT_TAIL);
    if (behind >= CHECK_OUTPUT_TAIL)
        g_string_append_len(all, (const char *)o->tail + o->at, (gssize)(CHECK_OUTPUT_TAIL - o->at));
    g_string_append_len(all, (const char *)o->tail, (gssize)MIN(behind, o->at));
    return g_utf8_make_valid(all->str, (gssize)all->len);
}

void
check_output_end(CheckOutput *o, CheckOutputEnd *ret_end)
{
    g_autoptr(TestReport) report = report_reader_end(o->reader);

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
