/* SPDX-License-Identifier: Apache-2.0 */
/* One try of a suite:
 *
 *     claim the row -> look (git) -> write the check runs -> a clean box -> receipt and end, in one row
 *
 * Whatever of Coop or of the machine fails in between puts the suite back, to be tried again; only what
 * the commands do decides. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/checks-private.h"

enum {
    REST_MS = 5000,
    WAIT_MAX_US = 15 * 60 * G_USEC_PER_SEC, /* for a box */
};

static const char no_checks[] =
    "this repository has no checks: put a coop.yaml with the commands at its root, or set 'checks' to "
    "\"none\" in its settings if it shall merge without any";

struct SuiteTry {
    guint refs;     /* the table's, and each answer that is waited for */
    Checks *checks; /* NULL: cancelled */
    Repo *repo;
    char *id, *base_oid, *head_oid;
    gint64 number, tries, created_us, began_us;
    CheckLook look;
    bool allow_none;
    Json *ids;      /* of the check runs */
    Json *commands; /* of the receipt */
    bool failed;    /* one of them did */
    char *template, *template_hash, *box_id;
    bool compared;
    CleanBox *box;
    bool ending;
    guint rest_ms;
};

static void
try_unref(void *data)
{
    SuiteTry *t = data;

    if (--t->refs > 0)
        return;
    check_look_clear(&t->look);
    g_clear_pointer(&t->ids, json_decref);
    g_clear_pointer(&t->commands, json_decref);
    repo_unref(t->repo);
    g_free(t->id);
    g_free(t->base_oid);
    g_free(t->head_oid);
    g_free(t->template);
    g_free(t->template_hash);
    g_free(t->box_id);
    g_free(t);
}

const char *
suite_try_id(const SuiteTry *t)
{
    return t->id;
}

Repo *
suite_try_repo(const SuiteTry *t)
{
    return t->repo;
}

bool
suite_try_is_ending(const SuiteTry *t)
{
    return t->ending;
}

Json *
suite_try_json(const SuiteTry *t)
{
    return json_pack("{s:s, s:I, s:s, s:I, s:I}", "repository_id", t->repo->id, "number",
                     (json_int_t)t->number, "head_oid", t->head_oid, "created_us", (json_int_t)t->created_us,
                     "tries", (json_int_t)t->tries);
}

void
suite_try_cancel(SuiteTry *t)
{
    if (t == NULL)
        return;
    t->checks = NULL;
    clean_box_cancel(g_steal_pointer(&t->box));
    try_unref(t);
}

/* ---- the end ---- */

static void
on_ended(Json *value, const GError *error, void *data)
{
    SuiteTry *t = data;
    const char *state = value != NULL ? row_text(value, "state") : NULL;

    if (error != NULL)
        log_warn("checks", "the end of a suite cannot be written", log_str("suite", t->id),
                 log_gerror(error));
    FAILPOINT("checks-ended");
    if (t->checks != NULL)
        checks_try_over(t->checks, t, state != NULL && strcmp(state, "queued") != 0 ? state : NULL,
                        error != NULL ? REST_MS : t->rest_ms);
    try_unref(t);
}

static void
write_end(SuiteTry *t, SuiteEnd *end)
{
    if (t->ending)
        return;
    t->ending = true;
    clean_box_cancel(g_steal_pointer(&t->box));
    end->id = t->id;
    end->tries = t->tries;
    t->refs++;
    suite_end(t->checks, t->repo, end, on_ended, t);
}

static char *
make_receipt(SuiteTry *t, const char *state, const char *problem, GError **error)
{
    const ReceiptKey *key = t->checks->spec.key;
    g_autofree char *name = g_strdup_printf("%s/%s", t->repo->owner, t->repo->name);
    ReceiptSpec spec = {.suite = t->id,
                        .repository = name,
                        .repository_id = t->repo->id,
                        .number = t->number,
                        .base_oid = t->base_oid,
                        .head_oid = t->head_oid,
                        .tree_oid = t->look.tree,
                        .compared = t->compared,
                        .result = state,
                        .problem = problem,
                        .source = t->look.plan != NULL ? t->look.plan->source : NULL,
                        .from_head = t->look.from_head,
                        .template = t->template,
                        .template_hash = t->template_hash,
                        .box_id = t->box_id,
                        .commands = t->commands,
                        .began_us = t->began_us,
                        .ended_us = clock_wall_us(),
                        .tries = t->tries,
                        .key = receipt_key_hex(key)};
    g_autoptr(Json) receipt = check_receipt_make(&spec);

    if (receipt == NULL) {
        err_set(error, ERR_INTERNAL, "the receipt cannot be made");
        return NULL;
    }
    return receipt_sign(key, receipt, error);
}

/* What the machine, or Coop, could not do.  Without a box one waits; what was cut is tried again. */
static void
give_back(SuiteTry *t, const GError *error)
{
    bool waits = err_kind(error) == ERR_UNAVAILABLE || err_kind(error) == ERR_LIMIT;
    if (t->checks == NULL)
        return;
    bool again = waits ? checks_may_wait(t->checks, t->id, WAIT_MAX_US) : t->tries < CHECKS_TRIES;
    SuiteEnd end = {.state = again ? "queued" : "error", .problem = error->message, .uncounted = waits};

    log_info("checks", again ? "a suite will be tried again" : "a suite could not be found out",
             log_str("suite", t->id), log_gerror(error));
    t->rest_ms = again ? REST_MS : 0;
    write_end(t, &end);
}

static void
decide(SuiteTry *t, const char *state, const char *problem)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *receipt = make_receipt(t, state, problem, &error);
    SuiteEnd end = {.state = state, .problem = problem, .receipt = receipt};

    if (receipt == NULL)
        give_back(t, error);
    else
        write_end(t, &end);
}

/* A tree that no box can have, a template that is not there: it will not be better the next time. */
static void
judge_error(SuiteTry *t, const GError *error)
{
    if (err_kind(error) == ERR_INVALID || err_kind(error) == ERR_NOT_FOUND)
        decide(t, "failed", error->message);
    else
        give_back(t, error);
}

/* ---- in the box ---- */

static void
on_row(Json *value, const GError *error, void *data)
{
    SuiteTry *t = data;

    if (error != NULL)
        give_back(t, error);
    try_unref(t);
}

static void
put_run(SuiteTry *t, guint index, CheckRow *row)
{
    const PlanCommand *command = t->look.plan->commands->pdata[index];
    g_autofree char *url = g_strdup_printf("%s/api/v1/repos/%s/%s/checks/%s",
                                           t->checks->spec.forge->spec.address, t->repo->owner, t->repo->name,
                                           t->id);

    row->details_url = url;
    row->id = json_integer_value(json_array_get(t->ids, index));
    row->suite = t->id;
    row->name = command->name;
    row->head_oid = t->head_oid;
    row->command = command->run;
    row->box_id = t->box_id;
    t->refs++;
    suite_put_run(t->checks, t->repo, row, on_row, t);
}

static void
on_filled(const BoxInfo *info, bool compared, void *ctx)
{
    SuiteTry *t = ctx;

    t->compared = compared;
    t->box_id = g_strdup(info->id);
    t->template = g_strdup(info->template);
    t->template_hash = g_strdup(info->template_hash);
    g_autofree char *shown = g_strdup_printf("%s %s", info->template, info->template_hash);

    t->refs++;
    suite_filled(t->checks, t->repo, &(SuiteFilled){t->id, t->box_id, shown}, on_row, t);
}

static void
on_began(guint index, void *ctx)
{
    CheckRow row = {.status = "in_progress", .started_us = clock_wall_us()};

    put_run(ctx, index, &row);
}

static char *
summary_of(const CommandResult *r)
{
    if (r->output.text == NULL)
        return g_strdup("It was not run: something before it failed.");
    if (strcmp(r->conclusion, "timed_out") == 0)
        return g_strdup("It did not end in time.");
    return g_strdup_printf("Exit code %d (%s).", r->exit_code, r->reason);
}

static void
on_command_ended(guint index, const CommandResult *r, void *ctx)
{
    SuiteTry *t = ctx;
    g_autofree char *tests = r->output.tests != NULL ? json_encode(r->output.tests) : NULL;
    g_autofree char *summary = summary_of(r);
    bool ran = r->output.text != NULL;
    gint64 now_us = clock_wall_us();
    CheckRow row = {.status = "completed",
                    .conclusion = r->conclusion,
                    .title = r->conclusion,
                    .summary = summary,
                    .output = r->output.text,
                    .has_exit_code = ran,
                    .exit_code = r->exit_code,
                    .reason = r->reason,
                    .output_sha256 = ran ? r->output.sha256 : NULL,
                    .output_bytes = (gint64)r->output.bytes,
                    .tests = tests,
                    .started_us = ran ? r->started_us : now_us,
                    .completed_us = ran ? r->ended_us : now_us};

    t->failed |= strcmp(r->conclusion, "success") != 0;
    json_array_append_new(t->commands, check_receipt_command(t->look.plan->commands->pdata[index], r));
    put_run(t, index, &row);
}

static void
on_box_done(const GError *error, void *ctx)
{
    SuiteTry *t = ctx;

    t->box = NULL;
    if (t->ending)
        return;
    if (error != NULL)
        judge_error(t, error);
    else
        decide(t, t->failed ? "failed" : "passed", NULL);
}

static void
begin_box(SuiteTry *t)
{
    static const CleanBoxEvents events = {on_filled, on_began, on_command_ended, on_box_done};
    g_autofree char *lease = g_strdup_printf("%s:%" G_GINT64_FORMAT, t->id, t->tries);
    CleanBoxSpec spec = {.forge = t->checks->spec.forge,
                         .boxes = t->checks->spec.boxes,
                         .repo = t->repo,
                         .lease = lease,
                         .tree = t->look.tree,
                         .time_s = t->look.time_s,
                         .links = t->look.links,
                         .plan = t->look.plan};

    t->box = clean_box_start(&spec, &events, t);
}

/* ---- the plan ---- */

static void
on_planned(Json *value, const GError *error, void *data)
{
    SuiteTry *t = data;
    Json *ids = json_object_get(value, "ids");

    if (t->checks == NULL)
        ;
    else if (error != NULL)
        give_back(t, error);
    else if (ids == NULL)
        checks_scan(t->checks); /* it was cancelled, which the rows say */
    else if (t->look.plan != NULL) {
        t->ids = json_incref(ids);
        begin_box(t);
    } else if (t->look.problem == NULL && t->allow_none)
        decide(t, "passed", NULL);
    else
        decide(t, "failed", t->look.problem != NULL ? t->look.problem : no_checks);
    try_unref(t);
}

static void
write_plan(SuiteTry *t)
{
    const CheckPlan *plan = t->look.plan;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autoptr(GPtrArray) commands = g_ptr_array_new();
    g_autofree char *source = plan == NULL        ? NULL
                              : t->look.from_head ? g_strconcat(plan->source, " of the head", NULL)
                                                  : g_strdup(plan->source);

    for (guint i = 0; plan != NULL && i < plan->commands->len; i++) {
        const PlanCommand *c = plan->commands->pdata[i];

        g_ptr_array_add(names, c->name);
        g_ptr_array_add(commands, c->run);
    }
    g_ptr_array_add(names, NULL);
    g_ptr_array_add(commands, NULL);
    t->refs++;
    suite_planned(t->checks, t->repo,
                  &(SuitePlanned){.id = t->id,
                                  .head_oid = t->head_oid,
                                  .tree_oid = t->look.tree,
                                  .source = source,
                                  .tries = t->tries,
                                  .names = (const char *const *)names->pdata,
                                  .commands = (const char *const *)commands->pdata},
                  on_planned, t);
}

static bool
look_work(GitRepo *git, void *data, GError **error)
{
    SuiteTry *t = data;

    return check_look(git, &t->look, error);
}

static void
on_looked(void *data, const GError *error)
{
    SuiteTry *t = data;

    if (t->checks == NULL)
        return;
    if (error == NULL)
        write_plan(t);
    else
        judge_error(t, error);
}

static bool
has_means(const Checks *checks, GError **error)
{
    if (checks->spec.boxes == NULL)
        return err_set(error, ERR_INTERNAL, "this server has no boxes to check in");
    return checks->spec.key != NULL || err_set(error, ERR_INTERNAL, "this server has no key for receipts");
}

static void
on_claimed(Json *value, const GError *error, void *data)
{
    SuiteTry *t = data;
    g_autoptr(GError) none = NULL;

    t->tries = row_int(value, "tries");
    t->allow_none = row_is(value, "allow_none");
    if (t->checks == NULL)
        ;
    else if (error != NULL)
        checks_try_over(t->checks, t, NULL, REST_MS);
    else if (t->tries == 0)
        checks_try_over(t->checks, t, NULL, 0); /* it ended while it was being looked up */
    else if (!has_means(t->checks, &none) ||
             (t->tries > CHECKS_TRIES && !err_set(&none, ERR_INTERNAL, "it was cut %d times", CHECKS_TRIES)))
        write_end(t, &(SuiteEnd){.state = "error", .problem = none->message});
    else {
        t->refs++;
        forge_read(t->checks->spec.forge, t->repo, "look for checks", look_work, on_looked, t, try_unref);
    }
    try_unref(t);
}

SuiteTry *
suite_try_start(Checks *checks, Repo *repo, const Json *row)
{
    SuiteTry *t = g_new0(SuiteTry, 1);

    *t = (SuiteTry){.refs = 2,
                    .checks = checks,
                    .repo = repo_ref(repo),
                    .id = g_strdup(row_text(row, "id")),
                    .base_oid = g_strdup(row_text(row, "base_oid")),
                    .head_oid = g_strdup(row_text(row, "head_oid")),
                    .number = row_int(row, "number"),
                    .created_us = row_int(row, "created_us"),
                    .began_us = clock_wall_us(),
                    .commands = json_array()};
    t->look.base_oid = t->base_oid;
    t->look.head_oid = t->head_oid;
    suite_claim(checks, repo, t->id, on_claimed, t);
    return t;
}
