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

bool
hook_kind_is_told(const char *kind)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].kind, kind) == 0)
            return true;
    }
    return false;
}

static bool
is_name(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Squads know the log's own names. */
static bool
is_pattern(const char *name)
{
    for (const char *const *kind = event_kinds(); *kind != NULL; kind++) {
        if (event_kind_matches(name, *kind))
            return true;
    }
    return false;
}

bool
hook_event_is_known(HookOwnerKind kind, const char *name)
{
    return strcmp(name, "*") == 0 || strcmp(name, "ping") == 0 ||
           (kind == HOOK_OF_REPOSITORY ? is_name(name) : is_pattern(name));
}

bool
hook_kind_is_progress(const char *kind, bool *ret_ends)
{
    static const struct {
        const char *kind;
        bool ends;
    } kinds[] = {{"task.planned", false}, {"task.moved", false},    {"pr.opened", false},
                 {"human.asked", false},  {"task.completed", true}, {"task.failed", true},
                 {"task.cancelled", true}};

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) != 0)
            continue;
        if (ret_ends != NULL)
            *ret_ends = kinds[i].ends;
        return true;
    }
    return false;
}
