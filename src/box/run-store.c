/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing down and reading back.  One piece of work is under way for a run at a time: it has the
 * logs to itself, and the pieces it writes stay where they are until it is done.
 *
 * A log that cannot be written (the host's disk is full) stops nobody: the bytes were seen by
 * who listened, and when there is room again the log says what is missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/path.h"
#include "box/link-private.h"

enum { WORK_BYTES_MAX = 512 * 1024 };

typedef struct Work {
    Run *run; /* a reference; looked into only on the loop */
    char *folder;
    guint32 id;
    RunLog *logs[RUN_STREAMS];
    GError *error; /* the first */
    /* writing */
    GPtrArray *pieces; /* borrowed */
    size_t bytes;
    /* test results */
    RunTests *tests;
    bool tests_read;
    TestReport *report;
    /* reading */
    RunFollower *reader;
    FrameStream stream;
    guint64 offset, gap;
    guint8 *buffer;
    gssize n;
} Work;

static RunLog *
need_log(Work *work, FrameStream stream)
{
    RunLog **log = &work->logs[stream - STREAM_STDOUT];
    g_autofree char *name = run_log_dup_name(work->id, stream);
    GError **error = work->error == NULL ? &work->error : NULL;

    if (*log != NULL)
        return *log;
    autofd fd = open(work->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && g_mkdir_with_parents(work->folder, 0700) == 0)
        fd = open(work->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        err_errno(error, "open '%s'", work->folder);
    else
        *log = run_log_open(fd, name, error);
    return *log;
}

static void
write_piece(Work *work, const Piece *piece)
{
    RunLog *log = need_log(work, piece->stream);
    GError **error = work->error == NULL ? &work->error : NULL;

    if (log == NULL)
        return;
    /* What could not be written, or never came, is missing. */
    if (run_log_end(log) < piece->offset &&
        !run_log_gap(log, run_log_end(log), piece->offset - run_log_end(log), error))
        return;
    if (piece->gap)
        (void)run_log_gap(log, piece->offset, piece->n, error);
    else
        (void)run_log_append(log, piece->offset, piece->bytes, (size_t)piece->n, error);
}

static void
do_write(void *data)
{
    Work *work = data;

    for (guint i = 0; i < work->pieces->len; i++)
        write_piece(work, g_ptr_array_index(work->pieces, i));
    FAILPOINT("run-after-write");
}

static void
do_read(void *data)
{
    Work *work = data;
    RunLog *log = need_log(work, work->stream);

    work->buffer = g_malloc(RUN_PIECE_MAX);
    work->n = log == NULL ? -1
                          : run_log_read(log, work->offset, work->buffer, RUN_PIECE_MAX, &work->gap,
                                         work->error == NULL ? &work->error : NULL);
}

static void
do_tests(void *data)
{
    Work *work = data;

    run_tests_slice(work->tests, need_log(work, run_tests_stream(work->tests)));
    work->tests_read = run_tests_stream(work->tests) == 0;
    if (work->tests_read)
        work->report = run_tests_end(work->tests);
}

static Work *
work_new(Run *run)
{
    Work *work = g_new0(Work, 1);

    work->run = run_ref(run);
    work->folder = g_strdup(run->folder);
    work->id = run->id;
    for (int i = 0; i < RUN_STREAMS; i++)
        work->logs[i] = g_steal_pointer(&run->streams[i].log);
    run->working = true;
    return work;
}

static void
work_free(Work *work)
{
    for (int i = 0; i < RUN_STREAMS; i++)
        run_log_close(work->logs[i]);
    g_clear_pointer(&work->pieces, g_ptr_array_unref);
    run_tests_free(work->tests);
    report_free(work->report);
    g_clear_error(&work->error);
    g_free(work->buffer);
    g_free(work->folder);
    run_unref(work->run);
    g_free(work);
}

/* Each run complains once. */
static void
complain(Run *run, const GError *error)
{
    if (error == NULL || run->log_failed)
        return;
    run->log_failed = true;
    log_warn("box", "a command's output is not stored", log_int("run", run->id), log_gerror(error));
}

static void
work_done(Work *work)
{
    Run *run = work->run;

    for (int i = 0; i < RUN_STREAMS; i++)
        run->streams[i].log = g_steal_pointer(&work->logs[i]);
    run->working = false;
    complain(run, work->error);
}

static void
forget_pending(Run *run, size_t bytes, guint n)
{
    run->pending -= bytes;
    run->n_pending -= n;
    if (run->link != NULL) {
        run->link->pending -= bytes;
        run->link->n_pending -= n;
    }
}

/* No one reads it any more, or will soon: descriptors are for those who do. */
static void
close_idle_logs(Run *run)
{
    if (!run->ended || run->working || run->followers != NULL)
        return;
    for (int i = 0; i < RUN_STREAMS; i++)
        g_clear_pointer(&run->streams[i].log, run_log_close);
}

static void
on_written(void *data)
{
    Work *work = data;
    Run *run = work->run;
    g_autoptr(LinkRef) link = run->link != NULL ? link_ref(run->link) : NULL;

    work_done(work);
    if (link != NULL)
        link->quiet++;
    for (guint i = 0; i < work->pieces->len; i++)
        run_settle(run, g_ptr_array_index(work->pieces, i));
    run->pieces.stored += work->pieces->len;
    run->work_end = run->pieces.stored;
    forget_pending(run, work->bytes, work->pieces->len);
    run->read_next = true;
    run_trim(run);
    run_work(run);
    run_check_end(run);
    close_idle_logs(run);
    work_free(work);
    if (link != NULL) {
        link->quiet--;
        link_say(link);
        /* What was held back may come. */
        link_watch(link);
    }
}

static void
on_read(void *data)
{
    Work *work = data;
    Run *run = work->run;
    RunFollower *reader = work->reader;

    work_done(work);
    run->read_next = false;
    reader->reading = false;
    reader->read_stream = work->stream;
    reader->read_offset = work->offset;
    reader->read_n = work->n;
    reader->read_gap = work->gap;
    reader->read_bytes = g_steal_pointer(&work->buffer);
    run_work(run);
    follower_read_done(reader);
    close_idle_logs(run);
    work_free(work);
}

static void
on_tests(void *data)
{
    Work *work = data;
    Run *run = work->run;

    work_done(work);
    run->read_next = true;
    run->tests_read = work->tests_read;
    run->report = g_steal_pointer(&work->report);
    if (!run->tests_read)
        run->tests = g_steal_pointer(&work->tests);
    run_work(run);
    run_check_end(run);
    close_idle_logs(run);
    work_free(work);
}

static void
start_write(Run *run)
{
    Work *work = work_new(run);

    work->pieces = g_ptr_array_new();
    run->work_end = run->pieces.stored;
    while (run->work_end < pieces_end(&run->pieces) && work->bytes < WORK_BYTES_MAX) {
        Piece *piece = pieces_at(&run->pieces, run->work_end++);

        g_ptr_array_add(work->pieces, piece);
        work->bytes += piece->gap ? 0 : (size_t)piece->n;
    }
    loop_offload(run->loop, do_write, on_written, work);
}

static void
start_read(Run *run)
{
    RunFollower *reader = g_ptr_array_remove_index(run->readers, 0);
    Work *work = work_new(run);

    if (run->readers->len == 0)
        g_clear_pointer(&run->readers, g_ptr_array_unref);
    work->reader = reader;
    work->stream = reader->read_stream;
    work->offset = reader->read_offset;
    loop_offload(run->loop, do_read, on_read, work);
}

static void
start_tests(Run *run)
{
    Work *work = work_new(run);

    work->tests = run->tests != NULL ? g_steal_pointer(&run->tests)
                                     : run_tests_new(run->end.out_bytes, run->end.err_bytes);
    loop_offload(run->loop, do_tests, on_tests, work);
}

void
run_work(Run *run)
{
    bool write = run->logged && run->link != NULL && run->pieces.stored < pieces_end(&run->pieces);
    bool tests = run->logged && run->link != NULL && run->has_end && !run->tests_read;
    bool read = run->readers != NULL;

    if (run->working)
        return;
    if (read && (run->read_next || !(write || tests)))
        start_read(run);
    else if (write)
        start_write(run);
    else if (tests)
        start_tests(run);
}
