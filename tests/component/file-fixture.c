/* SPDX-License-Identifier: Apache-2.0 */
#include "file-fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "http/limits.h"

static int
count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    g_assert_nonnull(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static void
answer(FileTest *t, HttpRequest *request)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT "\n", t->bytes);

    if (strcmp(http_request_method(request), "PUT") == 0)
        http_respond_text(request, t->kind == -1 ? 200 : 500, "text/plain", text);
    else
        http_respond_file(request, fcntl(t->file, F_DUPFD_CLOEXEC, 0), &t->spec);
}

static void
answer_or_keep(FileTest *t, HttpRequest *request)
{
    if (t->wait)
        t->kept = http_request_ref(request);
    else
        answer(t, request);
}

void
file_answer(FileTest *t)
{
    g_autoptr(HttpRequest) request = g_steal_pointer(&t->kept);

    g_assert_nonnull(request);
    answer(t, request);
}

static void
on_upload(HttpRequest *request, guint64 bytes, const GError *error, void *data)
{
    FileTest *t = data;

    t->uploads++;
    t->bytes = bytes;
    t->kind = error != NULL ? (int)err_kind(error) : -1;
    answer_or_keep(t, request);
}

static void
handle(HttpRequest *request, void *data)
{
    FileTest *t = data;

    if (strcmp(http_request_method(request), "PUT") == 0)
        http_request_read_to_file(request, t->file, t->max, on_upload, t);
    else
        answer_or_keep(t, request);
}

void
file_test_init(FileTest *t, const HttpLimits *limits)
{
    *t = (FileTest){.spec = {.type = "text/plain"}, .max = G_MAXUINT64, .kind = -1, .fds = count_fds()};
    t->file = memfd_create("test", MFD_CLOEXEC);
    g_assert_cmpint(t->file, >=, 0);
    fixture_init_handler(&t->f, limits, handle, t);
}

void
file_test_clear(FileTest *t)
{
    fixture_clear(&t->f);
    close(t->file);
    g_assert_cmpint(count_fds(), ==, t->fds); /* each closed, and each once */
}

void
file_fill(int fd, size_t n, GChecksum *sum)
{
    g_autofree guint8 *piece = g_malloc(MIB);

    for (size_t at = 0; at < n;) {
        size_t part = MIN(n - at, (size_t)MIB);

        for (size_t i = 0; i < part; i++)
            piece[i] = (guint8)((at + i) * 31 >> 7 ^ i);
        g_assert_true(io_write_all(fd, piece, part));
        if (sum != NULL)
            g_checksum_update(sum, piece, (gssize)part);
        at += part;
    }
}

/* ---- a disk that does not answer ---- */

static void
wait_for_close(void *data)
{
    char byte;

    g_assert_cmpint(io_read_full(GPOINTER_TO_INT(data), &byte, 1), ==, 0);
}

static void
close_end(void *data)
{
    close(GPOINTER_TO_INT(data));
}

int
file_block_disk(FileTest *t)
{
    int ends[2];

    g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
    for (int i = 0; i < LOOP_OFFLOAD_THREADS; i++)
        loop_offload(t->f.loop, wait_for_close, close_end,
                     GINT_TO_POINTER(fcntl(ends[0], F_DUPFD_CLOEXEC, 0)));
    close(ends[0]);
    return ends[1];
}
