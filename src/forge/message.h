/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "forge/diff.h"
#include "forge/message-core.h"

/* Commit messages for the server: the check of message-core.h as an error, and a writer that needs no
 * model. */

/* ERR_INVALID with every problem, and an example. */
bool message_check(const char *text, size_t n, GError **error);

/* What is known of a change beside its files; any may be NULL. */
typedef struct MessageHint {
    const char *type;                /* of MESSAGE_TYPES; NULL: found out by the paths */
    const char *title;               /* of the task: becomes the subject where it fits */
    const char *task, *agent, *role; /* trailers */
} MessageHint;

/* A message that passes message_check(), out of what changed: `files` is DiffFile, and there may be
 * `more` of them. */
char *message_write(const GPtrArray *files, guint more, const MessageHint *hint);
