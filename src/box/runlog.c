/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file:
 *
 *   | page: end, gaps | the first RUN_LOG_HEAD bytes | ring of RUN_LOG_TAIL + STEP_BYTES bytes |
 *
 * Bytes are written in steps, the page after each.  A step that a kill left without its page
 * has overwritten the oldest bytes of the ring: it is longer than what is promised by one step,
 * so those were promised to nobody.
 */
#include "box/runlog.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/failpoint.h"

enum {
    PAGE_BYTES = 4096,
    STEP_BYTES = 64 * 1024,
    RING_BYTES = RUN_LOG_TAIL + STEP_BYTES,
    LOG_VERSION = 1,
};

static const char magic[8] = "cooplog";

typedef struct Gap {
    guint64 from, n;
} Gap;

typedef struct Page {
    char magic[8];
    guint32 version, n_gaps;
    guint64 end;
    Gap gaps[RUN_LOG_GAPS_MAX];
} Page;
_Static_assert(sizeof(Page) <= PAGE_BYTES, "one write of one page cannot be torn by a kill");

struct RunLog {
    int fd;
    Page page;
};

char *
run_log_dup_name(guint32 run, FrameStream stream)
{
    return g_strdup_printf("%u.%s", run, stream == STREAM_STDOUT ? "out" : "err");
}

/* Everything from here on to the end is in the ring. */
static guint64
tail_from(const RunLog *log)
{
    return MAX(log->page.end, (guint64)RUN_LOG_HEAD + RUN_LOG_TAIL) - RUN_LOG_TAIL;
}

static bool
gaps_are_sane(const Page *page)
{
    guint64 at = 0;

    for (guint i = 0; i < page->n_gaps; i++) {
        const Gap *gap = &page->gaps[i];

        if (gap->from < at || gap->n == 0 || gap->n > page->end || gap->from > page->end - gap->n)
            return false;
        at = gap->from + gap->n;
    }
    return true;
}

static bool
write_page(RunLog *log, GError **error)
{
    if (pwrite(log->fd, &log->page, sizeof log->page, 0) != sizeof log->page)
        return err_errno(error, "write the head of a log");
    return true;
}

static bool
read_page(RunLog *log, const char *name, GError **error)
{
    Page *page = &log->page;
    ssize_t n = pread(log->fd, page, sizeof *page, 0);

    if (n < 0)
        return err_errno(error, "read the log '%s'", name);
    /* A kill came before the first page was written; bytes may lie behind it already. */
    if ((size_t)n < sizeof *page || page->magic[0] == '\0') {
        *page = (Page){.version = LOG_VERSION};
        memcpy(page->magic, magic, sizeof magic);
        return true;
    }
    if (memcmp(page->magic, magic, sizeof magic) != 0 || page->version != LOG_VERSION ||
        page->n_gaps > RUN_LOG_GAPS_MAX || !gaps_are_sane(page))
        return err_set(error, ERR_INTERNAL, "'%s' is no log", name);
    return true;
}

RunLog *
run_log_open(int folder_fd, const char *name, GError **error)
{
    autofd fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    g_autoptr(RunLog) log = g_new0(RunLog, 1);

    log->fd = fd;
    if (fd < 0) {
        err_errno(error, "open the log '%s'", name);
        return NULL;
    }
    (void)g_steal_fd(&fd);
    if (!read_page(log, name, error))
        return NULL;
    return g_steal_pointer(&log);
}

void
run_log_close(RunLog *log)
{
    if (log == NULL)
        return;
    if (log->fd >= 0)
        close(log->fd);
    g_free(log);
}

guint64
run_log_end(const RunLog *log)
{
    return log->page.end;
}

/* Where the byte at `offset` lies, and how many follow it there. */
static guint64
place_of(guint64 offset, guint64 *ret_run)
{
    if (offset < RUN_LOG_HEAD) {
        *ret_run = RUN_LOG_HEAD - offset;
        return PAGE_BYTES + offset;
    }
    guint64 at = (offset - RUN_LOG_HEAD) % RING_BYTES;
    *ret_run = RING_BYTES - at;
    return PAGE_BYTES + RUN_LOG_HEAD + at;
}

static bool
write_at(RunLog *log, guint64 offset, const guint8 *bytes, size_t n, GError **error)
{
    while (n > 0) {
        guint64 room;
        guint64 place = place_of(offset, &room);
        ssize_t put = pwrite(log->fd, bytes, MIN(n, room), (off_t)place);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return err_errno(error, "write a log");
        offset += (guint64)put;
        bytes += put;
        n -= (size_t)put;
    }
    return true;
}

bool
run_log_append(RunLog *log, guint64 offset, const void *bytes, size_t n, GError **error)
{
    const guint8 *at = bytes;

    if (offset > log->page.end)
        return err_set(error, ERR_INVALID, "a log may have no hole");
    if (log->page.end - offset >= n)
        return true;
    at += log->page.end - offset;
    n -= (size_t)(log->page.end - offset);
    while (n > 0) {
        size_t step = MIN(n, STEP_BYTES);

        if (!write_at(log, log->page.end, at, step, error))
            return false;
        FAILPOINT("runlog-written");
        log->page.end += step;
        if (!write_page(log, error)) {
            log->page.end -= step;
            return false;
        }
        FAILPOINT("runlog-paged");
        at += step;
        n -= step;
    }
    return true;
}

/* Gaps in what the ring has overwritten tell nobody anything. */
static void
drop_stale_gaps(RunLog *log)
{
    Page *page = &log->page;
    guint kept = 0;

    for (guint i = 0; i < page->n_gaps; i++) {
        const Gap *gap = &page->gaps[i];

        if (gap->from < RUN_LOG_HEAD || gap->from + gap->n > tail_from(log))
            page->gaps[kept++] = *gap;
    }
    page->n_gaps = kept;
}

static void
add_gap(RunLog *log, guint64 n)
{
    Page *page = &log->page;
    Gap *last = page->n_gaps > 0 ? &page->gaps[page->n_gaps - 1] : NULL;
    guint64 from = page->end;

    page->end += n;
    if (last != NULL && last->from + last->n == from) {
        last->n += n;
        return;
    }
    if (page->n_gaps == RUN_LOG_GAPS_MAX)
        drop_stale_gaps(log);
    if (page->n_gaps < RUN_LOG_GAPS_MAX)
        page->gaps[page->n_gaps++] = (Gap){from, n};
    else
        page->gaps[page->n_gaps - 1].n = page->end - page->gaps[page->n_gaps - 1].from;
}

bool
run_log_gap(RunLog *log, guint64 offset, guint64 n, GError **error)
{
    const Page before = log->page;

    if (offset > before.end || n > G_MAXINT64 || offset > (guint64)G_MAXINT64)
        return err_set(error, ERR_INVALID, "a log may have no hole");
    if (before.end - offset >= n)
        return true;
    add_gap(log, n - (before.end - offset));
    if (write_page(log, error))
        return true;
    log->page = before;
    return false;
}

/* How much is missing at `offset`; else how much is there without one in *ret_there. */
static guint64
missing_at(const RunLog *log, guint64 offset, guint64 *ret_there)
{
    guint64 until = log->page.end;

    if (offset >= RUN_LOG_HEAD && offset < tail_from(log))
        return tail_from(log) - offset;
    if (offset < RUN_LOG_HEAD)
        until = MIN(until, (guint64)RUN_LOG_HEAD);
    for (guint i = 0; i < log->page.n_gaps; i++) {
        const Gap *gap = &log->page.gaps[i];

        if (offset >= gap->from && offset - gap->from < gap->n)
            return gap->from + gap->n - offset;
        if (gap->from > offset) {
            until = MIN(until, gap->from);
            break;
        }
    }
    *ret_there = until - offset;
    return 0;
}

gssize
run_log_read(RunLog *log, guint64 offset, void *bytes, size_t size, guint64 *ret_gap, GError **error)
{
    guint64 there = 0, room;

    *ret_gap = 0;
    if (offset >= log->page.end || size == 0)
        return 0;
    *ret_gap = missing_at(log, offset, &there);
    if (*ret_gap > 0)
        return 0;
    guint64 place = place_of(offset, &room);
    ssize_t n = pread(log->fd, bytes, MIN(size, MIN(there, room)), (off_t)place);

    if (n < 0) {
        err_errno(error, "read a log");
        return -1;
    }
    /* The file is shorter than its head says: somebody has cut it. */
    if (n == 0)
        *ret_gap = there;
    return n;
}
