/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "daemon/serve-private.h"

/* Coop's own checks, and the merge queue that asks for them. */

static void
make_checks(Server *s)
{
    g_autoptr(GError) error = NULL;

    if (s->forge == NULL)
        return;
    s->receipt_key = receipt_key_open(s->config->home, &error);
    if (s->receipt_key == NULL)
        log_warn("daemon", "nothing can be checked", log_gerror(error));
    s->checks = checks_new(
        &(ChecksSpec){.forge = s->forge, .boxes = serve_box_host(s), .key = s->receipt_key});
}

static void
start_checks(Server *s)
{
    if (s->checks != NULL)
        checks_start(s->checks);
}

static void
stop_checks(Server *s)
{
    checks_free(s->checks);
}

static void
clear_checks(Server *s)
{
    receipt_key_free(s->receipt_key);
}

const ServePart part_checks = {
    .make = make_checks, .start = start_checks, .stop = stop_checks, .clear = clear_checks};

static void
add_suite(void *ctx, Repo *repo, const char *base_oid, const char *head_oid, gint64 number, const char *actor,
          ForgeJsonFunc done, void *data)
{
    const SuiteSpec spec = {.base_oid = base_oid, .head_oid = head_oid, .number = number, .actor = actor};

    checks_add(ctx, repo, &spec, done, data);
}

/* One that has ended meanwhile is none to be cancelled. */
static void
on_suite_cancelled(Json *value, const GError *error, void *data)
{
}

static void
cancel_suite(void *ctx, Repo *repo, const char *suite_id)
{
    checks_cancel(ctx, repo, suite_id, "coop", on_suite_cancelled, NULL);
}

static void
on_suite_ended(Repo *repo, const char *suite_id, const char *state, void *data)
{
    landings_suite_ended(data, repo, suite_id, state);
}

static void
make_landings(Server *s)
{
    if (s->checks == NULL)
        return;
    s->landings = landings_new(&(LandingsSpec){
        .forge = s->forge, .check = {.add = add_suite, .cancel = cancel_suite, .ctx = s->checks}});
    checks_listen(s->checks, on_suite_ended, s->landings);
}

static void
start_landings(Server *s)
{
    if (s->landings != NULL)
        landings_start(s->landings);
}

static void
stop_landings(Server *s)
{
    if (s->landings != NULL)
        checks_unlisten(s->checks, on_suite_ended, s->landings);
    landings_free(s->landings);
}

const ServePart part_landings = {.make = make_landings, .start = start_landings, .stop = stop_landings};
