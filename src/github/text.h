/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "json/json.h"

/* Overwrites and frees; NULL is fine. */
void github_wipe(char *secret);

/* What an answer's body says of its failure, as one line for people; NULL: nothing.  `secret` does not
 * stand in it. */
char *github_failure_text(const Json *body, const char *secret);
/* One line of at most `max` bytes without control characters. */
char *github_clean(const char *text, size_t max);

/* A path below the base: each %s is one segment of it, escaped; %d a number. */
char *github_path(const char *pattern, ...);

static inline const char *
github_text(const Json *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static inline gint64
github_number(const Json *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}
