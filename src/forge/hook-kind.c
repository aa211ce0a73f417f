/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/hook-private.h"

/* Events of the log and what those who receive hooks call them.  An event may have two names. */
typedef struct KindRow {
    const char *kind, *name;
    const char *action; /* NULL: what the event's data say */
    const char *member; /* only if the data have it; NULL: always */
} KindRow;

static const KindRow rows[] = {
    {"branch.created", "create"},
    {"branch.created", "push"},
    {"branch.removed", "delete"},
    {"branch.removed", "push"},
    {"check.reported", "check_run"},
    {"checks.ended", "check_suite", "completed"},
    {"comment.added", "issue_comment", "created"},
    {"comment.changed", "issue_comment"},
    {"commit.pushed", "push"},
    {"issue.closed", "issues", "closed"},
    {"issue.opened", "issues", "opened"},
    {"issue.reopened", "issues", "reopened"},
    {"issue.updated", "issues"},
    {"label.changed", "label"},
    {"pr.closed", "pull_request", "closed"},
    {"pr.merged", "pull_request", "closed"},
    {"pr.opened", "pull_request", "opened"},
    {"pr.ready", "pull_request", "ready_for_review"},
    {"pr.reopened", "pull_request", "reopened"},
    {"pr.updated", "pull_request"},
    {"review.changed", "pull_request_review", NULL, "review_id"},
    {"review.changed", "pull_request_review_comment", NULL, "line_comment_id"},
    {"review.requested", "pull_request", "review_requested"},
    {"review.submitted", "pull_request_review", "submitted"},
    {"status.reported", "status"},
};

bool
hook_next_name(const char *kind, const Json *data, size_t *at, HookName *ret_name)
{
    while (*at < G_N_ELEMENTS(rows)) {
        const KindRow *row = &rows[(*at)++];

        if (strcmp(row->kind, kind) != 0 ||
            (row->member != NULL && json_object_get(data, row->member) == NULL))
            continue;
        *ret_name = (HookName){row->name, row->action != NULL ? row->action : row_text(data, "action")};
        return true;
    }
    return false;
}

const char *const *
hook_kinds(void)
{
    static const char *const kinds[] = {"branch.*", "check.*", "checks.ended", "comment.*", "commit.pushed",
                                        "issue.*",  "label.*", "pr.*",         "review.*",  "status.*",
                                        NULL};

    return kinds;
}

bool
hook_event_is_known(const char *name)
{
    if (strcmp(name, "*") == 0 || strcmp(name, "ping") == 0)
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].name, name) == 0)
            return true;
    }
    return false;
}
