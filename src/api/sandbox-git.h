/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "box/box.h"
#include "forge/repo.h"

/* What the routes /api/v1/sandboxes/{id}/git/… share. */

enum { GIT_FORM_NAME_MAX = 2 * REPO_NAME_MAX + 1, GIT_FORM_WORD_MAX = 100 };

typedef void (*GitFunc)(ApiCall *call, Box *box, Json *body);
/* Finds the box, reads the body and calls `func`, a constant. */
void call_begin_git(ApiCall *call, const GitFunc *func);

/* `name` NULL: the one that the sandbox has, and NULL.  False: answered. */
bool call_find_repo(ApiCall *call, const char *name, Repo **ret_repo);
