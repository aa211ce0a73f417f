/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/squad-private.h"
#include "team/task.h"

/* Rows of tasks, inside a job of the database. */

extern const RowTable task_table; /* "tasks t" with its squad and repository */

/* As task.h shows it; ERR_NOT_FOUND for what is another's. */
Json *task_row(RowJob *job, const TaskRef *ref, GError **error);
/* A row of task_table in the form that task.h shows. */
void task_shape(Json *row, gint64 now_us);
bool task_has_ended(const char *state);

extern const RowMember task_ref_members[]; /* of a TaskRef */
extern const RowTable question_table;      /* "questions" */

/* Plan, steps, agents, questions, what is kept, and the sums of it. */
bool task_add_details(RowJob *job, Json *task, GError **error);
