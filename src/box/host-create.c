/* SPDX-License-Identifier: Apache-2.0 */
/* Making a box.
 *
 * The keeper writes its own record before it makes anything, so the row need not come first: it
 * is written once the box is there, in one commit that says ready at once, while the first
 * command begins; beside the making it would only take a processor from it.  The caller is
 * answered after the commit.  Whatever is missing after a kill is found by the next start: a box
 * without a row is killed, a row without a box becomes an error.  A box of the pool is there
 * already. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "box/host-private.h"

typedef struct Caller {
    BoxCreatedFunc done;
    void (*usable)(Box *box, void *data);
    void *data;
} Caller;

typedef struct BoxCreate {
    Box *box;
    char *actor;
    GArray *callers; /* Caller; the first one's box it is, the others joined by lease */
    GError *error;
} BoxCreate;

/* ---- answers that are known at once ---- */

typedef struct Known {
    Box *box;
    GError *error;
    Caller caller;
} Known;

static void
answer_known(void *data)
{
    Known *k = data;

    k->caller.done(k->box, false, k->error, k->caller.data);
    box_unref(k->box);
    g_clear_error(&k->error);
    g_free(k);
}

/* Takes `error`. */
static void
answer_later(BoxHost *host, Box *box, GError *error, Caller caller)
{
    Known *k = g_new(Known, 1);

    *k = (Known){.box = box != NULL ? box_ref(box) : NULL, .error = error, .caller = caller};
    host_later(host, answer_known, k);
}

/* ---- both halves ---- */

static void
create_free(BoxCreate *c)
{
    box_unref(c->box);
    g_array_unref(c->callers);
    g_clear_error(&c->error);
    g_free(c->actor);
    g_free(c);
}

static void
create_answer(BoxCreate *c)
{
    Box *box = c->error == NULL ? c->box : NULL;
    Told *told = c->box->host->load.callers;

    if (box != NULL && told != NULL)
        told_add(told, box->row.id, box->row.life.born_us);
    c->box->create = NULL;
    for (guint i = 0; i < c->callers->len; i++) {
        const Caller *caller = &g_array_index(c->callers, Caller, i);

        caller->done(box, box != NULL && i == 0, c->error, caller->data);
    }
    create_free(c);
}

static void
on_failure_saved(Box *box, const GError *error, void *data)
{
    if (error == NULL && !box->host->closed)
        host_remove(box->host, box);
}

static void
create_killed(BoxCreate *c)
{
    g_clear_error(&c->error);
    err_set(&c->error, ERR_CONFLICT, "the box was killed while it was being made");
}

static void
create_failed(BoxCreate *c)
{
    Box *box = c->box;

    /* Who kills it meanwhile has decided its end already. */
    if (box->row.state != BOX_CREATING) {
        create_killed(c);
        return;
    }
    box->gone = true;
    lease_drop(box->host, box);
    box_set_state(box, BOX_ERROR, "failed");
    box->host->stats.failed++;
    box_save(box, "box.failed", c->actor,
             json_pack("{s:s, s:s}", "reason", "failed", "error", c->error->message), on_failure_saved, NULL);
    box_answer_waiters(box, NULL);
}

static void
create_succeeded(BoxCreate *c)
{
    Box *box = c->box;

    if (box->row.state != BOX_CREATING) {
        create_killed(c);
        return;
    }
    box_set_state(box, BOX_READY, NULL);
    box_open_door(box);
    box->host->stats.created++;
}

static void
create_settle(BoxCreate *c)
{
    BoxHost *host = host_ref(c->box->host);

    if (host->closed && c->error == NULL)
        err_set(&c->error, ERR_CANCELLED, "the server ends");
    if (c->error == NULL)
        create_succeeded(c);
    else if (!host->closed)
        create_failed(c);
    if (!host->closed)
        box_commands_flush(c->box);
    create_answer(c);
    if (!host->closed)
        pool_fill_soon(host);
    host_unref(host);
}

void
host_create_cancel(Box *box, const GError *error)
{
    BoxCreate *c = box->create;

    if (c == NULL)
        return;
    if (c->error == NULL)
        c->error = g_error_copy(error);
    create_answer(c);
}

static void
on_thrown_away(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    box_unref(data);
}

/* It is there and nobody will have it; if this fails, the next LIST finds it. */
static void
throw_away(Box *box)
{
    host_call_keeper(box->host, KEEPER_KILL, box, on_thrown_away, box_ref(box));
}

/* Only the first caller's: the others find it when it is ready. */
static void
tell_usable(const BoxCreate *c)
{
    const Caller *caller = &g_array_index(c->callers, Caller, 0);

    if (caller->usable != NULL)
        caller->usable(c->box, caller->data);
}

static void
close_all(const int fds[KEEPER_FDS])
{
    for (int i = 0; i < KEEPER_FDS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
}

typedef struct RowJob {
    Box *box; /* whose `create` it is, unless the host was closed meanwhile */
    BoxRow row;
    char *actor;
} RowJob;

static bool
row_work(DbTx *tx, void *data, GError **error)
{
    const RowJob *job = data;
    const BoxRow *row = &job->row;
    g_autoptr(Json) object = json_pack("{s:s, s:s, s:b, s:s?, s:s?}", "template", row->facts.template,
                                       "owner", row->facts.owner, "from_pool", row->facts.from_pool, "name",
                                       row->facts.name, "lease", row->facts.lease);
    g_autofree char *text = json_encode(object);
    const char *task = row->facts.task_id;

    return rows_put_box(tx, row, error) &&
           rows_event(tx, "box.created", job->actor, task, row->id, text, error) &&
           (row->state != BOX_READY || rows_event(tx, "box.ready", job->actor, task, row->id, NULL, error));
}

static void
row_done(void *data, const GError *error)
{
    Box *box = ((RowJob *)data)->box;
    BoxCreate *c = box->create;

    FAILPOINT("box-create-row");
    if (c == NULL)
        return;
    if (error != NULL && c->error == NULL) {
        c->error = g_error_copy(error);
        throw_away(box);
    }
    create_settle(c);
}

static void
row_free(gpointer data)
{
    RowJob *job = data;

    box_row_clear(&job->row);
    box_unref(job->box);
    g_free(job->actor);
    g_free(job);
}

static void
write_row(const BoxCreate *c)
{
    Box *box = c->box;
    RowJob *job = g_new0(RowJob, 1);

    job->box = box_ref(box);
    job->actor = g_strdup(c->actor);
    box_row_copy(&job->row, &box->row);
    if (c->error == NULL && box->row.state == BOX_CREATING)
        job->row.state = BOX_READY;
    db_write(box->host->spec.db, row_work, row_done, job, row_free);
    box_commands_flush(box);
}

static void
on_made(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    BoxCreate *c = data;
    Box *box = c->box;

    FAILPOINT("box-create-made");
    if (error != NULL) {
        c->error = g_error_copy(error);
    } else if (box->row.state != BOX_CREATING) { /* its end is on the way */
        close_all(fds);
    } else if (!box_attach(box, answer, fds, NULL, &c->error)) {
        throw_away(box);
    } else {
        tell_usable(c);
    }
    if (box->host->closed)
        create_settle(c);
    else
        write_row(c);
}

/* ---- the request ---- */

void
host_fill_create(BoxHost *host, const Template *template, const KeeperLimits *limits, const char *id,
                 KeeperRequest *ret_request)
{
    KeeperRequest *r = ret_request;

    *r = (KeeperRequest){.verb = KEEPER_CREATE,
                         .flags = template->sudo ? KEEPER_SUDO : 0,
                         .door_port = host->spec.door_port,
                         .low_ports = template->low_ports,
                         .limits = *limits};
    memcpy(r->box, id, KEEPER_ID_LEN);
    memcpy(r->hostname, id, KEEPER_ID_LEN);
    r->n_layers = MIN(template->n_layers, (guint)KEEPER_LAYERS_MAX);
    for (guint i = 0; i < r->n_layers; i++)
        g_strlcpy(r->layers[i], template->layers[i], sizeof r->layers[i]);
}

static bool
check_room(BoxHost *host, GError **error)
{
    if (host->off != NULL)
        return err_set(error, ERR_UNAVAILABLE, "boxes are off: %s", host->off);
    if (host->keeper == NULL || !keeper_client_is_ready(host->keeper))
        return err_set(error, ERR_UNAVAILABLE, "the keeper of the boxes is away");
    return host_check_free(host, error);
}

static void
begin(BoxHost *host, Box *box, const BoxSpec *spec, const BoxFacts *facts, Caller caller)
{
    BoxRow *row = &box->row;
    BoxCreate *c = g_new0(BoxCreate, 1);

    row->facts = *facts;
    row->state = BOX_CREATING;
    row->created_us = row->updated_us = row->last_used_us = clock_wall_us();
    box_life_begin(&row->life, clock_mono_us(),
                   spec->lifetime_ms != 0 ? spec->lifetime_ms : host->spec.lifetime_ms,
                   spec->idle_ms != 0 ? spec->idle_ms : host->spec.idle_ms);
    *c = (BoxCreate){.box = box_ref(box), .actor = g_strdup(spec->actor != NULL ? spec->actor : "coop")};
    c->callers = g_array_new(FALSE, FALSE, sizeof(Caller));
    g_array_append_val(c->callers, caller);
    box->create = c;
    host_add(host, box);
}

static void
make(BoxHost *host, const BoxSpec *spec, Template *template, const KeeperLimits *limits, Caller caller)
{
    BoxFacts facts;
    KeeperRequest request;

    wish_facts(spec, template, limits, host->env, &facts);
    g_autoptr(Box) box = pool_take(host, template, limits);

    facts.from_pool = box != NULL;
    if (box == NULL)
        box = box_new(host, NULL);
    if (box->template == NULL)
        box->template = template_ref(template);
    begin(host, box, spec, &facts, caller);
    if (facts.from_pool) {
        host->stats.from_pool++;
        tell_usable(box->create);
        write_row(box->create);
    } else {
        host_fill_create(host, template, limits, box->row.id, &request);
        keeper_client_call(host->keeper, &request, on_made, box->create);
        FAILPOINT("box-create-sent");
    }
}

/* True: a live box, or one being made, has this lease. */
static bool
join_lease(BoxHost *host, const BoxSpec *spec, Caller caller)
{
    Box *box = lease_find(host, spec->owner, spec->lease);

    if (box == NULL)
        return false;
    if (box->create != NULL) {
        g_array_append_val(box->create->callers, caller);
        return true;
    }
    box_touch(box);
    answer_later(host, box, NULL, caller);
    return true;
}

static void
create(BoxHost *host, const BoxSpec *spec, Caller caller)
{
    GError *error = NULL;
    KeeperLimits limits;

    if (host->off == NULL && join_lease(host, spec, caller))
        return;
    g_autoptr(Template) template = template_store_get(
        host->spec.templates, spec->template != NULL ? spec->template : host->spec.default_template, &error);

    if (template == NULL || !wish_limits(&spec->limits, template, &host->spec, &limits, &error) ||
        !host_check_caps(host, spec->owner, &error) || !check_room(host, &error))
        answer_later(host, NULL, error, caller);
    else
        make(host, spec, template, &limits, caller);
}

/* ---- before the rows are read ---- */

typedef struct Waiting {
    BoxWish *wish;
    Caller caller;
} Waiting;

void
host_create_waiting(BoxHost *host, const GError *error)
{
    Waiting *w;

    while ((w = g_queue_pop_head(&host->load.waiting)) != NULL) {
        if (error != NULL)
            answer_later(host, NULL, g_error_copy(error), w->caller);
        else
            create(host, box_wish_spec(w->wish), w->caller);
        box_wish_free(w->wish);
        g_free(w);
    }
}

void
box_host_create(BoxHost *host, const BoxSpec *spec, BoxCreatedFunc done, void *data)
{
    Caller caller = {.done = done, .usable = spec->usable, .data = data};
    GError *error = NULL;

    if (!wish_check(spec, &error)) {
        answer_later(host, NULL, error, caller);
    } else if (host->load.told) {
        create(host, spec, caller);
    } else if (host->load.waiting.length >= HOST_WAITING_MAX) {
        err_set(&error, ERR_LIMIT, "%d boxes wait for the server to be ready", HOST_WAITING_MAX);
        answer_later(host, NULL, error, caller);
    } else {
        Waiting *w = g_new(Waiting, 1);

        *w = (Waiting){.wish = box_wish_new(spec), .caller = caller};
        g_queue_push_tail(&host->load.waiting, w);
    }
}
