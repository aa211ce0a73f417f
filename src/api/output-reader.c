/* SPDX-License-Identifier: Apache-2.0 */
/* A run in memory has its followers.  One that is known only by its logs is read from the
 * files, a piece at a time in the pool of threads; the piece belongs to the pool meanwhile, so
 * a reader that is freed then goes when the piece comes back. */
#include "api/output-reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "box/runlog.h"

typedef struct LogPiece {
    char *folder;
    guint32 run;
    FrameStream stream;
    guint64 offset; /* where to read; afterwards where the bytes are from */
    gssize n;       /* -1: failed */
    guint64 gap;
    RunLog *log; /* of `stream`; NULL: not open yet */
    guint8 bytes[RUN_PIECE_MAX];
} LogPiece;

struct OutputReader {
    RunFollower *follower; /* NULL: by the logs */
    FrameStream only;
    Loop *loop;
    LogPiece *piece;
    guint64 offsets[2]; /* of the streams, in the logs */
    bool busy, ready;   /* the piece is with the pool; has something */
    bool over, closed;
    void (*wake)(void *data);
    void *data;
};

/* ---- in the pool ---- */

static bool
open_log(LogPiece *p)
{
    g_autofree char *name = run_log_dup_name(p->run, p->stream);
    autofd folder = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (folder < 0)
        return false;
    p->log = run_log_open(folder, name, NULL);
    return p->log != NULL;
}

static void
read_piece(void *data)
{
    LogPiece *p = ((OutputReader *)data)->piece;

    p->gap = 0;
    p->n = -1;
    errno = 0;
    if (p->log != NULL || open_log(p))
        p->n = run_log_read(p->log, p->offset, p->bytes, sizeof p->bytes, &p->gap, NULL);
    else if (errno == ENOENT)
        p->n = 0; /* no command of the box ever said anything */
}

/* ---- on the loop ---- */

static void
reader_destroy(OutputReader *r)
{
    if (r->follower != NULL)
        run_follower_free(r->follower);
    if (r->piece != NULL) {
        run_log_close(r->piece->log);
        g_free(r->piece->folder);
        g_free(r->piece);
    }
    g_free(r);
}

static void
on_piece(void *data)
{
    OutputReader *r = data;

    r->busy = false;
    if (r->closed) {
        reader_destroy(r);
        return;
    }
    r->ready = true;
    r->wake(r->data);
}

OutputReader *
output_reader_new(const OutputSpec *spec)
{
    OutputReader *r = g_new0(OutputReader, 1);

    r->loop = spec->loop;
    r->only = spec->only;
    r->wake = spec->wake;
    r->data = spec->data;
    if (spec->run != NULL) {
        r->follower = run_follow(spec->run, spec->out_offset, spec->err_offset, spec->wake, spec->data);
        return r;
    }
    r->offsets[0] = spec->out_offset;
    r->offsets[1] = spec->err_offset;
    r->piece = g_new0(LogPiece, 1);
    r->piece->folder = g_strdup(spec->folder);
    r->piece->run = spec->id;
    r->piece->stream = spec->only == STREAM_STDERR ? STREAM_STDERR : STREAM_STDOUT;
    return r;
}

void
output_reader_free(OutputReader *r)
{
    if (r == NULL)
        return;
    r->closed = true;
    if (!r->busy)
        reader_destroy(r);
}

static guint64 *
offset_of(OutputReader *r, FrameStream stream)
{
    return &r->offsets[stream == STREAM_STDERR];
}

static RunStep
ask_pool(OutputReader *r)
{
    r->piece->offset = *offset_of(r, r->piece->stream);
    r->busy = true;
    loop_offload(r->loop, read_piece, on_piece, r);
    return RUN_STEP_WAIT;
}

static RunStep
end_of_log(OutputReader *r)
{
    LogPiece *p = r->piece;

    g_clear_pointer(&p->log, run_log_close);
    if (r->only != 0 || p->stream == STREAM_STDERR) {
        r->over = true;
        return RUN_STEP_END;
    }
    p->stream = STREAM_STDERR;
    return ask_pool(r);
}

static RunStep
next_of_log(OutputReader *r, RunPiece *ret_piece)
{
    LogPiece *p = r->piece;

    if (r->over)
        return RUN_STEP_END;
    if (r->busy)
        return RUN_STEP_WAIT;
    if (!r->ready)
        return ask_pool(r);
    r->ready = false;
    if (p->n < 0)
        return RUN_STEP_FAILED;
    if (p->n == 0 && p->gap == 0)
        return end_of_log(r);
    guint64 n = p->n > 0 ? (guint64)p->n : p->gap;
    *ret_piece = (RunPiece){.stream = p->stream, .offset = p->offset, .bytes = p->bytes, .n = n};
    *offset_of(r, p->stream) += n;
    return p->n > 0 ? RUN_STEP_DATA : RUN_STEP_GAP;
}

RunStep
output_reader_next(OutputReader *r, RunPiece *ret_piece)
{
    for (;;) {
        RunStep step = r->follower != NULL ? run_follower_next(r->follower, ret_piece)
                                           : next_of_log(r, ret_piece);
        bool has_piece = step == RUN_STEP_DATA || step == RUN_STEP_GAP;

        if (!has_piece || r->only == 0 || ret_piece->stream == r->only)
            return step;
    }
}
