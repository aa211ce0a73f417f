/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked at every second, for all boxes at once: a timer a box would need as many queues
 * in the loop as there are life times. */
#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "box/host-private.h"

static void
on_tick(LoopTimer *timer)
{
    BoxHost *host = (BoxHost *)(void *)((char *)timer - offsetof(BoxHost, tick_timer));

    loop_timer_set(host->spec.loop, timer, HOST_TICK_MS);
    host_tick(host);
}

void
host_start_tick(BoxHost *host)
{
    host->tick_timer.expired = on_tick;
    loop_timer_set(host->spec.loop, &host->tick_timer, HOST_TICK_MS);
}

/* ---- the end of a box's time ---- */

/* One that is used whenever its end is near would fill the table of events. */
enum { IDLE_WARN_AGAIN_US = 10 * 60 * G_USEC_PER_SEC };

static void
on_kept(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    Box *box = data;

    box->op = BOX_OP_NONE;
    if (box->host->closed || box->gone || (box->row.state != BOX_READY && box->row.state != BOX_PAUSED)) {
        box_unref(box);
        return;
    }
    if (error != NULL) {
        log_warn("box", "a box could not be kept", log_str("box", box->row.id), log_gerror(error));
        box_stop(box, BOX_TERMINATED, "expired", "box.expired", "coop");
        box_unref(box);
        return;
    }
    if (box->row.state == BOX_READY)
        box_set_state(box, BOX_PAUSED, NULL);
    box_save(box, "box.expired", "coop", json_pack("{s:s, s:b}", "reason", "expired", "kept", 1), NULL, NULL);
    box->host->stats.expired++;
    box_unref(box);
}

/* From here on its deadline is that of what is kept, whatever it could live otherwise. */
static void
keep(Box *box, gint64 now_us)
{
    box->kept = true;
    box->row.life.deadline_us = now_us + box->host->spec.keep_rows_ms * 1000;
    box->op = BOX_OP_PAUSE;
    host_call_keeper(box->host, KEEPER_FREEZE, box, on_kept, box_ref(box));
}

static void
expire(Box *box, BoxDue due, gint64 now_us)
{
    FAILPOINT("box-expire");
    log_info("box", "expired", log_str("box", box->row.id),
             log_str("why", due == BOX_DUE_IDLE ? "idle" : "deadline"));
    if (box->row.facts.keep && !box->kept && box->host->spec.keep_rows_ms > 0)
        keep(box, now_us);
    else
        box_stop(box, BOX_TERMINATED, "expired", box->kept ? "box.killed" : "box.expired", "coop");
}

static void
save_warning(Box *box, gint64 left_us, const char *reason)
{
    char at[CLOCK_ISO_LEN + 1];

    clock_format_iso(clock_wall_us() + left_us, at);
    box_save(box, "box.warned", "coop", json_pack("{s:s, s:s}", "reason", reason, "expires_at", at), NULL,
             NULL);
}

/* Once for each end that comes near; use and renewal move it away again. */
static void
warn(Box *box, gint64 now_us, bool frozen)
{
    gint64 end_us = box_life_end_us(&box->row.life, frozen);
    bool near = now_us >= box_life_warn_us(&box->row.life, frozen);
    bool idle = end_us != box->row.life.deadline_us;
    bool lately = idle && now_us < box->idle_warn_us;

    if (near && !box->warned && !box->kept && !lately) {
        save_warning(box, end_us - now_us, idle ? "idle" : "deadline");
        if (idle)
            box->idle_warn_us = now_us + IDLE_WARN_AGAIN_US;
    }
    box->warned = near;
}

/* ---- the tick ---- */

static void
tick_box(Box *box, void *data)
{
    BoxHost *host = box->host;
    gint64 now_us = clock_mono_us();
    BoxState state = box->row.state;
    /* One that waits for the keeper's LIST after a restart is not judged by its clock. */
    bool attached = box->link != NULL || box->link_closed_us != 0;
    bool frozen = state == BOX_PAUSED || (state == BOX_ERROR && box->ending.reason == NULL);
    bool usable = attached && !box->gone && (state == BOX_READY || frozen);
    bool ready = host->keeper != NULL && keeper_client_is_ready(host->keeper);

    if (usable && box->op == BOX_OP_NONE) {
        BoxDue due = box_life_due(&box->row.life, now_us, frozen);

        if (due == BOX_DUE_NOT)
            warn(box, now_us, frozen);
        if (due != BOX_DUE_NOT)
            expire(box, due, now_us);
        else if (ready && box->link_closed_us != 0 && now_us - box->link_closed_us > BOX_BROKEN_US)
            box_stop(box, BOX_ERROR, "broken", "box.failed", "coop");
    } else if (state == BOX_STOPPING && !box->gone && now_us - box->ending.sent_us > BOX_STUCK_US) {
        box_stuck(box);
    }
}

static void
retry_box(Box *box, void *data)
{
    box_save_again(box);
    box_commands_again(box);
}

/* Ended boxes whose last word is written. */
static void
sweep_box(Box *box, void *data)
{
    bool waits_for_runs = g_hash_table_size(box->commands) > 0 &&
                          clock_wall_us() - box->row.ended_us < BOX_STUCK_US;

    if (box_is_written(box) && box->create == NULL && !waits_for_runs)
        host_remove(box->host, box);
}

void
host_tick(BoxHost *host)
{
    host_ref(host);
    host->ticks++;
    host_each(host, tick_box, NULL);
    if (host->ticks % HOST_RETRY_TICKS == 0) {
        host_each(host, sweep_box, NULL);
        host_each(host, retry_box, NULL);
    }
    if (host->ticks % HOST_FLUSH_TICKS == 0)
        host_flush_used(host);
    pool_tick(host);
    host_unref(host);
}

/* ---- last uses ---- */

typedef struct Flush {
    GPtrArray *rows; /* BoxRow* */
} Flush;

static bool
flush_work(DbTx *tx, void *data, GError **error)
{
    const GPtrArray *rows = ((Flush *)data)->rows;

    for (guint i = 0; i < rows->len; i++) {
        if (!rows_put_box(tx, rows->pdata[i], error))
            return false;
    }
    return true;
}

static void
row_free(gpointer data)
{
    box_row_clear(data);
    g_free(data);
}

static void
flush_free(gpointer data)
{
    g_ptr_array_unref(((Flush *)data)->rows);
    g_free(data);
}

static void
collect_dirty(Box *box, void *data)
{
    if (!box->dirty || box->gone || box->create != NULL)
        return;
    BoxRow *row = g_new(BoxRow, 1);

    box_row_copy(row, &box->row);
    box->dirty = false;
    g_ptr_array_add(((Flush *)data)->rows, row);
}

/* Losing some of these is no harm: the next use comes. */
void
host_flush_used(BoxHost *host)
{
    Flush *flush = g_new0(Flush, 1);

    flush->rows = g_ptr_array_new_with_free_func(row_free);
    host_each(host, collect_dirty, flush);
    if (flush->rows->len == 0)
        flush_free(flush);
    else
        db_write(host->spec.db, flush_work, NULL, flush, flush_free);
}
