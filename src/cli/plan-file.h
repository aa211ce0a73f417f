/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"
#include "json/json.h"

/* A plan as a file: JSON, or the same as YAML.  Checked as the server would.  ERR_INVALID names the place. */
Json *plan_file_parse(const char *text, size_t len, GError **error);
/* For people to change. */
char *plan_file_format(const Json *plan);
/* $VISUAL, $EDITOR or vi on that file, until it ends; false: it failed. */
bool plan_file_edit(const char *path, GError **error);
