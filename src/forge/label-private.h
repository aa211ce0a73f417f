/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/row.h"

/* Labels of one thread, inside a job. */
bool labels_change(RowJob *job, gint64 thread_id, ListChange how, const char *const *names, GError **error);
/* A new array; NULL with an error. */
Json *label_load(RowJob *job, const char *name, GError **error);
Json *labels_of_thread(RowJob *job, gint64 thread_id, GError **error);
char *label_dup_folded(const char *name);
