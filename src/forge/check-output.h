/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "report/report.h"
#include "json/json.h"

/* What a command prints: its beginning and its end are kept, everything is counted and goes into the
 * digest, as it came from both of its streams; a test runner's report is read along. */
typedef struct CheckOutput CheckOutput;

enum {
    CHECK_OUTPUT_HEAD = 16 * 1024,
    CHECK_OUTPUT_TAIL = 46 * 1024, /* with the line between within CHECK_TEXT_MAX */
    CHECK_DIGEST_HEX = 64,
};

CheckOutput *check_output_new(void);
void check_output_free(CheckOutput *output);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CheckOutput, check_output_free)
void check_output_add(CheckOutput *output, ReportStream stream, const void *bytes, size_t n);

/* Once, when nothing more comes. */
typedef struct CheckOutputEnd {
    char *text; /* UTF-8 */
    guint64 bytes;
    char sha256[CHECK_DIGEST_HEX + 1];
    Json *tests; /* report.h; NULL: no runner was recognised */
} CheckOutputEnd;
void check_output_end(CheckOutput *output, CheckOutputEnd *ret_end);
void check_output_end_clear(CheckOutputEnd *end);
