/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/work.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/offload.h"

typedef enum PieceState { PIECE_WAITING, PIECE_RUNNING, PIECE_RESTING } PieceState;

static const char *const state_names[] = {
    [PIECE_WAITING] = "waiting",
    [PIECE_RUNNING] = "running",
    [PIECE_RESTING] = "retrying",
};

typedef struct Piece Piece;

/* One repository while something of it is here. */
typedef struct Lane {
    char *id;
    guint pieces;  /* that belong to it */
    guint running; /* of those */
    guint guests;  /* gits of others */
    Piece *writer; /* from its first try to its end; NULL: none */
    guint64 round; /* the last one in which a write of it had to wait */
} Lane;

struct Piece {
    LoopTimer rest; /* first: the loop hands back its address */
    GList link;     /* in WorkQueue.pieces */
    WorkQueue *queue;
    Lane *lane;
    GitRepo *git;
    char *name, *what;
    unsigned flags;
    ForgeWork work;
    DbDone done;
    void *data;
    GDestroyNotify destroy;
    PieceState state;
    gint64 added_us; /* monotonic */
    guint tries;
    bool met_lock; /* the last try found one */
    GError *error; /* of the last try */
};

struct WorkQueue {
    Loop *loop;
    Offload *threads;
    GQueue pieces;     /* of Piece, all of them, oldest first */
    GHashTable *lanes; /* id -> Lane, owned */
    guint64 round;
    guint running, slow;
    guint64 done, failed, tried_again;
    LoopTimer refusal;
    GQueue refused; /* of Piece, whose `done` has yet to run */
    gint cancel;    /* atomic */
};

/* ---- lanes ---- */

static void
lane_free(Lane *lane)
{
    g_free(lane->id);
    g_free(lane);
}

static Lane *
lane_get(WorkQueue *q, const char *id)
{
    Lane *lane = g_hash_table_lookup(q->lanes, id);

    if (lane == NULL) {
        lane = g_new0(Lane, 1);
        lane->id = g_strdup(id);
        g_hash_table_insert(q->lanes, lane->id, lane);
    }
    return lane;
}

static void
lane_drop_idle(WorkQueue *q, Lane *lane)
{
    if (lane->pieces == 0 && lane->guests == 0)
        g_hash_table_remove(q->lanes, lane->id);
}

void
work_queue_enter(WorkQueue *queue, const char *repo_id)
{
    lane_get(queue, repo_id)->guests++;
}

void
work_queue_leave(WorkQueue *queue, const char *repo_id)
{
    Lane *lane = lane_get(queue, repo_id);

    g_assert(lane->guests > 0);
    lane->guests--;
    lane_drop_idle(queue, lane);
}

/* ---- a piece ---- */

/* In a thread. */
static void
run_piece(void *data)
{
    Piece *p = data;

    if (p->met_lock)
        (void)git_clear_stale(p->git, 0, NULL, NULL); /* of one that is alive it removes nothing */
    if (!p->work(p->git, p->data, &p->error) && p->error == NULL)
        err_set(&p->error, ERR_INTERNAL, "%s failed", p->what);
}

static void
piece_free(Piece *p)
{
    if (p->destroy != NULL)
        p->destroy(p->data);
    g_clear_error(&p->error);
    git_repo_unref(p->git);
    g_free(p->name);
    g_free(p->what);
    g_free(p);
}

/* Its place is free before anybody hears of it, so that `done` may add more. */
static void
piece_end(Piece *p)
{
    WorkQueue *q = p->queue;
    Lane *lane = p->lane;

    g_queue_unlink(&q->pieces, &p->link);
    lane->pieces--;
    if (lane->writer == p)
        lane->writer = NULL;
    lane_drop_idle(q, lane);
    if (p->error == NULL)
        q->done++;
    else if (!g_error_matches(p->error, ERR_DOMAIN, ERR_CANCELLED))
        q->failed++;
    if (p->done != NULL)
        p->done(p->data, p->error);
    piece_free(p);
}

static bool
met_lock(const GError *error)
{
    return strstr(error->message, ".lock") != NULL && strstr(error->message, "File exists") != NULL;
}

static bool
passes_by_itself(const GError *error)
{
    return g_error_matches(error, ERR_DOMAIN, ERR_UNAVAILABLE) || met_lock(error);
}

static guint
rest_ms(guint tries)
{
    guint ms = WORK_REST_MS;

    for (guint i = 1; i < tries; i++)
        ms *= WORK_REST_FACTOR;
    return ms;
}

/* ---- who is next ---- */

static void begin_waiting(WorkQueue *q);

static void
on_rested(LoopTimer *timer)
{
    Piece *p = (Piece *)timer;

    p->state = PIECE_WAITING;
    begin_waiting(p->queue);
}

static void
on_ran(void *data)
{
    Piece *p = data;
    WorkQueue *q = p->queue;

    q->running--;
    q->slow -= (p->flags & WORK_SLOW) != 0;
    p->lane->running--;
    if (p->error != NULL && p->tries < FORGE_TRIES && passes_by_itself(p->error) &&
        g_atomic_int_get(&q->cancel) == 0) {
        p->met_lock = met_lock(p->error);
        p->state = PIECE_RESTING;
        q->tried_again++;
        g_clear_error(&p->error);
        loop_timer_set(q->loop, &p->rest, rest_ms(p->tries));
    } else {
        piece_end(p);
    }
    begin_waiting(q);
}

static bool
may_begin(Piece *p)
{
    WorkQueue *q = p->queue;
    Lane *lane = p->lane;

    if (p->state != PIECE_WAITING)
        return false;
    if ((p->flags & WORK_WRITES) != 0 && lane->writer != p) {
        if (lane->writer != NULL || lane->round == q->round)
            return false;
        lane->round = q->round; /* whatever comes of this one, no later one overtakes it */
    }
    return (p->flags & WORK_SLOW) == 0 || q->slow < WORK_SLOW_MAX;
}

static void
begin(Piece *p)
{
    WorkQueue *q = p->queue;
    Lane *lane = p->lane;

    if ((p->flags & WORK_WRITES) != 0)
        lane->writer = p;
    lane->running++;
    q->running++;
    q->slow += (p->flags & WORK_SLOW) != 0;
    p->state = PIECE_RUNNING;
    p->tries++;
    offload_push(q->threads, run_piece, on_ran, p);
}

static void
begin_waiting(WorkQueue *q)
{
    q->round++;
    for (GList *l = q->pieces.head; l != NULL && q->running < FORGE_THREADS; l = l->next) {
        Piece *p = l->data;

        if (may_begin(p))
            begin(p);
    }
}

/* ---- the queue ---- */

static void
end_refused(WorkQueue *q)
{
    GList *link;

    while ((link = g_queue_pop_head_link(&q->refused)) != NULL) {
        Piece *p = link->data;

        if (p->done != NULL)
            p->done(p->data, p->error);
        piece_free(p);
    }
}

static void
on_refusal(LoopTimer *timer)
{
    end_refused((WorkQueue *)((char *)timer - offsetof(WorkQueue, refusal)));
}

WorkQueue *
work_queue_new(Loop *loop)
{
    WorkQueue *q = g_new0(WorkQueue, 1);

    q->loop = loop;
    q->refusal.expired = on_refusal;
    q->threads = offload_new(loop, FORGE_THREADS);
    q->lanes = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)lane_free);
    return q;
}

const gint *
work_queue_cancel(WorkQueue *queue)
{
    return &queue->cancel;
}

/* A `done` may add to the queue; that is refused by then, so the list gets shorter. */
static void
cancel_waiting(WorkQueue *q)
{
    for (GList *l = q->pieces.head; l != NULL;) {
        Piece *p = l->data;

        if (p->state == PIECE_RUNNING) {
            l = l->next;
            continue;
        }
        loop_timer_cancel(q->loop, &p->rest);
        err_set(&p->error, ERR_CANCELLED, "the server is stopping");
        piece_end(p);
        l = q->pieces.head;
    }
}

void
work_queue_free(WorkQueue *queue)
{
    if (queue == NULL)
        return;
    g_atomic_int_set(&queue->cancel, 1);
    cancel_waiting(queue);
    offload_free(queue->threads);
    g_assert(queue->pieces.length == 0);
    loop_timer_cancel(queue->loop, &queue->refusal);
    end_refused(queue);
    g_hash_table_unref(queue->lanes);
    g_free(queue);
}

static Piece *
piece_new(WorkQueue *q, const WorkSpec *spec)
{
    Piece *p = g_new0(Piece, 1);

    *p = (Piece){.rest.expired = on_rested,
                 .queue = q,
                 .git = git_repo_ref(spec->git),
                 .name = g_strdup(spec->name),
                 .what = g_strdup(spec->what),
                 .flags = spec->flags,
                 .work = spec->work,
                 .done = spec->done,
                 .data = spec->data,
                 .destroy = spec->destroy,
                 .added_us = clock_mono_us()};
    p->link.data = p;
    return p;
}

void
work_queue_add(WorkQueue *queue, const WorkSpec *spec)
{
    Piece *p = piece_new(queue, spec);

    if (g_atomic_int_get(&queue->cancel) != 0)
        err_set(&p->error, ERR_CANCELLED, "the server is stopping");
    else if (queue->pieces.length - queue->running >= FORGE_QUEUE_MAX)
        err_set(&p->error, ERR_LIMIT, "%d pieces of git work are waiting; try again later", FORGE_QUEUE_MAX);
    if (p->error != NULL) {
        queue->failed += err_kind(p->error) == ERR_LIMIT;
        g_queue_push_tail_link(&queue->refused, &p->link);
        loop_timer_set(queue->loop, &queue->refusal, 0);
        return;
    }
    p->lane = lane_get(queue, git_repo_id(p->git));
    p->lane->pieces++;
    g_queue_push_tail_link(&queue->pieces, &p->link);
    begin_waiting(queue);
}

void
work_queue_stats(WorkQueue *queue, WorkStats *ret_stats)
{
    *ret_stats = (WorkStats){.waiting = queue->pieces.length - queue->running,
                             .running = queue->running,
                             .done = queue->done,
                             .failed = queue->failed,
                             .tried_again = queue->tried_again};
}

Json *
work_queue_json(WorkQueue *queue)
{
    Json *list = json_array();
    gint64 now_us = clock_mono_us();

    for (GList *l = queue->pieces.head; l != NULL; l = l->next) {
        const Piece *p = l->data;

        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:b, s:I, s:i}", "repository", p->name, "what", p->what, "state",
                            state_names[p->state], "writes", (p->flags & WORK_WRITES) != 0, "waiting_ms",
                            (json_int_t)((now_us - p->added_us) / 1000), "tries", p->tries));
    }
    return list;
}
