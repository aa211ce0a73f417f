/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/rows.h"
#include "json/json.h"

/* Rows as the API shows them, in a read job.  `owner` NULL: anybody's; `id` as box_host_find()
 * takes it, NULL: all that have ended, newest first. */
bool
rows_boxes_json(DbTx *tx, const char *id, const char *owner, guint limit, Json *ret_list, GError **error);
/* Oldest first; the newest `limit` of them. */
bool rows_commands_json(DbTx *tx, const char *box_id, guint limit, Json *ret_list, GError **error);
bool rows_command_json(DbTx *tx, const char *box_id, guint32 run, Json *ret_list, GError **error);
/* The same of a row that is in memory; `end` NULL: it goes on. */
Json *command_row_json(const CommandRow *row, const RunEnd *end, gint64 ended_us);
