/* SPDX-License-Identifier: Apache-2.0 */
/* What changes a box that goes on: pause, resume, renewal. */
#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "box/box-private.h"
#include "box/host-private.h"

typedef struct Op {
    Box *box;
    char *actor;
    BoxFunc done;
    void *data;
    GError *error;
} Op;

static Op *
op_new(Box *box, const char *actor, BoxFunc done, void *data)
{
    Op *op = g_new0(Op, 1);

    *op = (Op){.box = box_ref(box), .actor = g_strdup(actor), .done = done, .data = data};
    return op;
}

static void
op_finish(Op *op, const GError *error)
{
    if (op->done != NULL)
        op->done(op->box, error, op->data);
    box_unref(op->box);
    g_free(op->actor);
    g_clear_error(&op->error);
    g_free(op);
}

static void
op_fail_now(void *data)
{
    Op *op = data;

    op_finish(op, op->error);
}

static void
op_refuse(Op *op, ErrKind kind, const char *message)
{
    op->error = g_error_new_literal(ERR_DOMAIN, (gint)kind, message);
    host_later(op->box->host, op_fail_now, op);
}

static void
on_op_saved(Box *box, const GError *error, void *data)
{
    op_finish(data, error);
}

/* ---- pause and resume ---- */

static bool
may(const Box *box, BoxOp what)
{
    if (what == BOX_OP_PAUSE)
        return box->row.state == BOX_READY;
    return box->row.state == BOX_PAUSED || (box->row.state == BOX_ERROR && box->storage_error == ENOSPC);
}

static void
on_frozen(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    Op *op = data;
    Box *box = op->box;
    BoxOp what = box->op;
    bool pause = what == BOX_OP_PAUSE;

    box->op = BOX_OP_NONE;
    FAILPOINT("box-pause-done");
    if (error != NULL) {
        op_finish(op, error);
        return;
    }
    /* It may have been killed, or have ended, meanwhile. */
    if (!may(box, what)) {
        g_autoptr(GError) late = g_error_new_literal(ERR_DOMAIN, ERR_CONFLICT, "the box is being ended");

        op_finish(op, late);
        return;
    }
    box_set_state(box, pause ? BOX_PAUSED : BOX_READY, NULL);
    box_touch(box);
    box->kept = false;
    box->storage_error = 0;
    box_save(box, pause ? "box.paused" : "box.resumed", op->actor, NULL, on_op_saved, op);
}

static void
freeze(Box *box, BoxOp what, const char *actor, BoxFunc done, void *data)
{
    Op *op = op_new(box, actor, done, data);

    if (!may(box, what) || box->op != BOX_OP_NONE) {
        op_refuse(op, ERR_CONFLICT,
                  what == BOX_OP_PAUSE ? "only a box that is ready can be paused"
                                       : "only a paused box can be resumed");
        return;
    }
    if (what == BOX_OP_RESUME && box->kept &&
        !box_life_renew(&box->row.life, clock_mono_us(), box->row.life.lifetime_ms)) {
        op_refuse(op, ERR_CONFLICT, "the box has lived as long as any may");
        return;
    }
    box->op = what;
    host_call_keeper(box->host, what == BOX_OP_PAUSE ? KEEPER_FREEZE : KEEPER_THAW, box, on_frozen, op);
    FAILPOINT("box-pause-sent");
}

void
box_pause(Box *box, const char *actor, BoxFunc done, void *data)
{
    freeze(box, BOX_OP_PAUSE, actor, done, data);
}

void
box_resume(Box *box, const char *actor, BoxFunc done, void *data)
{
    freeze(box, BOX_OP_RESUME, actor, done, data);
}

static const char *
storage_error_text(int error)
{
    switch (error) {
    case ENOSPC:
        return "the disk of the host is full";
    case EDQUOT:
        return "there is more on the disk of the box than it may hold";
    default:
        return "the disk of the box has failed";
    }
}

void
box_storage_failed(Box *box, int error)
{
    BoxState state = box->row.state;

    box->storage_error = error;
    /* Told again, or on its way out. */
    if (box->gone || (state != BOX_READY && state != BOX_PAUSED))
        return;
    log_warn("box", "its storage failed", log_str("box", box->row.id), log_str("error", g_strerror(error)));
    box_set_state(box, BOX_ERROR, "storage");
    box_save(box, "box.failed", "coop",
             json_pack("{s:s, s:s}", "reason", "storage", "error", storage_error_text(error)), NULL, NULL);
}

/* ---- renewal ---- */

void
box_renew(Box *box, gint64 lifetime_ms, const char *actor, BoxFunc done, void *data)
{
    Op *op = op_new(box, actor, done, data);

    if (lifetime_ms < WISH_LIFE_MIN_MS || lifetime_ms > BOX_LIFE_MAX_MS) {
        op_refuse(op, ERR_INVALID, "a box is renewed for 1 second to 24 hours");
        return;
    }
    if (box->row.state != BOX_READY && box->row.state != BOX_PAUSED) {
        op_refuse(op, ERR_CONFLICT, "the box is not ready, or has ended");
        return;
    }
    if (!box_life_renew(&box->row.life, clock_mono_us(), lifetime_ms)) {
        op_refuse(op, ERR_CONFLICT, "the box has lived as long as any may");
        return;
    }
    box_touch(box);
    box->row.updated_us = clock_wall_us();
    box_save(box, NULL, op->actor, NULL, on_op_saved, op);
}
