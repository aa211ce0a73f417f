/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "box/link.h"
#include "box/run-tests.h"
#include "box/run.h"
#include "box/runlog.h"
#include "wire/frame.h"

/* A link and its runs, private to this folder.
 *
 * Nothing is queued for init but what a run's state says is owed, so a channel that is full
 * costs nothing: `owing` holds the runs that have something to say.
 *
 * Runs are counted: one reference is the link's while the run is in its table, one each is held
 * by a piece of offloaded work and by `owing` and `due`, the rest are the callers'. */

enum {
    LINK_PENDING_MAX = 1 << 20, /* bytes not yet written down, over which nothing is read */
    LINK_PIECES_MAX = 2048,     /* of the same, for those who send single bytes */
    LINK_FRAMES_MAX = 32,       /* heard in one turn */
    LINK_OOM_ASK_MS = 5000,
    LINK_CONNECTS_MAX = 64,
    LINK_RETRY_MS = 50, /* after the kernel had no memory for a watch */
    LINK_CONNECT_MS = BOX_LINK_PROBE_MS,
    RUN_SIGNALS_MAX = 16,
    RUN_KEEP_BYTES = 64 * 1024, /* written down, and kept for followers who are a little behind */
    RUN_PIECE_JOIN = 4096,      /* pieces below are joined to what follows */
    RUN_ACK_BYTES = FRAME_WINDOW / 8,
    STREAMED_RING_BYTES = 2 * FRAME_WINDOW,
    RUN_STREAMS = 2,
    RUN_TESTS_AT_ONCE = 8 * 1024, /* output that is read for test results without a thread */
};

/* Which ids are whose, so that no answer can be taken for another's.  Streamed runs do not
 * outlive a server; where their ids begin is drawn, so that two servers do not meet. */
#define RUN_ID_STREAMED (UINT32_C(1) << 30)
#define RUN_ID_CONNECT (UINT32_C(1) << 31)

/* Bytes, or a gap, as they arrived. */
typedef struct Piece {
    guint64 offset;
    guint64 n;
    FrameStream stream;
    bool gap;
    guint8 bytes[];
} Piece;

/* A queue of pieces with numbers that stay.  What is written down has a number below
 * `stored`. */
typedef struct Pieces {
    GPtrArray *items; /* Piece*; NULL: never had one */
    guint head;       /* into items */
    guint64 first;    /* the number of items[head] */
    guint64 stored;
    size_t bytes;
} Pieces;

static inline guint
pieces_count(const Pieces *p)
{
    return p->items != NULL ? p->items->len - p->head : 0;
}
static inline guint64
pieces_end(const Pieces *p)
{
    return p->first + pieces_count(p);
}
static inline Piece *
pieces_at(const Pieces *p, guint64 number)
{
    return g_ptr_array_index(p->items, p->head + (guint)(number - p->first));
}
/* False: it was joined to the last one, which only happens to a number from `busy` on: others may
 * be read by another thread.  `bytes` NULL: a gap. */
bool pieces_add(Pieces *p, FrameStream stream, guint64 offset, const void *bytes, guint64 n, guint64 busy);
void pieces_drop_first(Pieces *p);
void pieces_clear(Pieces *p);

typedef struct RunStream {
    guint64 received; /* everything below came, or is a gap */
    guint64 settled;  /* written down, or taken by the sink: what may be told */
    guint64 acked;    /* was told to init */
    /* The same without gaps: those take no room in the window. */
    guint64 received_data, settled_data, acked_data;
    guint64 floor; /* what lies below is not in memory */
    RunLog *log;   /* while work is under way only that touches it */
    bool begun;    /* after HELLO the first frame says where the rest begins */
} RunStream;

typedef enum RunOwed {
    OWE_START = 1 << 0,
    OWE_INPUT = 1 << 1,
    OWE_CLOSE = 1 << 2,
    OWE_RESIZE = 1 << 3,
    OWE_SIGNALS = 1 << 4,
    OWE_ACK = 1 << 5, /* << stream - 1 */
    OWE_FORGET = 1 << 7,
} RunOwed;

/* For the next turn of the loop, because callbacks never run inside a call. */
typedef enum RunDue { DUE_DELIVER = 1 << 0, DUE_ROOM = 1 << 1, DUE_END = 1 << 2 } RunDue;

struct Run {
    guint refs;
    guint32 id;
    BoxLink *link; /* NULL: it is gone, or the run was abandoned or forgotten */
    Loop *loop;
    bool logged, terminal, takes_input,
        expected;          /* expected: started before our HELLO, not yet named by init's */
    bool is_owing, is_due; /* in the link's lists */
    bool paused, abandoned, asked_oom, has_end, ended, working, log_failed;
    bool tests_read;
    guint32 pid;
    gint64 started_us;
    unsigned owed, due;
    GList owe_node, due_node;
    GBytes *start; /* packed, until it was sent */
    int fd;        /* goes with it; -1: none */
    RunStream streams[RUN_STREAMS];
    Pieces pieces;
    guint64 work_end; /* pieces below this number are being written */
    size_t pending;   /* not yet written down: bytes and pieces */
    guint n_pending;
    /* input */
    Buf input;
    guint64 in_sent, in_acked;
    bool closing, want_room;
    void (*on_room)(void *data); /* of a logged run, called once; NULL: nobody waits */
    void *room_data;
    guint16 rows, columns;
    guint8 signals[RUN_SIGNALS_MAX];
    guint n_signals;
    /* who listens */
    const RunSink *sink;
    void *sink_ctx;
    const RunTap *tap;
    void *tap_ctx;
    GPtrArray *followers; /* RunFollower*; NULL: none */
    GPtrArray *readers;   /* those who wait for the log */
    bool read_next;       /* readers and the write-down take turns */
    RunEnd end;
    RunTests *tests;    /* being read; while work is under way only that touches it */
    TestReport *report; /* NULL: none */
    LoopTimer oom_timer;
    char *folder;
};

typedef struct LinkConnect LinkConnect;

struct BoxLink {
    LoopWatch watch; /* first: the loop hands back its address */
    Loop *loop;
    guint refs;
    bool freed, ready, closing, closed, stopping;
    bool full;    /* EPOLLOUT is asked for */
    bool active;  /* to be told */
    guint quiet;  /* in a turn of the loop: what is owed is said at its end */
    bool opening; /* logs from before a restart are being read */
    bool owe_hello, owe_stop;
    guint64 number;
    char *folder;
    BoxLinkEvents events;
    void *ctx;
    GHashTable *runs; /* id -> Run*, counted */
    guint32 last_run, first_streamed, last_streamed, last_connect;
    GQueue owing, dues;
    GQueue connects;   /* LinkConnect* */
    guint32 stray_run; /* an ack for a run that was abandoned; 0: none */
    FrameStream stray_stream;
    guint64 stray_offset;
    size_t pending; /* bytes and pieces not yet written down */
    guint n_pending;
    GArray *strangers; /* guint32: streamed runs of a predecessor; NULL: none */
    gint64 active_us;
    LoopTimer soon;
    GError *error; /* why it closes; NULL: the channel was closed */
};

/* ---- link.c ---- */
BoxLink *link_ref(BoxLink *link);
void link_unref(BoxLink *link);
/* g_autoptr(BoxLink) frees; this only lets go. */
typedef struct BoxLink LinkRef;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LinkRef, link_unref)
/* Out of the table: the run has no link any more. */
void link_remove(BoxLink *link, Run *run);
Run *link_add(BoxLink *link, guint32 id, bool logged);
/* On the next turn. */
void link_due(Run *run, RunDue what);
/* Ends it: every run is lost, and then `closed` is said.  Takes the error; NULL: hung up. */
void link_close(BoxLink *link, GError *error);
void link_check_closed(BoxLink *link);
void link_watch(BoxLink *link);
void link_is_active(BoxLink *link);

/* ---- link-hear.c ---- */
void link_hear(BoxLink *link);

/* ---- link-say.c ---- */
void link_owe(Run *run, unsigned what);
void link_say(BoxLink *link);
/* One frame at once; false: the channel is full, and the link remembers that. */
bool link_send(BoxLink *link, const FrameHead *head, const void *body);
bool link_send_fd(BoxLink *link, const FrameHead *head, const void *body, int fd); /* -1: none */
void link_say_stray(BoxLink *link);

/* ---- link-connect.c ---- */
/* False: it cannot be.  The fd is taken where somebody waits for it. */
bool link_connect_answer(BoxLink *link, const FrameHead *head, int *fd);
bool link_connect_say(BoxLink *link); /* false: full */
void link_connect_fail_all(BoxLink *link, ErrKind kind, const char *message);

/* ---- run.c ---- */
Run *run_new(Loop *loop, guint32 id, bool logged);
void run_drop_start(Run *run); /* it was sent, or will not be */
void run_room(Run *run);
void run_tell_room(Run *run);

/* ---- run-output.c ---- */
void run_take_output(Run *run, FrameStream stream, guint64 offset, const void *bytes, guint64 n);
void run_deliver(Run *run);
/* The end as init, or the end of the link, tells it; the run has ended when all else is done. */
void run_take_end(Run *run, const RunEnd *end);
void run_check_end(Run *run);
void run_wake_followers(Run *run);
void run_wake_followers_later(Run *run);
/* After `settled` moved. */
void run_settle(Run *run, const Piece *piece);
void run_trim(Run *run);

/* ---- run-store.c ---- */
/* Starts the next piece of offloaded work, when there is any and none is under way. */
void run_work(Run *run);

/* ---- run-follow.c ---- */
struct RunFollower {
    Run *run;
    guint64 at[RUN_STREAMS];
    guint64 next; /* piece number */
    void (*wake)(void *data);
    void *data;
    LoopTimer timer;
    bool waiting, woken, reading, dead;
    bool read_ready; /* what the log gave */
    FrameStream read_stream;
    guint64 read_offset, read_gap;
    gssize read_n;
    guint8 *read_bytes;
};
/* Fills in what the log had; from the loop. */
void follower_read_done(RunFollower *follower);
