/* SPDX-License-Identifier: Apache-2.0 */
/* Files as answers: ranges, conditions, and files or clients that change meanwhile. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "file-fixture.h"

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define CLOSE "Connection: close\r\n\r\n"

enum { MARGIN = 8 * MIB };

/* ---- down ---- */

static const struct {
    const char *headers;
    int status;
    const char *range, *body; /* NULL: no Content-Range; the whole file */
} ranges[] = {
    {"", 200, NULL, NULL},
    {"Range: bytes=0-0\r\n", 206, "bytes 0-0/10", "0"},
    {"Range: bytes=2-4\r\n", 206, "bytes 2-4/10", "234"},
    {"Range: bytes=7-\r\n", 206, "bytes 7-9/10", "789"},
    {"Range: bytes=-3\r\n", 206, "bytes 7-9/10", "789"},
    {"Range: bytes=0-99\r\n", 206, "bytes 0-9/10", "0123456789"},
    {"Range: bytes=-99\r\n", 206, "bytes 0-9/10", "0123456789"},
    {"Range: bytes=10-\r\n", 416, "bytes */10", ""},
    {"Range: bytes=-0\r\n", 416, "bytes */10", ""},
    {"Range: bytes=0-1,3-4\r\n", 200, NULL, NULL},
    {"Range: bytes=4-2\r\n", 200, NULL, NULL},
    {"Range: lines=1-2\r\n", 200, NULL, NULL},
    {"Range: bytes=1-2\r\nRange: bytes=3-4\r\n", 200, NULL, NULL},
    {"Range: bytes=1-2\r\nIf-Range: \"tag\"\r\n", 206, "bytes 1-2/10", "12"},
    {"Range: bytes=1-2\r\nIf-Range: \"other\"\r\n", 200, NULL, NULL},
    {"Range: bytes=1-2\r\nIf-Range: W/\"tag\"\r\n", 200, NULL, NULL},
    {"Range: bytes=1-2\r\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 200, NULL, NULL},
    {"Range: bytes=10-\r\nIf-Range: \"other\"\r\n", 200, NULL, NULL},
    {"If-None-Match: \"tag\"\r\n", 304, NULL, ""},
    {"If-None-Match: \"a\", W/\"tag\"\r\n", 304, NULL, ""},
    {"If-None-Match: \"a\"\r\nIf-None-Match: \"tag\"\r\n", 304, NULL, ""},
    {"If-None-Match: *\r\n", 304, NULL, ""},
    {"If-None-Match: \"a\"\r\n", 200, NULL, NULL},
    {"If-None-Match: \"tag\"\r\nRange: bytes=10-\r\n", 304, NULL, ""},
};

static void
test_ranges(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ranges); i++) {
        g_autofree char *request = g_strconcat(GET, ranges[i].headers, CLOSE, NULL);
        FileTest t;

        g_test_message("%s", ranges[i].headers);
        file_test_init(&t, NULL);
        t.spec.etag = "\"tag\"";
        t.spec.disposition = "attachment; filename=\"x\"";
        g_assert_true(io_write_all(t.file, "0123456789", 10));
        g_autofree char *answer = client_ask(&t.f, request);
        g_assert_cmpint(answer_status(answer), ==, ranges[i].status);
        g_assert_nonnull(strstr(answer, "\r\nETag: \"tag\"\r\n"));
        g_assert_nonnull(strstr(answer, "\r\nAccept-Ranges: bytes\r\n"));
        g_assert_nonnull(strstr(answer, "\r\nContent-Disposition: attachment; filename=\"x\"\r\n"));
        g_autofree char *range = g_strdup_printf("\r\nContent-Range: %s\r\n",
                                                 ranges[i].range != NULL ? ranges[i].range : "");
        g_assert_true((strstr(answer, range) != NULL) == (ranges[i].range != NULL));
        if (ranges[i].range == NULL)
            g_assert_null(strstr(answer, "Content-Range"));
        if (ranges[i].status != 416)
            g_assert_cmpstr(answer_body(answer), ==, ranges[i].body != NULL ? ranges[i].body : "0123456789");
        file_test_clear(&t);
    }
}

static void
test_head_and_others(void)
{
    FileTest t;

    file_test_init(&t, NULL);
    t.spec.etag = "\"tag\"";
    g_assert_true(io_write_all(t.file, "0123456789", 10));
    g_autofree char *head = client_ask(&t.f, "HEAD / HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2\r\n" CLOSE);
    g_assert_cmpint(answer_status(head), ==, 200);
    g_assert_nonnull(strstr(head, "\r\nContent-Length: 10\r\n"));
    g_assert_cmpstr(answer_body(head), ==, "");
    g_autofree char *known = client_ask(&t.f,
                                        "HEAD / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"tag\"\r\n" CLOSE);
    g_assert_cmpint(answer_status(known), ==, 304);
    g_autofree char *post = client_ask(
        &t.f, "POST / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"tag\"\r\nRange: bytes=1-2\r\n" CLOSE);
    g_assert_cmpint(answer_status(post), ==, 200);
    g_assert_cmpstr(answer_body(post), ==, "0123456789");

    /* Without a tag nothing is conditional. */
    t.spec.etag = NULL;
    g_autofree char *any = client_ask(&t.f, GET
                                      "If-None-Match: *\r\nIf-Range: \"tag\"\r\nRange: bytes=1-2\r\n" CLOSE);
    g_assert_cmpint(answer_status(any), ==, 200);

    g_assert_cmpint(ftruncate(t.file, 0), ==, 0);
    g_autofree char *empty = client_ask(&t.f, GET CLOSE);
    g_assert_nonnull(strstr(empty, "\r\nContent-Length: 0\r\n"));

    close(t.file);
    t.file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    g_autofree char *device = client_ask(&t.f, GET CLOSE);
    g_assert_cmpint(answer_status(device), ==, 404);
    close(t.file);
    t.file = -1; /* the handler could not open it */
    g_autofree char *missing = client_ask(&t.f, GET CLOSE);
    g_assert_cmpint(answer_status(missing), ==, 404);
    file_test_clear(&t);
}

static void
test_large_download(void)
{
    g_autoptr(GChecksum) sent = g_checksum_new(G_CHECKSUM_SHA256);
    g_autoptr(GChecksum) got = g_checksum_new(G_CHECKSUM_SHA256);
    FileTest t;

    file_test_init(&t, NULL);
    file_fill(t.file, FILE_LARGE, sent);
    int fd = fixture_connect(&t.f);
    client_sends(fd, GET "\r\n");
    g_autoptr(GString) head = client_read(fd, "\r\n\r\n");
    const char *early = answer_body(head->str);
    size_t n = head->len - (size_t)(early - head->str);
    g_checksum_update(got, (const guchar *)early, (gssize)n);
    fixture_turn(); /* a reader that waits: what is on its way is bounded */
    size_t rss = fixture_rss();
    while (n < FILE_LARGE) {
        g_autoptr(GByteArray) part = client_read_n(fd, MIN(FILE_LARGE - n, (size_t)MIB));

        g_assert_cmpuint(part->len, >, 0);
        g_checksum_update(got, part->data, part->len);
        n += part->len;
    }
    g_assert_cmpstr(g_checksum_get_string(got), ==, g_checksum_get_string(sent));
    g_assert_cmpuint(fixture_rss(), <, rss + MARGIN);
    client_sends(fd, GET "Range: bytes=0-0\r\n" CLOSE); /* the connection goes on */
    g_autoptr(GString) next = client_read(fd, NULL);
    g_assert_cmpint(answer_status(next->str), ==, 206);
    close(fd);
    file_test_clear(&t);
}

static void
test_truncated_while_sending(void)
{
    FileTest t;

    file_test_init(&t, NULL);
    file_fill(t.file, 16 * MIB, NULL);
    int fd = fixture_connect(&t.f);
    client_sends(fd, GET "\r\n");
    g_autoptr(GByteArray) some = client_read_n(fd, 1000);
    g_assert_cmpint(ftruncate(t.file, MIB), ==, 0);
    g_assert_true(client_sees_close(fd));
    fixture_until(&t.f.gone, 1);
    close(fd);
    file_test_clear(&t);
}

/* The client goes, or the whole server, while a piece is read. */
static void
test_download_gone(void)
{
    for (int how = 0; how < 4; how++) {
        FileTest t;

        file_test_init(&t, NULL);
        file_fill(t.file, 4 * MIB, NULL);
        int blocked = file_block_disk(&t);
        int fd = fixture_connect(&t.f);
        client_sends(fd, GET "\r\n");
        g_autoptr(GString) head = client_read(fd, "\r\n\r\n");
        g_assert_cmpint(answer_status(head->str), ==, 200);
        if (how == 0) {
            struct linger now = {.l_onoff = 1, .l_linger = 0};

            g_assert_cmpint(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), ==, 0);
            close(fd);
            fixture_until(&t.f.gone, 1);
            close(blocked);
        } else if (how == 1) {
            http_server_unlisten(t.f.server, t.f.listener);
            close(fd);
            close(blocked);
            fixture_turn();
        } else {
            close(fd);
            close(blocked); /* the server ends with the piece in any state */
        }
        file_test_clear(&t);
    }
}

/* Nobody is there when the answer comes: the file is closed all the same. */
static void
test_download_for_nobody(void)
{
    FileTest t;

    file_test_init(&t, NULL);
    file_fill(t.file, 1000, NULL);
    t.wait = true;
    int fd = fixture_connect(&t.f);
    client_sends(fd, GET "\r\n");
    fixture_until(&t.f.handled, 1);
    http_server_unlisten(t.f.server, t.f.listener);
    file_answer(&t);
    close(fd);
    file_test_clear(&t);
}

static void
test_download_vanish(void)
{
    FileTest t;

    file_test_init(&t, NULL);
    file_fill(t.file, 4 * MIB, NULL);
    for (size_t at = 0; at < 4 * MIB; at = at * 2 + 1) {
        int fd = fixture_connect(&t.f);

        client_sends(fd, GET "\r\n");
        g_autoptr(GByteArray) some = client_read_n(fd, at);
        close(fd);
    }
    fixture_until(&t.f.over, t.f.handled);
    file_test_clear(&t);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    fixture_turn(); /* the context has its own fd from then on */
    g_test_add_func("/file/down/ranges", test_ranges);
    g_test_add_func("/file/down/methods", test_head_and_others);
    g_test_add_func("/file/down/large", test_large_download);
    g_test_add_func("/file/down/truncated", test_truncated_while_sending);
    g_test_add_func("/file/down/gone", test_download_gone);
    g_test_add_func("/file/down/nobody", test_download_for_nobody);
    g_test_add_func("/file/down/vanish", test_download_vanish);
    return g_test_run();
}
