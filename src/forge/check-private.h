/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/check-row.h"
#include "forge/row.h"

/* One of the repository, inside a job. */
Json *check_run_load(RowJob *job, gint64 id, GError **error);
Json *status_load(RowJob *job, gint64 id, GError **error);
