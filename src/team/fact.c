/* SPDX-License-Identifier: Apache-2.0 */
#include "team/fact.h"

#include <string.h>

#include "forge/row.h"

enum {
    SPAWN_MS = 30 * 1000,
    SIMPLE_MS = 5 * 60 * 1000,
    CLONE_MS = 5 * 1000,
    MEMORY_BYTES = 500 * 1000 * 1000,
    HTTP_BAD = 400,
};

static void
put(FactList *list, FactName name, gint64 n, gint64 good, gint64 value)
{
    g_assert(list->len < FACTS_MAX);
    list->items[list->len++] = (Fact){.name = name, .class = "", .n = n, .good = good, .value = value};
}

/* One thing, which is as it should be or not. */
static void
put_one(FactList *list, FactName name, bool good)
{
    put(list, name, 1, good ? 1 : 0, 0);
}

static void
put_below(FactList *list, FactName name, gint64 value, gint64 limit)
{
    if (value > 0)
        put(list, name, 1, value < limit ? 1 : 0, value);
}

/* clang-format off */
static const char *const classes[] = {
    "agent", "agent_lost", "blocked", "box", "budget", "checks", "command", "conflict", "git", "loop", "memory",
    "merge", "model", "plan", "task", "tests", "timeout", "work", NULL,
};
/* clang-format on */

const char *const *
fact_classes(void)
{
    return classes;
}

static void
put_error(FactList *list, const char *class)
{
    g_assert(g_strv_contains(classes, class));
    put(list, FACT_ERROR, 1, 0, 0);
    list->items[list->len - 1].class = class;
}

static bool
is(const Json *data, const char *name, const char *value)
{
    return g_strcmp0(row_text(data, name), value) == 0;
}

static bool
has(const Json *data, const char *name)
{
    return json_is_integer(json_object_get(data, name));
}

/* ---- tasks ---- */

/* A pull request that never came shows at the end only. */
static void
read_missing_pull(const FactEvent *e, FactList *list)
{
    if (row_text(e->data, "repository_id") != NULL && row_int(e->data, "pull_number") == 0)
        put_one(list, FACT_PULLS, false);
}

static void
read_completed(const FactEvent *e, FactList *list)
{
    gint64 ms = row_int(e->data, "duration_ms");

    put(list, FACT_TASKS, 1, 1, ms);
    if (row_int(e->data, "steps") == 1)
        put_below(list, FACT_SIMPLE, ms, SIMPLE_MS);
    read_missing_pull(e, list);
}

static void
read_failed(const FactEvent *e, FactList *list)
{
    put(list, FACT_TASKS, 1, 0, row_int(e->data, "duration_ms"));
    put_error(list, "task");
    read_missing_pull(e, list);
}

static void
read_moved(const FactEvent *e, FactList *list)
{
    if (!is(e->data, "to", "blocked"))
        return;
    put_error(list, is(e->data, "from", "planning") ? "plan" : "blocked");
    if (is(e->data, "from", "preparing"))
        put_one(list, FACT_PULLS, false);
}

/* Each try ends, and only the last one decides; what was lost is no try. */
static void
read_step(const FactEvent *e, FactList *list)
{
    bool done = is(e->data, "state", "done"), failed = is(e->data, "state", "failed");

    if (failed)
        put_error(list, json_is_false(json_object_get(e->data, "passed")) ? "tests" : "work");
    if (done || (failed && row_is(e->data, "last")))
        put_one(list, FACT_FEATURES, done);
    if ((done || failed) && row_int(e->data, "try") == 1)
        put_one(list, FACT_FIRST, done);
}

/* ---- agents ---- */

static void
read_left(const FactEvent *e, FactList *list)
{
    const Json *scans = json_object_get(e->data, "scans");
    bool done = is(e->data, "state", "done"), lost = is(e->data, "state", "lost");

    if (row_text(e->data, "state") == NULL) /* of a room */
        return;
    put_below(list, FACT_SPAWN, row_int(e->data, "spawn_ms"), SPAWN_MS);
    put_below(list, FACT_MEMORY, row_int(e->data, "memory_bytes"), MEMORY_BYTES);
    if (row_int(scans, "total") > 0)
        put(list, FACT_SCANS, row_int(scans, "total"), row_int(scans, "passed"), 0);
    if (is(e->data, "state", "stopped"))
        return;
    put(list, FACT_AGENTS, 1, done ? 1 : 0, row_int(e->data, "duration_ms"));
    /* Another one takes the place of who was lost. */
    if (is(e->data, "kind", "review") && !lost)
        put_one(list, FACT_REVIEWS, done);
    if (!done)
        put_error(list, lost ? "agent_lost" : "agent");
}

static void
read_model(const FactEvent *e, FactList *list)
{
    if (row_int(e->data, "status") >= HTTP_BAD && !is(e->data, "error", "client_gone"))
        put_error(list, "model");
}

static void
read_budget(const FactEvent *e, FactList *list)
{
    put_error(list, "budget");
}

static void
read_loop(const FactEvent *e, FactList *list)
{
    put_error(list, "loop");
}

/* ---- pull requests ---- */

static void
read_opened(const FactEvent *e, FactList *list)
{
    if (e->has_task)
        put_one(list, FACT_PULLS, true);
}

static void
read_merged(const FactEvent *e, FactList *list)
{
    if (e->has_task)
        put_one(list, FACT_MERGES, true);
}

static void
read_closed(const FactEvent *e, FactList *list)
{
    if (e->has_task)
        put_one(list, FACT_MERGES, false);
}

static void
read_review(const FactEvent *e, FactList *list)
{
    bool approved = is(e->data, "state", "APPROVED");

    if (e->has_task && (approved || is(e->data, "state", "CHANGES_REQUESTED")))
        put_one(list, FACT_APPROVALS, approved);
}

static void
read_checks(const FactEvent *e, FactList *list)
{
    bool passed = is(e->data, "state", "passed");

    if (passed || is(e->data, "state", "failed"))
        put_one(list, FACT_CHECKS, passed);
    if (is(e->data, "state", "error"))
        put_error(list, "checks");
}

static void
read_conflict(const FactEvent *e, FactList *list)
{
    put_error(list, "conflict");
}

static void
read_merge(const FactEvent *e, FactList *list)
{
    put_error(list, "merge");
}

/* ---- boxes ---- */

static void
read_command(const FactEvent *e, FactList *list)
{
    bool good = is(e->data, "reason", "exit") && has(e->data, "exit_code") &&
                row_int(e->data, "exit_code") == 0;

    if (is(e->data, "reason", "stopped"))
        return;
    put(list, FACT_COMMANDS, 1, good ? 1 : 0, row_int(e->data, "duration_ms"));
    if (is(e->data, "reason", "timeout"))
        put_error(list, "timeout");
    else if (is(e->data, "reason", "oom"))
        put_error(list, "memory");
    else if (!good)
        put_error(list, "command");
}

static void
read_tests(const FactEvent *e, FactList *list)
{
    if (row_int(e->data, "total") > 0)
        put(list, FACT_TESTS, row_int(e->data, "total"), row_int(e->data, "passed"), 0);
}

static void
read_clone(const FactEvent *e, FactList *list)
{
    if (e->has_box)
        put_below(list, FACT_CLONE, MAX(row_int(e->data, "duration_ms"), 1), CLONE_MS);
}

static void
read_git(const FactEvent *e, FactList *list)
{
    put_error(list, "git");
    if (e->has_box && is(e->data, "operation", "clone"))
        put_one(list, FACT_CLONE, false);
}

/* One that is kept though its time is over lives on. */
static void
read_ended(const FactEvent *e, FactList *list)
{
    if (!row_is(e->data, "kept"))
        put(list, FACT_BOXES, 1, 1, row_int(e->data, "lived_ms"));
}

static void
read_box_failed(const FactEvent *e, FactList *list)
{
    put(list, FACT_BOXES, 1, 0, row_int(e->data, "lived_ms"));
    put_error(list, "box");
}

/* ---- the table ---- */

typedef void (*Reader)(const FactEvent *event, FactList *list);

/* clang-format off */
static const char *const kinds[] = {
    "agent.left", "box.expired", "box.failed", "box.killed", "budget.exceeded", "checks.ended",
    "command.ended", "git.cloned", "git.failed", "loop.broken", "merge.conflicted", "merge.failed",
    "model.called", "pr.closed", "pr.merged", "pr.opened", "review.submitted", "step.ended",
    "task.completed", "task.failed", "task.moved", "tests.reported", NULL,
};
static const Reader readers[] = {
    read_left, read_ended, read_box_failed, read_ended, read_budget, read_checks,
    read_command, read_clone, read_git, read_loop, read_conflict, read_merge,
    read_model, read_closed, read_merged, read_opened, read_review, read_step,
    read_completed, read_failed, read_moved, read_tests,
};
/* clang-format on */
G_STATIC_ASSERT(G_N_ELEMENTS(kinds) == G_N_ELEMENTS(readers) + 1);

const char *const *
fact_kinds(void)
{
    return kinds;
}

void
fact_read(const FactEvent *event, FactList *ret_list)
{
    ret_list->len = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(readers); i++) {
        if (strcmp(kinds[i], event->kind) == 0)
            readers[i](event, ret_list);
    }
}
