/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/comment.h"
#include "forge/row.h"

/* Threads inside a job. */

/* One comment under any thread of the repository. */
Json *comment_load(RowJob *job, gint64 id, GError **error);
/* comment_put() inside a job. */
bool comment_put_row(RowJob *job, const CommentSpec *spec, Json **ret_value, GError **error);
bool comment_edit_row(RowJob *job, const CommentEdit *edit, Json **ret_value, GError **error);

extern const RowTable thread_table; /* alias t; without labels */

/* The row with its labels; `kind` NULL: either. */
Json *thread_load(RowJob *job, gint64 number, const char *kind, GError **error);
bool thread_add_labels(RowJob *job, Json *thread, GError **error);
/* ERR_CONFLICT: it is closed. */
bool thread_require_open(const Json *thread, GError **error);

typedef struct ThreadNew {
    const char *kind, *actor, *title, *body, *task_id;
    const char *const *labels;
    const char *head, *base, *head_oid, *base_oid; /* of pull requests; else NULL */
    bool draft;
} ThreadNew;
/* Gives it its number; the event is the caller's. */
bool thread_insert(RowJob *job, const ThreadNew *new, Json **ret_thread, GError **error);

/* thread_label() inside a job. */
bool thread_label_row(RowJob *job, const ThreadNames *names, Json **ret_value, GError **error);
/* updated_us, and nothing else. */
bool thread_touch(RowJob *job, const Json *thread, GError **error);
/* `kind` with the thread's number and title, and what `more` (taken; may be NULL) says beyond them. */
bool thread_event(RowJob *job, const char *kind, const char *actor, const Json *thread, Json *more,
                  GError **error);
/* Closes or opens it again, with the event; `reason` may be NULL. */
bool thread_set_state(RowJob *job, const Json *thread, const char *state, const char *reason,
                      const char *actor, GError **error);
