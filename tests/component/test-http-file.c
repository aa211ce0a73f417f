/* SPDX-License-Identifier: Apache-2.0 */
#include "http/file.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "http-fixture.h"

enum { SMALL = 1000, LARGE = 8 * 1024 * 1024 };

/* A server of two routes on the fixture's clients: GET sends the file, PUT stores it. */
typedef struct Files {
    Fixture f;
    char *folder, *path;
    guint uploads; /* that ended */
    ErrKind last;  /* how the last one went wrong */
    bool failed;
} Files;

static void
on_uploaded(HttpRequest *request, guint64 bytes, const GError *error, void *data)
{
    Files *t = data;
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, bytes);

    t->uploads++;
    t->failed = error != NULL;
    t->last = error != NULL ? err_kind(error) : ERR_KIND_MAX;
    close(GPOINTER_TO_INT(http_request_data(request)));
    http_respond_text(request, error == NULL ? 201 : 507, "text/plain", text);
}

static void
handle(HttpRequest *request, void *data)
{
    Files *t = data;
    HttpFileSpec spec = {.type = "text/plain", .etag = "\"v1\"", .disposition = "attachment"};

    t->f.handled++;
    if (strcmp(http_request_method(request), "PUT") == 0) {
        int fd = open(t->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        http_request_set_data(request, GINT_TO_POINTER(fd), NULL);
        http_request_read_to_file(request, fd, LARGE, on_uploaded, t);
    } else {
        http_respond_file(request, open(t->path, O_RDONLY | O_CLOEXEC), &spec);
    }
}

static void
files_init(Files *t, size_t size)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HttpListenerSpec listener = {.name = "files"};
    g_autofree char *content = g_malloc(size + 1);

    *t = (Files){0};
    t->folder = g_dir_make_tmp("coop-file-XXXXXX", NULL);
    t->path = g_build_filename(t->folder, "file", NULL);
    for (size_t i = 0; i < size; i++)
        content[i] = (char)('a' + i % 26);
    g_assert_true(g_file_set_contents(t->path, content, (gssize)size, NULL));
    t->f.loop = http_loop_new(NULL);
    HttpServerSpec spec = {.loop = t->f.loop, .limits = HTTP_LIMITS_INIT, .handler = handle, .data = t};
    t->f.server = http_server_new(&spec);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&a, sizeof a), ==, 0);
    g_assert_cmpint(listen(fd, 64), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)&a, &n), ==, 0);
    t->f.port = ntohs(a.sin_port);
    t->f.listener = http_server_listen(t->f.server, fd, &listener, NULL);
}

static void
files_clear(Files *t)
{
    http_server_free(t->f.server);
    http_loop_free(t->f.loop);
    g_unlink(t->path);
    g_assert_cmpint(g_rmdir(t->folder), ==, 0);
    g_free(t->path);
    g_free(t->folder);
}

static void
test_ranges(void)
{
    static const struct {
        const char *headers;
        int status;
        const char *where;
        size_t n;
        char first;
    } rows[] = {
        {"", 200, NULL, SMALL, 'a'},
        {"Range: bytes=0-0\r\n", 206, "bytes 0-0/1000", 1, 'a'},
        {"Range: bytes=26-\r\n", 206, "bytes 26-999/1000", 974, 'a'},
        {"Range: bytes=1-3\r\n", 206, "bytes 1-3/1000", 3, 'b'},
        {"Range: bytes=-2\r\n", 206, "bytes 998-999/1000", 2, 'k'},
        {"Range: bytes=1000-\r\n", 416, "bytes */1000", 0, 0},
        {"Range: lines=1-2\r\n", 200, NULL, SMALL, 'a'},
        {"If-Range: \"v1\"\r\nRange: bytes=1-3\r\n", 206, "bytes 1-3/1000", 3, 'b'},
        {"If-Range: \"v0\"\r\nRange: bytes=1-3\r\n", 200, NULL, SMALL, 'a'},
        {"If-None-Match: \"v1\"\r\n", 304, NULL, 0, 0},
        {"If-None-Match: \"v0\"\r\n", 200, NULL, SMALL, 'a'},
    };
    Files t;

    files_init(&t, SMALL);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *request = g_strdup_printf(
            "GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n", rows[i].headers);
        g_autofree char *answer = client_ask(&t.f, request);

        g_test_message("row %zu", i);
        g_assert_cmpint(answer_status(answer), ==, rows[i].status);
        g_assert_cmpuint(strlen(answer_body(answer)), ==, rows[i].n);
        if (rows[i].n > 0)
            g_assert_cmpint(answer_body(answer)[0], ==, rows[i].first);
        if (rows[i].where != NULL)
            g_assert_nonnull(strstr(answer, rows[i].where));
    }
    g_autofree char *head = client_ask(&t.f, "HEAD /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    g_assert_nonnull(strstr(head, "Content-Length: 1000\r\n"));
    g_assert_cmpstr(answer_body(head), ==, "");
    files_clear(&t);
}

static void
test_missing(void)
{
    Files t;

    files_init(&t, SMALL);
    g_unlink(t.path);
    g_autofree char *answer = client_ask(&t.f, "GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    g_assert_cmpint(answer_status(answer), ==, 404);
    files_clear(&t);
}

static void
test_there_and_back(void)
{
    g_autofree char *content = g_malloc(LARGE);
    g_autofree char *stored = NULL;
    gsize n;
    Files t;

    for (size_t i = 0; i < LARGE; i++)
        content[i] = (char)(i * 2654435761u >> 24);
    files_init(&t, 0);
    autofd up = fixture_connect(&t.f);
    client_sends(up, "PUT /file HTTP/1.1\r\nHost: a\r\nContent-Length: 8388608\r\n\r\n");
    client_send(up, content, LARGE);
    g_autoptr(GString) answer = client_read(up, "8388608");
    g_assert_cmpint(answer_status(answer->str), ==, 201);
    g_assert_true(g_file_get_contents(t.path, &stored, &n, NULL));
    g_assert_cmpmem(stored, n, content, LARGE);

    autofd down = fixture_connect(&t.f);
    client_sends(down, "GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    g_autoptr(GString) back = client_read(down, NULL);
    const char *body = strstr(back->str, "\r\n\r\n") + 4;
    g_assert_cmpmem(body, back->len - (size_t)(body - back->str), content, LARGE);
    files_clear(&t);
}

static void
test_too_long(void)
{
    Files t;

    files_init(&t, 0);
    g_autofree char *answer = client_ask(&t.f,
                                         "PUT /file HTTP/1.1\r\nHost: a\r\nContent-Length: 8388609\r\n\r\n");
    g_assert_cmpint(answer_status(answer), ==, 507);
    g_assert_cmpint(t.last, ==, ERR_LIMIT);
    files_clear(&t);
}

/* A file that may not grow any further stands in for a full disk. */
static void
test_write_fails(void)
{
    struct rlimit before, limit;
    g_autofree char *content = g_strnfill(1024 * 1024, 'x');
    Files t;

    signal(SIGXFSZ, SIG_IGN);
    files_init(&t, 0);
    g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &before), ==, 0);
    limit = (struct rlimit){.rlim_cur = 100000, .rlim_max = before.rlim_max};
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
    autofd fd = fixture_connect(&t.f);
    client_sends(fd, "PUT /file HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n");
    client_send(fd, content, 1024 * 1024);
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &before), ==, 0);
    g_assert_cmpint(answer_status(answer->str), ==, 507);
    g_assert_cmpuint(t.uploads, ==, 1);
    files_clear(&t);
}

static void
test_cut_short_does_not_look_whole(void)
{
    Files t;

    files_init(&t, LARGE);
    autofd fd = fixture_connect(&t.f);
    client_sends(fd, "GET /file HTTP/1.1\r\nHost: a\r\n\r\n");
    fixture_until(&t.f.handled, 1);
    g_assert_cmpint(truncate(t.path, 100), ==, 0);
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpuint(answer->len, <, LARGE);
    files_clear(&t);
}

/* The client or the whole server goes while pieces are with the pool. */
static void
test_vanish(void)
{
    g_autofree char *content = g_strnfill(200000, 'x');

    for (int i = 0; i < 50; i++) {
        Files t;

        files_init(&t, LARGE);
        int down = fixture_connect(&t.f), up = fixture_connect(&t.f);
        client_sends(down, "GET /file HTTP/1.1\r\nHost: a\r\n\r\n");
        client_sends(up, "PUT /other HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
        client_send(up, content, (size_t)i * 4000);
        for (int turn = 0; turn < i; turn++)
            g_main_context_iteration(NULL, FALSE);
        close(down);
        if (i % 2 == 0) {
            close(up);
            fixture_until(&t.uploads, 1);
            g_assert_cmpint(t.last, ==, ERR_CANCELLED);
        }
        files_clear(&t);
        if (i % 2 != 0)
            close(up);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/file/ranges", test_ranges);
    g_test_add_func("/file/missing", test_missing);
    g_test_add_func("/file/there-and-back", test_there_and_back);
    g_test_add_func("/file/too-long", test_too_long);
    g_test_add_func("/file/write-fails", test_write_fails);
    g_test_add_func("/file/cut-short", test_cut_short_does_not_look_whole);
    g_test_add_func("/file/vanish", test_vanish);
    return g_test_run();
}
