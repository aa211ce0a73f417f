/* SPDX-License-Identifier: Apache-2.0 */
/* Through the merge queue.  What stands in the way becomes work for an agent, or a question. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "forge/pull.h"
#include "team/flow-private.h"

/* ---- rows ---- */

/* Which of them: the first that is set. */
typedef struct Land {
    const char *task_id;
    gint64 merge_id;     /* it is in the queue */
    bool merged;         /* it is done */
    Json *conflict;      /* the bundle */
    const char *fix;     /* what checks said */
    const char *blocked; /* why a person is needed */
    guint rounds;        /* else it is put into the queue again */
} Land;

static bool
run_land(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Land *land = data;
    g_autoptr(Json) rows = flow_rows_get(job, land->task_id, error);
    const Json *task = json_object_get(rows, "task");
    bool moved;

    if (rows == NULL)
        return false;
    if (!flow_is(task, "state", "landing") || !json_is_null(json_object_get(task, "ending")))
        return true;
    if (land->merged)
        return flow_move(job, task, "landing", "merged", &moved, error);
    if (!db_exec(job->tx, "UPDATE tasks SET merge_id = ?, updated_us = ? WHERE id = ?",
                 DB_ARGS(land->merge_id > 0 ? db_int(land->merge_id) : db_null(),
                         db_int(row_later_us(job, task)), db_text(land->task_id)),
                 error))
        return false;
    if (land->conflict != NULL)
        return flow_resolve(job, rows, land->conflict, land->rounds, error);
    if (land->fix != NULL)
        return flow_fix(job, rows, land->fix, land->rounds, error);
    return land->blocked == NULL || flow_block(job, task, &(FlowBlock){.problem = land->blocked}, error);
}

static const RowMember land_members[] = {ROW_AT_TEXT(Land, task_id), ROW_AT_JSON(Land, conflict),
                                         ROW_AT_TEXT(Land, fix), ROW_AT_TEXT(Land, blocked), ROW_AT_END};
static const RowOp land_op = {ROW_WRITES, sizeof(Land), land_members, run_land};

static void
write_land(FlowTask *t, Land land)
{
    land.task_id = t->id;
    land.rounds = flow_policy_int(flow_row(t), "rounds", t->flow->team->limits.rounds);
    flow_write(t, &land_op, &land);
}

/* ---- checks that failed ---- */

static void
append_check(GString *out, const Json *check)
{
    const char *output = row_text(check, "output"), *command = row_text(check, "command");

    if (flow_is(check, "conclusion", "success") || flow_is(check, "conclusion", "skipped"))
        return;
    g_string_append_printf(out, "Coop ran `%s` (%s) in a clean box: it did not pass.\n%s\n",
                           command != NULL ? command : "", row_text(check, "name"),
                           output != NULL ? output : "");
}

static void
on_suite(Json *value, const GError *error, void *data)
{
    FlowTask *t = data;
    g_autoptr(GString) out = g_string_new(NULL);
    const char *problem = row_text(value, "problem");
    size_t i;
    const Json *check;

    if (!flow_goes_on(t, error))
        return;
    json_array_foreach(json_object_get(value, "checks"), i, check) append_check(out, check);
    if (out->len == 0)
        g_string_append(out, problem != NULL ? problem : "The checks did not pass.");
    g_autofree char *cut = flow_cut(out->str, 12 * 1024);

    write_land(t, (Land){.fix = cut});
}

static void
on_suites(Json *value, const GError *error, void *data)
{
    FlowTask *t = data;
    Repo *repo = t->flow->closed ? NULL : flow_repo(t, NULL);
    const char *id = row_text(json_array_get(json_object_get(value, "items"), 0), "id");

    if (!flow_goes_on(t, error))
        return;
    if (id == NULL || repo == NULL)
        write_land(t, (Land){.fix = "The checks did not pass."});
    else
        checks_get(t->flow->team->spec.checks, repo, id, on_suite, t);
}

static void
fix_checks(FlowTask *t, Repo *repo)
{
    const SuiteFilter filter = {.number = row_int(flow_row(t), "pull_number"), .page = {.per_page = 1}};

    if (t->flow->team->spec.checks == NULL)
        write_land(t, (Land){.fix = "The checks did not pass."});
    else
        checks_list(t->flow->team->spec.checks, repo, &filter, on_suites, t);
}

/* ---- into the queue ---- */

static void
on_added(Json *value, const GError *error, void *data)
{
    if (!flow_goes_on(data, error))
        return;
    FAILPOINT("flow-merge");
    write_land(data, (Land){.merge_id = row_int(value, "id")});
}

static void
add(FlowTask *t, Repo *repo, const char *head_oid)
{
    const Json *task = flow_row(t);
    const LandingSpec spec = {.actor = "coop",
                              .number = row_int(task, "pull_number"),
                              .method = flow_policy_text(task, "merge"),
                              .head_oid = head_oid};

    landing_add(t->flow->team->spec.landings, repo, &spec, on_added, t);
}

typedef struct Rules {
    bool running, missing, failed, other;
} Rules;

/* What merging finds out by itself keeps nobody out of the queue. */
static Rules
read_rules(const Json *reasons, GString *ret_words)
{
    static const char *const missing[] = {"checks_missing", "checks_claimed", NULL};
    static const char *const passes[] = {"unknown", "conflicts", NULL};
    Rules rules = {0};
    size_t i;
    const Json *reason;

    json_array_foreach(reasons, i, reason)
    {
        const char *rule = row_text(reason, "rule");

        g_string_append_printf(ret_words, "%s%s", i > 0 ? "; " : "", row_text(reason, "text"));
        if (strcmp(rule, "checks_running") == 0)
            rules.running = true;
        else if (g_strv_contains(missing, rule))
            rules.missing = true;
        else if (strcmp(rule, "checks_failed") == 0)
            rules.failed = true;
        else if (!g_strv_contains(passes, rule))
            rules.other = true;
    }
    return rules;
}

/* Later, and not for ever. */
static void
try_later(FlowTask *t, const char *problem)
{
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, problem);

    flow_problem(t, error);
}

static void
on_asked(Json *value, const GError *error, void *data)
{
    if (flow_goes_on(data, error))
        try_later(data, "Coop's checks of the pull request did not come to their end");
}

/* They began when it was made ready, and could not be run. */
static void
check_again(FlowTask *t, Repo *repo)
{
    const SuiteAsk ask = {.actor = "coop", .number = row_int(flow_row(t), "pull_number")};

    checks_ask(t->flow->team->spec.checks, repo, &ask, on_asked, t);
}

static void
judge_pull(FlowTask *t, Repo *repo, const Json *pull)
{
    g_autoptr(GString) words = g_string_new("The pull request cannot be merged: ");
    Rules rules = read_rules(json_object_get(json_object_get(pull, "merge"), "reasons"), words);

    if (row_is(pull, "merged"))
        write_land(t, (Land){.merged = true});
    else if (!flow_is(pull, "state", "open"))
        write_land(t, (Land){.blocked = "The pull request was closed"});
    else if (rules.failed)
        fix_checks(t, repo);
    else if (rules.other)
        write_land(t, (Land){.blocked = words->str});
    else if (rules.running || (rules.missing && t->flow->team->spec.checks == NULL))
        flow_rest(t);
    else if (rules.missing)
        check_again(t, repo);
    else
        add(t, repo, row_text(pull, "head_oid"));
}

typedef struct Queue {
    FlowTask *t;
    Repo *repo; /* a reference */
} Queue;

static void
on_pull(Json *value, const GError *error, void *data)
{
    g_autofree Queue *q = data;
    g_autoptr(Repo) repo = q->repo;

    if (flow_goes_on(q->t, error))
        judge_pull(q->t, repo, value);
}

/* An entry that a server before this one added counts. */
static void
on_listed(Json *value, const GError *error, void *data)
{
    Queue *q = data;
    FlowTask *t = q->t;
    const Json *entry = json_array_get(json_object_get(value, "items"), 0);

    if (error == NULL && entry == NULL && !t->flow->closed) {
        pull_get(t->flow->team->spec.forge, q->repo, row_int(flow_row(t), "pull_number"), on_pull, q);
        return;
    }
    if (flow_goes_on(t, error))
        write_land(t, (Land){.merge_id = row_int(entry, "id")});
    repo_unref(q->repo);
    g_free(q);
}

void
flow_do_queue(FlowTask *t, const FlowChoice *choice)
{
    const LandingFilter filter = {.number = row_int(flow_row(t), "pull_number"), .page = {.per_page = 1}};
    g_autoptr(GError) error = NULL;
    Repo *repo = flow_repo(t, &error);

    if (repo == NULL) {
        flow_problem(t, error);
        return;
    }
    Queue *q = g_new0(Queue, 1);

    *q = (Queue){t, repo_ref(repo)};
    landing_list(t->flow->team->spec.landings, repo, &filter, on_listed, q);
}

/* ---- in the queue ---- */

static void
on_waited(Json *value, const GError *error, void *data)
{
    FlowTask *t = data;

    t->waiting = false;
    if (!t->flow->closed)
        flow_wake(t->flow, t->id);
    flow_task_unref(t);
}

/* Not an action: whoever stops the task does not wait for the queue. */
static void
wait_on(FlowTask *t, Repo *repo)
{
    gint64 id = row_int(flow_row(t), "merge_id");
    bool begins = !t->waiting;

    t->waiting = true;
    flow_rest(flow_task_ref(t));
    if (begins)
        landing_wait(t->flow->team->spec.landings, repo, id, LANDING_WAIT_MAX_MS, on_waited,
                     flow_task_ref(t));
    flow_task_unref(t);
}

static void
on_let_go(Json *value, const GError *error, void *data)
{
    if (flow_goes_on(data, error))
        try_later(data, "The merge queue did not take it");
}

static void
on_failed_entry(FlowTask *t, Repo *repo, const Json *entry)
{
    const char *reason = row_text(entry, "reason"), *problem = row_text(entry, "problem");

    if (g_strcmp0(reason, "checks") == 0)
        fix_checks(t, repo);
    else if (g_strcmp0(reason, "nothing") == 0)
        write_land(t, (Land){.blocked = "There is nothing to merge: the target has all of it"});
    else if (g_strcmp0(reason, "removed") == 0)
        write_land(t, (Land){.blocked = "Somebody took it out of the merge queue"});
    else if (g_strcmp0(reason, "failed") == 0 || g_strcmp0(reason, "target_moved") == 0)
        write_land(t, (Land){.blocked = problem != NULL ? problem : "The merge queue gave it up"});
    else
        team_run(t->flow->team, &land_op, &(Land){.task_id = t->id}, on_let_go, t);
}

static void
on_entry(Json *value, const GError *error, void *data)
{
    FlowTask *t = data;
    g_autoptr(GError) gone = NULL;
    Repo *repo = t->flow->closed ? NULL : flow_repo(t, &gone);
    Json *conflict = json_object_get(value, "conflict");

    if (!flow_goes_on(t, error != NULL ? error : gone))
        return;
    if (flow_is(value, "state", "landed"))
        write_land(t, (Land){.merged = true});
    else if (row_int(value, "ended_us") == 0)
        wait_on(t, repo);
    else if (json_is_object(conflict))
        write_land(t, (Land){.conflict = conflict});
    else
        on_failed_entry(t, repo, value);
}

void
flow_do_land(FlowTask *t, const FlowChoice *choice)
{
    g_autoptr(GError) error = NULL;
    Repo *repo = flow_repo(t, &error);

    if (repo == NULL)
        flow_problem(t, error);
    else
        landing_get(t->flow->team->spec.landings, repo, row_int(flow_row(t), "merge_id"), on_entry, t);
}
