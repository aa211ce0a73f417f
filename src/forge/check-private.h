/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/check-row.h"
#include "forge/row.h"

extern const RowTable check_table; /* alias k */

/* One of the repository, inside a job. */
Json *check_run_load(RowJob *job, gint64 id, GError **error);
Json *status_load(RowJob *job, gint64 id, GError **error);

/* ---- suites ---- */

extern const RowTable suite_table; /* alias s */

/* In a transaction that changed a pull request: its suite is queued if it needs one, and older ones are
 * cancelled. */
bool check_suite_want(RowJob *job, gint64 number, const char *actor, GError **error);
