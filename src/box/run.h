/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "report/report.h"
#include "wire/frame.h"

/* One command, terminal or operation of init's own in a box.
 *
 * A *logged* run writes its output down (runlog.h) and may have any number of followers, who
 * may come and go; it survives the server.  A *streamed* run has exactly one reader, its sink,
 * and nothing is written down: a reader that says "enough for now" makes the writer in the box
 * wait; with its reader the run is killed.
 *
 * Callbacks run from the loop, never inside a call here. */
typedef struct Run Run;
typedef struct BoxLink BoxLink;

enum {
    RUN_TIMEOUT_MS = 300 * 1000, /* of a command that names none */
    RUN_RING_BYTES = 64 * 1024,  /* in init, of each stream */
    RUN_SPILL_BYTES = 16 << 20,  /* in the box, of each stream, while no server is there */
};

typedef struct RunSpec {
    unsigned flags; /* FrameStartFlags; START_BLOCK follows from `sink` */
    const char *const *argv;
    const char *const *env; /* "NAME=value", NULL-terminated; NULL: none but the template's */
    const char *user;       /* "": the template's */
    const char *cwd;        /* "": the template's */
    guint timeout_ms;       /* 0: none */
    guint16 rows, columns;
    const struct RunSink *sink; /* NULL: logged */
    void *ctx;
    int *fd; /* what START_IN_FD or START_OUT_FD passes on; stolen unless the start fails; NULL: none */
} RunSpec;

typedef enum RunReason {
    RUN_EXIT = 1, /* code: 0…255 */
    RUN_SIGNAL,   /* code: the signal */
    RUN_TIMEOUT,
    RUN_OOM,
    RUN_STOPPED,     /* the box was ended */
    RUN_NOT_STARTED, /* code: errno; stage: FrameStage */
    RUN_LOST,        /* the box, or the keeper, is gone without a word */
    RUN_REASON_MAX,
} RunReason;
const char *run_reason_name(RunReason reason); /* "exit", "signal", "timeout", "oom", … */

typedef struct RunEnd {
    RunReason reason;
    int code;
    guint stage;
    guint64 out_bytes, err_bytes; /* in all, dropped ones included */
    guint64 duration_us, cpu_us, max_rss_bytes;
} RunEnd;
/* What a shell would say: the code, 128 + signal, 124 for a timeout, 137 for oom, 126 or 127
 * for one that did not start. */
int run_end_exit_code(const RunEnd *end);
/* For people: "no such file: foo", "killed by SIGSEGV"; NULL when there is nothing to say. */
char *run_end_dup_message(const RunEnd *end);

/* The reader of a streamed run. */
typedef struct RunSink {
    /* All bytes are taken.  False: no more until run_resume(). */
    bool (*output)(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx);
    /* Exactly once, after the last output. */
    void (*ended)(Run *run, const RunEnd *end, void *ctx);
    /* run_write() had no room and now has; may be NULL. */
    void (*input_room)(Run *run, void *ctx);
    /* The server ends, and nothing more comes; may be NULL where somebody else frees what `ctx` is. */
    void (*dropped)(void *ctx);
} RunSink;

Run *run_ref(Run *run);
void run_unref(Run *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Run, run_unref)

guint32 run_id(const Run *run); /* unique in its box, never 0 */
bool run_has_ended(const Run *run);
const RunEnd *run_end(const Run *run); /* NULL: goes on */
/* What a test runner reported; NULL: none did, or the run goes on. */
const TestReport *run_test_report(const Run *run);
guint run_pid(const Run *run);         /* inside; 0: not yet known */
gint64 run_started_us(const Run *run); /* wall clock */
bool run_is_terminal(const Run *run);
/* Written so far, dropped ones included. */
guint64 run_output_bytes(const Run *run, FrameStream stream);

/* The sink will not be called any more, `ended` included; the run is killed if it goes on. */
void run_abandon(Run *run);
void run_resume(Run *run);
/* Bytes of it moved beside the channel. */
void run_is_active(Run *run);

/* How many of the bytes were taken: fewer than `n` when the window is full (`input_room`
 * follows), 0 also when the run takes no input or has ended. */
size_t run_write(Run *run, const void *bytes, size_t n) G_GNUC_WARN_UNUSED_RESULT;
/* Of a logged run: `room` is called, once, when run_write() that took less than all may take
 * more, or when the run has ended.  False: somebody else waits already.  `room` NULL: the one
 * with this `data` does not wait any more. */
bool run_on_input_room(Run *run, void (*room)(void *data), void *data);
bool run_takes_input(const Run *run); /* was started with input, which is not closed */
void run_close_input(Run *run);       /* behind what was written */
void run_resize(Run *run, guint16 rows, guint16 columns);
void run_signal(Run *run, int signal); /* the whole tree */

/* ---- followers of a logged run ---- */

typedef struct RunFollower RunFollower;

typedef enum RunStep {
    RUN_STEP_DATA,
    RUN_STEP_GAP,  /* `n` bytes from `offset` on are not there any more */
    RUN_STEP_WAIT, /* `wake` will be called once */
    RUN_STEP_END,  /* everything was seen and the run has ended */
    RUN_STEP_FAILED,
} RunStep;

typedef struct RunPiece {
    FrameStream stream;
    guint64 offset;
    const guint8 *bytes; /* valid until the next call on the follower or return to the loop */
    size_t n;
} RunPiece;

enum { RUN_PIECE_MAX = FRAME_DATA_MAX };

/* From these offsets on.  What is in memory comes in the order in which it arrived; what is
 * older comes from the log, standard output first.  `wake` runs on the loop. */
RunFollower *
run_follow(Run *run, guint64 out_offset, guint64 err_offset, void (*wake)(void *data), void *data);
void run_follower_free(RunFollower *follower);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RunFollower, run_follower_free)
RunStep run_follower_next(RunFollower *follower, RunPiece *ret_piece);

/* Called with every piece as it arrives, from the beginning on (so only right after the
 * start), and once at the end: for who reads along in one pass and keeps little.  One a run. */
typedef struct RunTap {
    void (*output)(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx);
    void (*gap)(Run *run, FrameStream stream, guint64 n, void *ctx);
    void (*ended)(Run *run, const RunEnd *end, void *ctx);
} RunTap;
void run_tap(Run *run, const RunTap *tap, void *ctx);
void run_untap(Run *run);
