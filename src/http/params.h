/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* "value; name=text; name=\"text\"", the form of Content-Type and Content-Disposition. */

/* True when what stands before the first ';' is `value`, in any case.  `*ret_params` is then
 * where params_next() begins. */
bool params_begin(const char *header, const char *value, const char **ret_params);

/* The next parameter at `*params`; empty ones are stepped over.  `*ret_name` and `*ret_text`
 * are NULL at the end.  In quotes "\"" and "\\" are unescaped; another backslash stands for
 * itself, since some clients send a Windows path as it is.  False: malformed. */
bool params_next(const char **params, char **ret_name, char **ret_text);
