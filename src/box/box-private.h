/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/box.h"
#include "box/rows.h"

/* The inside of a box.  It belongs to its host's table, and to whoever holds a reference: a
 * request that uses it, a call to the keeper, a job of the store. */

enum {
    BOX_STUCK_US = 10 * G_USEC_PER_SEC, /* for the keeper to end a box */
    BOX_BROKEN_US = 2 * G_USEC_PER_SEC, /* for a GONE to follow the end of a channel */
    BOX_PROBES_MAX = 3,                 /* unanswered in a row: it is given up */
    BOX_RUN_SLACK = FRAME_RUNS_MAX,     /* so many runs init may have that no row knows */
};

typedef struct BoxWaiter {
    BoxFunc done;
    void *data;
} BoxWaiter;

/* How it is to end, from the moment that is decided until the keeper says it is gone. */
typedef struct BoxEnding {
    BoxState state;   /* TERMINATED or ERROR */
    char *reason;     /* NULL: nothing is decided */
    const char *kind; /* of the event */
    char *actor;
    gint64 sent_us;  /* of the last KILL; before the first, of the decision */
    bool written;    /* the row says so, or could not: KILL may be sent */
    GArray *waiters; /* BoxWaiter */
} BoxEnding;

/* A write that failed and is tried again. */
typedef struct BoxUnsaved {
    const char *kind; /* of its event; NULL: none */
    char *actor, *data;
    bool pending;
} BoxUnsaved;

typedef enum BoxOp { BOX_OP_NONE, BOX_OP_PAUSE, BOX_OP_RESUME } BoxOp;

struct Box {
    guint refs;
    BoxHost *host; /* a reference */
    BoxRow row;
    Template *template; /* NULL: its version is not in the store any more */
    BoxLink *link;      /* NULL: not yet, or the keeper is away */
    int door_fd;        /* -1: none, or handed on */
    guint64 door_cookie;
    bool door_told;
    struct BoxCreate *create; /* while it is being created */
    BoxEnding ending;
    BoxUnsaved unsaved;
    BoxOp op;
    GHashTable *commands; /* run -> CommandRow*: those whose end is not written */
    GPtrArray *early;     /* CommandRow*: started before it was ready, not written yet; NULL: none */
    GArray *oom_asked;    /* guint32: runs that wait for an answer */
    guint oom_under_way;  /* how many of them the STAT under way answers */
    guint32 oom_kills;    /* the last value seen */
    int storage_error;    /* errno of the trouble that froze it; 0: none */
    gint64 link_closed_us;
    gint64 idle_warn_us; /* before that it is not warned of idleness again */
    guint probes_failed;
    guint saving; /* writes of the row under way */
    bool gone;    /* nothing of it is left at the keeper */
    bool seen;    /* the LIST under way named it */
    bool pooled;  /* nobody's yet: no row, not in the table */
    bool kept;    /* its time was over, and it was paused */
    bool warned;  /* it was told that its time will be over */
    bool dirty;   /* the row is behind */
    bool probing;
};

Box *box_new(BoxHost *host, const char *id);

/* The one place where the state changes. */
void box_set_state(Box *box, BoxState state, const char *reason);
static inline bool
box_is_live(const Box *box)
{
    return !box->gone;
}

/* It has ended and its row says so. */
static inline bool
box_is_written(const Box *box)
{
    return box->gone && box->saving == 0 && !box->unsaved.pending;
}

/* Row and event (NULL: none) in one transaction; `data` is taken.  After a failure it is tried
 * again by the tick, and `done` hears of the first failure. */
void box_save(Box *box, const char *kind, const char *actor, Json *data, BoxFunc done, void *user);
void box_save_again(Box *box);

/* ---- box-op.c ---- */

/* The keeper froze it. */
void box_storage_failed(Box *box, int error);

/* ---- box-run.c ---- */

/* Takes the fds that came with BOX; `commands` (of before a restart) may be NULL. */
bool box_attach(Box *box, const KeeperAnswer *answer, const int fds[KEEPER_FDS], GPtrArray *commands,
                GError **error);
/* Its way out is told to who wants to know; once. */
void box_open_door(Box *box);
void box_close_door(Box *box);

/* ---- box-run-rows.c ---- */

void box_command_started(Box *box, CommandRow *row);
void box_command_ended(Box *box, CommandRow *row, const Run *run);
/* Starts of before it was ready: they follow its row. */
void box_commands_flush(Box *box);
/* Ends that could not be written. */
void box_commands_again(Box *box);

/* ---- box-end.c ---- */

/* Decides the end and asks the keeper; does nothing where that is decided. */
void box_stop(Box *box, BoxState state, const char *reason, const char *kind, const char *actor);
void box_send_kill(Box *box);
/* The keeper says so. */
void box_gone(Box *box, const KeeperAnswer *answer);
/* A LIST did not name it. */
void box_vanished(Box *box, BoxState state, const char *reason);
/* Answers everybody who waits for the end. */
void box_answer_waiters(Box *box, const GError *error);
void box_stuck(Box *box);
