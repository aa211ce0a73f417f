/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "store/events.h"

/* The whole vocabulary, sorted; a test holds the order. */
/* clang-format off */
static const char *const kinds[] = {
    "agent.joined",
    "agent.left",
    "agent.said",
    "agent.thought",
    "backup.made",
    "backup.restored",
    "box.created",
    "box.degraded",
    "box.expired",
    "box.failed",
    "box.forked",
    "box.killed",
    "box.paused",
    "box.ready",
    "box.resumed",
    "box.snapshotted",
    "box.warned",
    "branch.created",
    "branch.removed",
    "budget.exceeded",
    "budget.warned",
    "check.reported",
    "checks.ended",
    "checks.started",
    "command.ended",
    "command.output",
    "command.started",
    "comment.added",
    "comment.changed",
    "commit.pushed",
    "context.updated",
    "council.closed",
    "council.opened",
    "door.allowed",
    "door.closed",
    "door.denied",
    "door.failed",
    "door.limited",
    "door.observed",
    "escape.suspected",
    "git.cloned",
    "git.failed",
    "git.fetched",
    "git.progressed",
    "github.changed",
    "hook.changed",
    "human.answered",
    "human.asked",
    "issue.closed",
    "issue.opened",
    "issue.reopened",
    "issue.updated",
    "kept.failed",
    "kept.removed",
    "key.created",
    "key.refused",
    "key.revoked",
    "knowledge.added",
    "label.changed",
    "loop.broken",
    "merge.cancelled",
    "merge.conflicted",
    "merge.failed",
    "merge.queued",
    "message.posted",
    "model.called",
    "opinion.given",
    "origin.refused",
    "pr.approved",
    "pr.closed",
    "pr.merged",
    "pr.opened",
    "pr.ready",
    "pr.reopened",
    "pr.updated",
    "provider.refused",
    "ranking.given",
    "repo.changed",
    "repo.created",
    "repo.removed",
    "review.changed",
    "review.requested",
    "review.submitted",
    "secret.misdirected",
    "server.started",
    "server.stopped",
    "session.opened",
    "squad.changed",
    "status.reported",
    "step.ended",
    "step.started",
    "task.cancelled",
    "task.completed",
    "task.created",
    "task.failed",
    "task.moved",
    "task.planned",
    "task.retried",
    "template.built",
    "template.failed",
    "template.progressed",
    "template.removed",
    "template.started",
    "tests.reported",
    "tool.used",
    NULL,
};
/* clang-format on */

const char *const *
event_kinds(void)
{
    return kinds;
}

static int
compare(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

bool
event_kind_is_known(const char *kind)
{
    return bsearch(kind, kinds, G_N_ELEMENTS(kinds) - 1, sizeof kinds[0], compare) != NULL;
}

/* Sorted too: what is in them are words of whoever did it. */
static const char *const said[] = {
    "agent.said",    "agent.thought",   "comment.added",  "comment.changed", "issue.opened",
    "issue.updated", "knowledge.added", "message.posted", "review.changed",  "review.submitted",
};

const char *
event_seen_by(const char *kind, const char *actor)
{
    if (bsearch(kind, said, G_N_ELEMENTS(said), sizeof said[0], compare) == NULL ||
        strcmp(actor, "coop") == 0)
        return "coop";
    return g_str_has_prefix(actor, "agent:") ? "agent" : "person";
}
