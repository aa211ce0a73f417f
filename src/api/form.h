/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "json/json.h"

/* Members of request objects that more than one face reads. */

/* Valid UTF-8 whose every character prints. */
bool text_is_printable(const char *text);

/* {"NAME": "value"} as "NAME=value", NULL-terminated; NULL: an object without members, or
 * none. */
bool form_read_env(Json *object, char ***ret_env, GError **error);
/* A list of strings, NULL-terminated. */
bool form_read_words(Json *array, const char *name, char ***ret_words, GError **error);
/* 15, "15", "TERM" or "SIGTERM". */
bool form_read_signal(Json *value, int *ret_signal, GError **error);
