/* SPDX-License-Identifier: Apache-2.0 */
/* How a box ends.
 *
 * 1. An end is decided once (`ending`); who comes later joins.
 * 2. The keeper's GONE, or a LIST that does not name the box, is what makes it true; only then
 *    the row gets its end, with the event, in one transaction.
 * 3. The decision is written down before the keeper is asked: a server that is killed between
 *    the two finds it in the row, and knows why the box is not there any more.  A store that
 *    cannot write keeps no box alive. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "box/box-private.h"
#include "box/host-private.h"
#include "box/state.h"

void
box_answer_waiters(Box *box, const GError *error)
{
    g_autoptr(GArray) waiters = box->ending.waiters;

    box->ending.waiters = g_array_new(FALSE, FALSE, sizeof(BoxWaiter));
    for (guint i = 0; i < waiters->len; i++) {
        const BoxWaiter *w = &g_array_index(waiters, BoxWaiter, i);

        w->done(box, error, w->data);
    }
}

/* ---- the end is there ---- */

static void
on_end_saved(Box *box, const GError *error, void *data)
{
    FAILPOINT("box-kill-row");
    /* Nothing of it is left, whether that could be written down at once or not. */
    box_answer_waiters(box, NULL);
    if (!box->host->closed && error == NULL && g_hash_table_size(box->commands) == 0)
        host_remove(box->host, box);
}

static Json *
end_data(const Box *box, const KeeperAnswer *answer)
{
    const BoxRow *row = &box->row;
    Json *data = json_pack("{s:s, s:s, s:I, s:I}", "reason", row->reason, "template", row->facts.template,
                           "executions", (json_int_t)row->executions, "lived_ms",
                           (json_int_t)MAX(clock_wall_us() - row->created_us, 0) / 1000);

    if (answer != NULL)
        json_object_set_new(data, "exit_code", json_integer(answer->exit_code));
    if (answer != NULL && answer->oom_kills > 0)
        json_object_set_new(data, "oom_kills", json_integer(answer->oom_kills));
    return data;
}

static void
count_end(BoxHost *host, const char *kind)
{
    if (strcmp(kind, "box.killed") == 0)
        host->stats.killed++;
    else if (strcmp(kind, "box.expired") == 0)
        host->stats.expired++;
    else
        host->stats.failed++;
}

static void
finish(Box *box, BoxState state, const char *reason, const char *kind, const KeeperAnswer *answer)
{
    g_autofree char *copy = g_strdup(reason);

    box->gone = true;
    box_close_door(box);
    box_set_state(box, state, copy);
    lease_drop(box->host, box);
    count_end(box->host, kind);
    log_info("box", "ended", log_str("box", box->row.id), log_str("reason", copy));
    box_save(box, kind, box->ending.actor, end_data(box, answer), on_end_saved, NULL);
}

void
box_gone(Box *box, const KeeperAnswer *answer)
{
    const BoxEnding *e = &box->ending;

    if (box->gone)
        return;
    FAILPOINT("box-kill-gone");
    if (e->reason != NULL)
        finish(box, e->state, e->reason, e->kind, answer);
    else
        finish(box, BOX_ERROR, answer->oom_kills > box->oom_kills ? "oom" : "exited", "box.failed", answer);
}

void
box_vanished(Box *box, BoxState state, const char *reason)
{
    const BoxEnding *e = &box->ending;

    if (box->gone)
        return;
    if (e->reason != NULL)
        finish(box, e->state, e->reason, e->kind, NULL);
    else
        finish(box, state, reason, state == BOX_TERMINATED ? "box.killed" : "box.failed", NULL);
}

/* ---- on the way there ---- */

static void
on_kill_answer(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    Box *box = data;

    /* Without an answer the next LIST, or the tick, tries again. */
    if (error == NULL)
        box_gone(box, answer);
    else if (box->host->closed)
        box_answer_waiters(box, error);
    box_unref(box);
}

void
box_send_kill(Box *box)
{
    box->ending.sent_us = clock_mono_us();
    host_call_keeper(box->host, KEEPER_KILL, box, on_kill_answer, box_ref(box));
    FAILPOINT("box-kill-sent");
}

static void
on_decision_saved(Box *box, const GError *error, void *data)
{
    box->ending.written = true;
    if (box->gone || box->host->closed)
        return;
    if (box->link != NULL)
        box_link_stop(box->link);
    box_send_kill(box);
}

void
box_stop(Box *box, BoxState state, const char *reason, const char *kind, const char *actor)
{
    BoxEnding *e = &box->ending;

    if (box->gone || box->row.state == BOX_STOPPING)
        return;
    if (e->reason == NULL) {
        e->state = state;
        e->reason = g_strdup(reason);
        e->kind = kind;
        e->actor = g_strdup(actor);
    }
    lease_drop(box->host, box);
    box_close_door(box);
    box_set_state(box, BOX_STOPPING, e->reason);
    e->sent_us = clock_mono_us();
    box_save(box, NULL, NULL, NULL, on_decision_saved, NULL);
}

typedef struct AlreadyGone {
    Box *box;
    BoxFunc done;
    void *data;
} AlreadyGone;

static void
answer_already_gone(void *data)
{
    AlreadyGone *a = data;

    if (a->done != NULL)
        a->done(a->box, NULL, a->data);
    box_unref(a->box);
    g_free(a);
}

void
box_kill(Box *box, const char *reason, const char *actor, BoxFunc done, void *data)
{
    BoxWaiter waiter = {.done = done, .data = data};

    if (box->gone) {
        AlreadyGone *a = g_new(AlreadyGone, 1);

        *a = (AlreadyGone){.box = box_ref(box), .done = done, .data = data};
        host_later(box->host, answer_already_gone, a);
        return;
    }
    if (done != NULL)
        g_array_append_val(box->ending.waiters, waiter);
    box_stop(box, BOX_TERMINATED, reason, "box.killed", actor);
}

void
box_stuck(Box *box)
{
    g_autoptr(GError) error = g_error_new(
        ERR_DOMAIN, ERR_TIMEOUT, "the box '%s' could not be ended within %d seconds; it is tried again",
        box->row.id, (int)(BOX_STUCK_US / G_USEC_PER_SEC));

    log_warn("box", "stuck", log_str("box", box->row.id));
    box_set_state(box, BOX_ERROR, "stuck");
    box_save(box, "box.failed", "coop", json_pack("{s:s}", "reason", "stuck"), NULL, NULL);
    box_answer_waiters(box, error);
}
