/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/hook.h"

/* What Slack is told. */

/* Untrusted words inside a message: what would be a link, or call somebody, is text. */
char *slack_escape(const char *text);
/* "Task #12 (working): title", with its pull request and what it waits for; of a task as task_get() shows it.
 */
char *slack_status(const Json *task);
/* A HookRender for tasks: how it goes; NULL for what is no news. */
Json *slack_progress(Repo *repo, const HookEvent *event, void *ctx);
