/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "wire/frame.h"

/* One stream of one run in a file: the first RUN_LOG_HEAD bytes and, behind them, a ring with
 * the last RUN_LOG_TAIL.  A head page says how far it goes and which ranges were dropped
 * before they came here; it is written after the bytes, and writing the same bytes again is
 * harmless, so a kill at any moment leaves a log that is right.
 *
 * These calls block: they are for loop_offload() and start-up. */
typedef struct RunLog RunLog;

enum {
    RUN_LOG_HEAD = 8 << 20,
    RUN_LOG_TAIL = 8 << 20,
    RUN_LOG_GAPS_MAX = 64, /* further ones are joined to the last */
};

/* Of a stream's file in the folder of the box's logs. */
char *run_log_dup_name(guint32 run, FrameStream stream);

/* Made when it is not there. */
RunLog *run_log_open(int folder_fd, const char *name, GError **error);
void run_log_close(RunLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RunLog, run_log_close)

guint64 run_log_end(const RunLog *log); /* offset behind the last byte */
/* What lies below the end is skipped; what leaves a hole is ERR_INVALID. */
bool run_log_append(RunLog *log, guint64 offset, const void *bytes, size_t n, GError **error);
bool run_log_gap(RunLog *log, guint64 offset, guint64 n, GError **error);

/* Bytes read at `offset`, at most `size`; 0 with *ret_gap > 0: that many are not there; 0 with
 * *ret_gap == 0: the end.  -1: error. */
gssize run_log_read(RunLog *log, guint64 offset, void *bytes, size_t size, guint64 *ret_gap, GError **error);
