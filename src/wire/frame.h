/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the server and a box's init say to each other.
 *
 * One packet is one frame: a fixed head and a payload.  Numbers are little-endian as the
 * machine has them; both ends are always on one machine.
 *
 * A *run* is one command, terminal or built-in operation; its id is chosen by the server and
 * never used twice in the life of a box.  A run's output is two streams of bytes with
 * offsets that begin at 0.  Init keeps what was not acknowledged in a ring in memory and then
 * in a spill file; after a HELLO it says for every run what it knows and sends again from the
 * offsets that HELLO carried.  So a server that was killed between reading a frame and
 * writing it down loses nothing, and nothing arrives twice: what lies below an offset it has
 * is skipped.
 *
 * Windows: the server grants output by ACK: init has at most FRAME_WINDOW bytes of one stream
 * on the way, dropped ones (GAP) not counted.  Init grants input by STDIN_ACK: the server has at
 * most FRAME_WINDOW bytes on the way; what init holds already, or what leaves a hole, is
 * skipped.
 *
 * Order: a server begins with HELLO, which only a START may precede, and a number of its own in
 * `offset`, which init's HELLO brings back; whatever comes before that was meant for a predecessor, perhaps
 * in answer to its HELLO, and is to be dropped.  After it the end of each run that has ended (FAILED or
 * ENDED) comes again until FORGET, ENDED only after the last byte of output; nothing of the run comes after
 * it, whatever input was still on its way.  A frame that is malformed, or names a run that is not there, is
 * dropped without an answer: a server sends none, and its restart makes the second kind ordinary. */

enum {
    FRAME_VERSION = 1,
    FRAME_DATA_MAX = 32 * 1024, /* bytes of output or input in one frame */
    FRAME_WINDOW = 256 * 1024,
    FRAME_ARGS_MAX = 1024, /* of argv, and of env */
    FRAME_RUNS_MAX = 256,  /* live or not yet forgotten, in one box */
    FRAME_PATH_MAX = 4096,
};

typedef enum FrameType {
    /* both ways */
    FRAME_HELLO = 1,
    /* server to init */
    FRAME_START = 16,  /* payload: a FrameStart */
    FRAME_STDIN,       /* offset, data */
    FRAME_STDIN_CLOSE, /* after what was sent; a terminal gets an end-of-file character */
    FRAME_RESIZE,      /* value: rows << 16 | columns */
    FRAME_SIGNAL,      /* value: the number; to the process group of the run and to every
                          descendant that left it */
    FRAME_ACK,         /* stream, offset: everything below has been written down */
    FRAME_FORGET,      /* the end was written down: the run's memory and spill file may go.
                          Of a run that goes on: it is killed first */
    FRAME_CONNECT,     /* value: a TCP port on the box's loopback; run: any number, comes back
                          with the answer.  Not repeated after HELLO: ask again */
    FRAME_SHUTDOWN,    /* end every run, then the box */
    /* init to server */
    FRAME_STARTED = 64, /* value: pid inside */
    FRAME_OUTPUT,       /* stream, offset, data */
    FRAME_GAP,          /* stream, offset, value: this many bytes from here were dropped */
    FRAME_STDIN_ACK,    /* offset: everything below was taken */
    FRAME_ENDED,        /* payload: a FrameEnd */
    FRAME_CONNECTED,    /* an fd comes along */
    FRAME_FAILED,       /* value: errno; stage: what failed; for START and CONNECT */
} FrameType;

typedef enum FrameStream { STREAM_STDOUT = 1, STREAM_STDERR = 2 } FrameStream;

typedef struct FrameHead {
    uint16_t type;
    uint8_t stream;
    uint8_t stage;
    uint32_t run; /* 0: none */
    uint64_t offset;
    uint32_t value;
    uint32_t length; /* of the payload */
} FrameHead;
_Static_assert(sizeof(FrameHead) == 24, "the head has no padding");

/* HELLO from the server carries one of these for each run it knows; from init, for each run
 * it has.  value of the head: FRAME_VERSION; offset: see above. */
typedef struct FrameRun {
    uint32_t run;
    uint32_t state;                  /* FrameRunState; 0 from the server */
    uint64_t out_offset, err_offset; /* server: has everything below; init: has this much in all */
    uint64_t in_offset;              /* init: holds everything below; STDIN_ACK follows */
} FrameRun;

typedef enum FrameRunState { RUN_RUNNING = 1, RUN_ENDED, RUN_FAILED } FrameRunState;

/* What FAILED failed at. */
typedef enum FrameStage {
    FAIL_FRAME = 1, /* the payload is malformed */
    FAIL_LIMIT,     /* FRAME_RUNS_MAX, or too many connects at once */
    FAIL_FORK,      /* processes, memory, descriptors */
    FAIL_USER,      /* no such user, or its ids cannot be taken */
    FAIL_TTY,
    FAIL_CWD,
    FAIL_EXEC,
    FAIL_CONNECT,
    FAIL_STAGE_MAX,
} FrameStage;

typedef enum FrameReason {
    REASON_EXIT = 1, /* code: 0…255 */
    REASON_SIGNAL,   /* code: the signal */
    REASON_TIMEOUT,  /* the time limit; the whole tree was killed */
    REASON_OOM,      /* the kernel killed for memory while it ran */
    REASON_STOPPED,  /* by FRAME_SHUTDOWN */
} FrameReason;

typedef struct FrameEnd {
    uint32_t reason;
    int32_t code;
    uint64_t out_bytes, err_bytes; /* in all, dropped ones included */
    uint64_t duration_us, cpu_us;
    uint64_t max_rss_bytes;
} FrameEnd;

typedef enum FrameStartFlags {
    START_TTY = 1 << 0,     /* a terminal of its own; only STREAM_STDOUT then */
    START_STDIN = 1 << 1,   /* input follows; else /dev/null */
    START_BLOCK = 1 << 2,   /* when ring and spill are full, stop reading: the writer waits.
                               Else drop the middle and say GAP */
    START_BUILTIN = 1 << 3, /* argv[0] names an operation of init's own (see builtin.h), done
                               as `user` */
    START_ROOT = 1 << 4,    /* root inside, with the few capabilities a box has */
    /* Of a built-in: its input, or its STREAM_STDOUT, is the descriptor that comes along with
     * START, and nothing of that is framed.  The server makes it, one end of a pipe, so neither
     * side holds anything of the other's choosing. */
    START_IN_FD = 1 << 5,
    START_OUT_FD = 1 << 6,
} FrameStartFlags;

/* How a run begins, before it is packed and after it was unpacked; strings are borrowed. */
typedef struct FrameStart {
    uint32_t flags;
    uint32_t timeout_ms; /* 0: none */
    uint16_t rows, columns;
    uint32_t ring_bytes, spill_bytes; /* of each stream */
    const char *user;                 /* "": uid 1000; a name or "uid" or "uid:gid" */
    const char *cwd;                  /* "": the user's home, or / where there is none */
    uint32_t argc, envc;              /* argc: at least 1 */
    const char *argv[FRAME_ARGS_MAX + 1];
    const char *envp[FRAME_ARGS_MAX + 1];
} FrameStart;

/* Bytes written to `out`, or 0 when it does not fit. */
size_t frame_start_pack(const FrameStart *start, void *out, size_t size);
/* `start` points into `bytes` afterwards, which must stay.  False: malformed. */
bool frame_start_unpack(void *bytes, size_t n, FrameStart *ret_start);
/* Head and length agree, the type is known, the payload has the size its type needs, and run
 * and stream are there where the type needs them. */
bool frame_check(const void *packet, size_t n);
