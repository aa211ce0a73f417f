/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

/* What paths tell of a change.  `files` is DiffFile. */
const char *message_type(const GPtrArray *files);
/* The folder they have in common; NULL: none that says something. */
char *message_scope(const GPtrArray *files);
