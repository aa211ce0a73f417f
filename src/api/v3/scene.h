/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/v3/render.h"
#include "forge/row.h"

/* Issues, pull requests and what hangs on them, as GitHub writes them.  Each function takes a row as
 * the forge gives it (thread.h, comment.h, review.h, label.h, hook.h). */

/* Where it stands: a repository and its addresses. */
typedef struct V3Scene {
    const V3Place *place;
    const RepoInfo *info;
} V3Scene;

typedef Json *(*V3Render)(const V3Scene *scene, const Json *row);

/* A JSON string, as of printf(). */
Json *v3_format(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* Text; "" and nothing are null. */
Json *v3_maybe(const char *text);
/* Every entry of a list of rows. */
Json *v3_each(const V3Scene *scene, const Json *rows, V3Render render);

Json *v3_label(const V3Scene *scene, const Json *label);
/* Pull requests are issues too. */
Json *v3_issue(const V3Scene *scene, const Json *thread);
Json *v3_issue_comment(const V3Scene *scene, const Json *comment);

/* As lists have it. */
Json *v3_pull(const V3Scene *scene, const Json *thread);
/* One alone, of pull_get(): with what was counted, and whether it can be merged. */
Json *v3_pull_whole(const V3Scene *scene, const Json *thread);
/* clean, blocked, behind, dirty, draft, unknown. */
const char *v3_mergeable_state(const Json *thread);

Json *v3_review(const V3Scene *scene, const Json *review);
Json *v3_line_comment(const V3Scene *scene, const Json *comment);

Json *v3_hook(const V3Scene *scene, const Json *hook);
Json *v3_delivery(const V3Scene *scene, const Json *delivery);
/* With what was sent. */
Json *v3_delivery_whole(const V3Scene *scene, const Json *delivery);
