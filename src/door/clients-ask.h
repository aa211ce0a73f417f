/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "json/json.h"

/* Asks the package clients of this machine where they get packages from.  Blocks, at most
 * CLIENTS_ASK_MS: for a thread.  `stop` (atomic) ends it early. */
enum { CLIENTS_ASK_MS = 60 * 1000, CLIENTS_URLS_MAX = 32 };

/* {"npm": {"urls": ["https://…"], "env": ["npm_config_registry=…"]}, "pip": …, "go": …, "cargo": …,
 *  "apt": …}: only those that are here.  No user name or password of a URL is in it. */
Json *clients_ask(gint *stop);

/* ---- for tests: out of what a client printed ---- */

/* Appends each http or https URL in `text` once, cut at its path's end, without user info. */
void clients_find_urls(const char *text, GPtrArray *ret_urls);
/* A value of "pip config list", such as index-url; NULL: none. */
char *clients_pip_value(const char *list, const char *name);
