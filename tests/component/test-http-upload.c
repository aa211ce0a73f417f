/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies into files, with a disk that is slow or full. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "file-fixture.h"

enum { PIECE = 64 * 1024 };

/* ---- up ---- */

static char *
put_head(size_t length)
{
    return g_strdup_printf("PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
                           length);
}

#define PUT_CHUNKED "PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"

static char *
file_sum(int fd)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autofree guint8 *piece = g_malloc(MIB);
    ssize_t n;

    g_assert_cmpint(lseek(fd, 0, SEEK_SET), ==, 0);
    while ((n = io_read_full(fd, piece, MIB)) > 0)
        g_checksum_update(sum, piece, n);
    return g_strdup(g_checksum_get_string(sum));
}

static void
test_large_upload(void)
{
    g_autofree char *head = put_head(FILE_LARGE);
    g_autofree guint8 *piece = g_malloc(MIB);
    autofd source = memfd_create("source", MFD_CLOEXEC);
    FileTest t;

    file_fill(source, FILE_LARGE, NULL);
    g_autofree char *sent = file_sum(source);
    file_test_init(&t, NULL);
    int fd = fixture_connect(&t.f);
    client_sends(fd, head);
    g_assert_cmpint(lseek(source, 0, SEEK_SET), ==, 0);
    for (size_t at = 0; at < FILE_LARGE; at += MIB) {
        g_assert_cmpint(io_read_full(source, piece, MIB), ==, MIB);
        client_send(fd, piece, MIB);
    }
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, 200);
    g_assert_cmpuint(t.bytes, ==, FILE_LARGE);
    g_autofree char *got = file_sum(t.file);
    g_assert_cmpstr(got, ==, sent);
    close(fd);
    file_test_clear(&t);
}

static void
test_small_uploads(void)
{
    static const struct {
        const char *request, *file;
        guint64 max;
        int kind;
    } cases[] = {
        {"PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "", 5, -1},
        {"PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", "hello", 5, -1},
        {PUT_CHUNKED "2\r\nhe\r\n1\r\nl\r\n2\r\nlo\r\n0\r\n\r\n", "hello", 5, -1},
        {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nhello!", "", 5, ERR_LIMIT},
        {PUT_CHUNKED "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", NULL, 5, ERR_LIMIT},
        {PUT_CHUNKED "5\r\nhello\r\nx\r\n", NULL, 5, ERR_INVALID},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char text[16] = {0};
        FileTest t;

        g_test_message("case %zu", i);
        file_test_init(&t, NULL);
        t.max = cases[i].max;
        int fd = fixture_connect(&t.f);
        client_sends(fd, cases[i].request);
        fixture_until(&t.uploads, 1);
        g_assert_cmpint(t.kind, ==, cases[i].kind);
        g_assert_cmpint(lseek(t.file, 0, SEEK_SET), ==, 0);
        g_assert_cmpint(io_read_full(t.file, text, sizeof text - 1), >=, 0);
        if (cases[i].file != NULL)
            g_assert_cmpstr(text, ==, cases[i].file);
        g_autoptr(GString) answer = client_read(fd, "\r\n\r\n");
        g_assert_cmpint(answer_status(answer->str), ==,
                        cases[i].kind == -1            ? 200
                        : cases[i].kind == ERR_INVALID ? 400
                                                       : 500);
        close(fd);
        file_test_clear(&t);
    }
}

/* Chunks of a few bytes are gathered: a turn of the pool for each would take seconds. */
static void
test_tiny_chunks(void)
{
    g_autoptr(GString) body = g_string_new(PUT_CHUNKED);
    FileTest t;

    for (int i = 0; i < MIB / 8; i++)
        g_string_append(body, "8\r\ntiny bit\r\n");
    g_string_append(body, "0\r\n\r\n");
    file_test_init(&t, NULL);
    int fd = fixture_connect(&t.f);
    client_send(fd, body->str, body->len);
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, 200);
    g_assert_cmpuint(t.bytes, ==, MIB);
    close(fd);
    file_test_clear(&t);
}

/* A disk that does not answer stops the client, and costs no memory. */
static void
test_slow_disk(void)
{
    g_autofree char *head = put_head(FILE_LARGE);
    g_autofree char *piece = g_malloc0(PIECE);
    size_t sent = 0;
    FileTest t;

    file_test_init(&t, NULL);
    int blocked = file_block_disk(&t);
    int fd = fixture_connect(&t.f);
    client_sends(fd, head);
    size_t rss = fixture_rss();
    for (int idle = 0; idle < 20;) {
        fixture_turn();
        ssize_t n = send(fd, piece, PIECE, MSG_NOSIGNAL);

        idle = n > 0 ? 0 : idle + 1;
        sent += n > 0 ? (size_t)n : 0;
        g_assert_cmpuint(sent, <, 32 * MIB);
    }
    g_assert_cmpuint(fixture_rss(), <, rss + 2 * MIB);
    close(blocked);
    while (sent < FILE_LARGE) {
        client_send(fd, piece, MIN((size_t)PIECE, FILE_LARGE - sent));
        sent += MIN((size_t)PIECE, FILE_LARGE - sent);
    }
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, 200);
    g_assert_cmpuint(t.bytes, ==, FILE_LARGE);
    close(fd);
    file_test_clear(&t);
}

static void
expect_full(FileTest *t, size_t length)
{
    g_autofree char *head = put_head(length);
    g_autofree char *body = g_malloc0(length);
    autofd fd = fixture_connect(&t->f);

    client_sends(fd, head);
    client_send(fd, body, length);
    fixture_until(&t->uploads, 1);
    g_assert_cmpint(t->kind, ==, ERR_FULL);
    g_assert_cmpuint(t->bytes, <, length);
    g_autoptr(GString) answer = client_read(fd, "\r\n\r\n");
    g_assert_cmpint(answer_status(answer->str), ==, 500);
    close(g_steal_fd(&fd));
    fixture_until(&t->f.over, 1);
    g_assert_cmpuint(t->uploads, ==, 1);
}

static void
test_no_room(void)
{
    static const size_t lengths[] = {1, 100, 70000, 8 * MIB};

    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        FileTest t;

        file_test_init(&t, NULL);
        close(t.file);
        t.file = open("/dev/full", O_WRONLY | O_CLOEXEC);
        g_assert_cmpint(t.file, >=, 0);
        expect_full(&t, lengths[i]);
        file_test_clear(&t);
    }
}

/* A file that may not grow is a bound that somebody set, not a full disk. */
static void
test_file_may_not_grow(void)
{
    g_autofree char *folder = g_dir_make_tmp("coop-test-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "upload", NULL);
    g_autofree char *head = put_head(MIB);
    g_autofree char *body = g_malloc0(MIB);
    struct rlimit before;
    FileTest t;

    file_test_init(&t, NULL);
    close(t.file);
    t.file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    g_assert_cmpint(t.file, >=, 0);
    signal(SIGXFSZ, SIG_IGN);
    g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &before), ==, 0);
    struct rlimit limit = {.rlim_cur = 100000, .rlim_max = before.rlim_max};
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
    int fd = fixture_connect(&t.f);
    client_sends(fd, head);
    client_send(fd, body, MIB);
    fixture_until(&t.uploads, 1);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &before), ==, 0);
    g_assert_cmpint(t.kind, ==, ERR_LIMIT);
    close(fd);
    file_test_clear(&t);
    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(rmdir(folder), ==, 0);
}

/* The disk has failed, the body is half there, and the answer takes its time. */
static void
test_no_room_answered_late(void)
{
    for (int gone = 0; gone < 2; gone++) {
        g_autofree char *head = put_head(MIB);
        g_autofree char *body = g_malloc0(70000);
        FileTest t;

        file_test_init(&t, NULL);
        t.wait = true;
        close(t.file);
        t.file = open("/dev/full", O_WRONLY | O_CLOEXEC);
        int fd = fixture_connect(&t.f);
        client_sends(fd, head);
        client_send(fd, body, 70000);
        fixture_until(&t.uploads, 1);
        client_send(fd, body, 70000);
        fixture_turn();
        if (gone) {
            struct linger now = {.l_onoff = 1, .l_linger = 0};

            g_assert_cmpint(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), ==, 0);
            close(fd);
            fixture_until(&t.f.over, 1);
            file_answer(&t);
        } else {
            file_answer(&t);
            g_autoptr(GString) answer = client_read(fd, "\r\n\r\n");
            g_assert_cmpint(answer_status(answer->str), ==, 500);
            close(fd);
        }
        fixture_until(&t.f.over, 1);
        g_assert_cmpuint(t.uploads, ==, 1);
        file_test_clear(&t);
    }
}

static void
write_proc(const char *path, const char *text)
{
    autofd fd = open(path, O_WRONLY | O_CLOEXEC);

    (void)io_write_all(fd, text, strlen(text)); /* what depends on it fails, and is skipped */
}

/* Root needs no more than the mounts; a user has to become root of a user namespace first,
 * which a process with threads cannot. */
static bool
enter_mount_namespace(void)
{
    g_autofree char *uid = g_strdup_printf("0 %u 1", getuid());
    g_autofree char *gid = g_strdup_printf("0 %u 1", getgid());

    if (unshare(CLONE_NEWNS) < 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
            return false;
        write_proc("/proc/self/setgroups", "deny");
        write_proc("/proc/self/uid_map", uid);
        write_proc("/proc/self/gid_map", gid);
    }
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* On a file system of one megabyte; -1: we may not have one. */
static int
open_on_small_disk(void)
{
    g_autofree char *folder = g_dir_make_tmp("coop-test-XXXXXX", NULL);
    int fd = -1;

    g_assert_nonnull(folder);
    if (enter_mount_namespace() && mount("none", folder, "tmpfs", 0, "size=1m") == 0) {
        g_autofree char *path = g_build_filename(folder, "upload", NULL);

        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        g_assert_cmpint(fd, >=, 0);
        g_assert_cmpint(umount2(folder, MNT_DETACH), ==, 0);
    }
    g_assert_cmpint(rmdir(folder), ==, 0);
    return fd;
}

static void
test_disk_gets_full(void)
{
    int small = open_on_small_disk();
    FileTest t;

    if (small < 0) {
        g_test_skip("no mount namespace of our own");
        return;
    }
    file_test_init(&t, NULL);
    int memory = t.file;
    t.file = small;
    expect_full(&t, 8 * MIB);
    g_assert_cmpuint(t.bytes, >, 100 * 1024); /* until there it went well */
    close(small);
    t.file = memory;
    t.fds--;
    file_test_clear(&t);
}

static void
test_stalled_upload(void)
{
    HttpLimits limits = HTTP_LIMITS_INIT;
    FileTest t;

    limits.body_stall_ms = 30;
    file_test_init(&t, &limits);
    int fd = fixture_connect(&t.f);
    client_sends(fd, PUT_CHUNKED "5\r\nhel");
    fixture_until(&t.uploads, 1);
    g_assert_cmpint(t.kind, ==, ERR_TIMEOUT);
    close(fd);
    file_test_clear(&t);
}

/* The file is ours until we are told, even when nobody waits for the answer any more. */
static void
test_upload_gone(void)
{
    for (int how = 0; how < 3; how++) {
        g_autofree char *body = g_malloc0(300000);
        g_autofree char *head = put_head(MIB);
        FileTest t;

        file_test_init(&t, NULL);
        int blocked = file_block_disk(&t);
        int fd = fixture_connect(&t.f);
        client_sends(fd, head);
        client_send(fd, body, how == 0 ? 70000 : 300000);
        fixture_turn();
        struct linger now = {.l_onoff = 1, .l_linger = 0};
        g_assert_cmpint(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), ==, 0);
        close(fd);
        if (how < 2)
            fixture_until(&t.f.gone, 1);
        else
            http_server_unlisten(t.f.server, t.f.listener);
        g_assert_cmpuint(t.uploads, ==, 0); /* a piece is still in flight */
        close(blocked);
        if (how > 0)
            fixture_until(&t.uploads, 1);
        file_test_clear(&t);
        g_assert_cmpuint(t.uploads, ==, 1);
        g_assert_cmpint(t.kind, ==, ERR_CANCELLED);
    }
}

static void
test_upload_vanish(void)
{
    static const char request[] = PUT_CHUNKED "5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n";
    FileTest t;

    file_test_init(&t, NULL);
    for (size_t at = 0; at < sizeof request; at++) {
        int fd = fixture_connect(&t.f);

        client_send(fd, request, at);
        fixture_turn();
        close(fd);
        fixture_turn();
    }
    fixture_until(&t.f.over, t.f.handled);
    fixture_until(&t.uploads, t.f.handled);
    g_assert_cmpuint(t.uploads, ==, t.f.handled);
    file_test_clear(&t);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    fixture_turn(); /* the context has its own fd from then on */
    g_test_add_func("/file/disk-gets-full", test_disk_gets_full); /* before there are threads */
    g_test_add_func("/file/up/large", test_large_upload);
    g_test_add_func("/file/up/small", test_small_uploads);
    g_test_add_func("/file/up/tiny-chunks", test_tiny_chunks);
    g_test_add_func("/file/up/slow-disk", test_slow_disk);
    g_test_add_func("/file/up/no-room", test_no_room);
    g_test_add_func("/file/up/may-not-grow", test_file_may_not_grow);
    g_test_add_func("/file/up/no-room-late", test_no_room_answered_late);
    g_test_add_func("/file/up/stalled", test_stalled_upload);
    g_test_add_func("/file/up/gone", test_upload_gone);
    g_test_add_func("/file/up/vanish", test_upload_vanish);
    return g_test_run();
}
