/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a box on their way through the server: real sockets on the one side, on the other a
 * box that is played (played-box.h). */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/gate.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "http-fixture.h"
#include "played-box.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
#define PIECE (32 * 1024)

/* ---- the server ---- */

static struct Api api = {.body_max = 1000};

static void
call_free(gpointer data)
{
    g_free(data);
}

static void
handle(HttpRequest *request, void *data)
{
    static const ApiRoute *const tables[] = {files_content_routes, files_tree_routes};
    ApiCall *call = g_new0(ApiCall, 1);

    call->api = &api;
    call->request = request;
    http_request_set_data(request, call, call_free);
    const char *method = http_request_method(request);
    bool tree = g_str_has_suffix(http_request_path(request), "/archive");
    for (const ApiRoute *r = tables[tree]; r->method != NULL; r++) {
        if (strcmp(r->method, method) == 0 || (strcmp(method, "HEAD") == 0 && r == tables[tree]))
            r->handle(call);
    }
}

static void
begin(Fixture *f)
{
    played_init();
    fixture_init_handler(f, NULL, handle, NULL);
}

static void
finish(Fixture *f)
{
    fixture_clear(f);
    played_clear();
}

static int
ask(Fixture *f, const char *request)
{
    int fd = fixture_connect(f);
    guint reads = played.reads, writes = played.writes;

    client_sends(fd, request);
    while (played.reads == reads && played.writes == writes)
        g_main_context_iteration(NULL, TRUE);
    return fd;
}

/* ---- out ---- */

static void
test_read(void)
{
    Fixture f;

    begin(&f);
    int fd = ask(&f, GET("/files?path=f"));
    g_assert_cmpint(played.length, ==, -1);
    tell_entry(5);
    g_assert_true(tell_data("he", 2));
    g_assert_true(tell_data("llo", 3));
    /* Everything that was promised is there: the reader is not waited for. */
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, 200);
    g_assert_cmpstr(answer_body(answer->str), ==, "hello");
    g_assert_cmpuint(played.cancelled, ==, 1);
    close(fd);

    fd = ask(&f, "HEAD /files?path=f HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    g_assert_cmpint(played.length, ==, 0);
    tell_entry(5);
    g_autoptr(GString) head = client_read(fd, NULL);
    g_assert_nonnull(strstr(head->str, "Content-Length: 5\r\n"));
    g_assert_cmpstr(answer_body(head->str), ==, "");
    g_assert_null(played.read);
    close(fd);
    finish(&f);
}

static void
test_read_fails(void)
{
    static const struct {
        ErrKind kind;
        int status;
    } cases[] = {{ERR_NOT_FOUND, 404}, {ERR_DENIED, 403}, {ERR_INVALID, 400}, {ERR_UNAVAILABLE, 503}};
    Fixture f;

    begin(&f);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        int fd = ask(&f, GET("/files?path=f"));

        tell_read_end(cases[i].kind, "no");
        g_autoptr(GString) answer = client_read(fd, NULL);
        g_assert_cmpint(answer_status(answer->str), ==, cases[i].status);
        close(fd);
    }
    /* Neither an entry nor an error. */
    int fd = ask(&f, GET("/files?path=f"));
    tell_read_end(0, NULL);
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, 503);
    close(fd);
    played.refuse = true;
    g_autofree char *refused_at_once = client_ask(&f, GET("/files?path=f"));
    g_assert_cmpint(answer_status(refused_at_once), ==, 409);
    finish(&f);
}

/* What was promised and does not come must not look whole. */
static void
test_read_is_cut_short(void)
{
    static const char *const errors[] = {NULL, "the box is gone"};
    Fixture f;

    begin(&f);
    for (size_t i = 0; i < G_N_ELEMENTS(errors); i++) {
        int fd = ask(&f, GET("/files?path=f"));

        tell_entry(10);
        g_assert_true(tell_data("hello", 5));
        tell_read_end(ERR_UNAVAILABLE, errors[i]);
        g_autoptr(GString) answer = client_read(fd, NULL);
        g_assert_cmpuint(strlen(answer_body(answer->str)), <, 10);
        close(fd);
    }
    g_assert_cmpuint(f.gone, ==, 2);
    finish(&f);
}

/* A file that grew gives what was promised, and no more. */
static void
test_read_grows(void)
{
    Fixture f;

    begin(&f);
    int fd = ask(&f, GET("/files?path=f"));
    tell_entry(3);
    tell_data("abcdef", 6);
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpstr(answer_body(answer->str), ==, "abc");
    close(fd);
    finish(&f);
}

static void
test_ranges(void)
{
    Fixture f;

    begin(&f);
    int fd = ask(&f, "GET /files?path=f HTTP/1.1\r\nHost: h\r\nRange: bytes=-4\r\nConnection: close\r\n\r\n");
    g_assert_cmpint(played.length, ==, 0);
    tell_entry(10);
    tell_read_end(0, NULL);
    g_assert_cmpuint(played.reads, ==, 2);
    g_assert_cmpuint(played.offset, ==, 6);
    g_assert_cmpint(played.length, ==, 4);
    tell_entry(12); /* it grew meanwhile */
    tell_data("6789", 4);
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_cmpint(answer_status(answer->str), ==, 206);
    g_assert_nonnull(strstr(answer->str, "Content-Range: bytes 6-9/12\r\n"));
    g_assert_cmpstr(answer_body(answer->str), ==, "6789");
    close(fd);

    fd = ask(&f, "GET /files?path=f HTTP/1.1\r\nHost: h\r\nRange: bytes=5-\r\nConnection: close\r\n\r\n");
    tell_entry(10);
    tell_read_end(0, NULL);
    tell_entry(9); /* it became shorter */
    g_autoptr(GString) shorter = client_read(fd, NULL);
    g_assert_cmpint(answer_status(shorter->str), ==, 409);
    close(fd);

    fd = ask(&f, "GET /files?path=f HTTP/1.1\r\nHost: h\r\nRange: bytes=10-\r\nConnection: close\r\n\r\n");
    tell_entry(10);
    tell_read_end(0, NULL);
    g_autoptr(GString) past = client_read(fd, NULL);
    g_assert_cmpint(answer_status(past->str), ==, 416);
    close(fd);

    fd = ask(&f, "GET /files?path=f HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\nConnection: close\r\n\r\n");
    tell_read_end(ERR_NOT_FOUND, "none");
    g_autoptr(GString) none = client_read(fd, NULL);
    g_assert_cmpint(answer_status(none->str), ==, 404);
    close(fd);
    finish(&f);
}

/* Nothing is fetched while the client does not read, and all of it when it does. */
static void
test_a_slow_client(void)
{
    enum { PIECES = 512 };
    g_autofree guint8 *piece = g_malloc0(PIECE);
    Fixture f;
    guint told = 0;

    begin(&f);
    int fd = ask(&f, GET("/files?path=f"));
    tell_entry((guint64)PIECES * PIECE);
    for (; played.offered->len == 0 && told < PIECES; told++) {
        tell_data(piece, PIECE);
        fixture_turn();
    }
    g_assert_cmpuint(told, <, PIECES);
    g_assert_cmpuint(played.moved, >, 0);
    size_t got = 0;
    while (got < (size_t)PIECES * PIECE) {
        g_autoptr(GByteArray) some = client_read_n(fd, PIECE);

        g_assert_cmpuint(some->len, ==, PIECE);
        got += some->len;
        while (played.read != NULL && played.offered->len == 0 && told < PIECES) {
            tell_data(piece, PIECE);
            told++;
            fixture_turn();
        }
    }
    close(fd);
    finish(&f);
}

/* The client goes at every moment; the read in the box goes with it. */
static void
test_a_client_that_goes(void)
{
    for (int moment = 0; moment < 4; moment++) {
        Fixture f;

        begin(&f);
        int fd = ask(&f, moment == 3 ? "GET /files?path=f HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n\r\n"
                                     : GET("/files?path=f"));
        if (moment == 1 || moment == 2)
            tell_entry(100);
        if (moment == 2)
            tell_data("x", 1);
        close(fd);
        while (played.cancelled == 0) {
            if (moment == 2 && played.read != NULL)
                tell_data("x", 1);
            g_main_context_iteration(NULL, FALSE);
        }
        finish(&f);
    }
}

static void
test_a_key_that_ends(void)
{
    Fixture f;

    begin(&f);
    int fd = ask(&f, GET("/files?path=f"));
    tell_entry(100);
    tell_data("x", 1);
    fixture_turn();
    played.unknown = true;
    tell_data("y", 1);
    g_autoptr(GString) answer = client_read(fd, NULL);
    g_assert_null(strstr(answer_body(answer->str), "y"));
    g_assert_cmpuint(played.cancelled, ==, 1);
    close(fd);
    finish(&f);
}

static void
test_trees(void)
{
    Fixture f;

    begin(&f);
    int fd = ask(&f, GET("/archive?path=f"));
    tell_data("tar", 3);
    tell_data("more", 4);
    tell_read_end(0, NULL);
    g_autoptr(GString) answer = client_read(fd, "0\r\n\r\n");
    g_assert_cmpint(answer_status(answer->str), ==, 200);
    g_assert_nonnull(strstr(answer->str, "more\r\n0\r\n\r\n"));
    close(fd);

    fd = ask(&f, GET("/archive?path=f"));
    tell_read_end(ERR_NOT_FOUND, "none");
    g_autoptr(GString) none = client_read(fd, NULL);
    g_assert_cmpint(answer_status(none->str), ==, 404);
    close(fd);

    fd = ask(&f, GET("/archive?path=f"));
    tell_data("tar", 3);
    tell_read_end(ERR_UNAVAILABLE, "the box is gone");
    g_autoptr(GString) cut = client_read(fd, NULL);
    g_assert_null(strstr(cut->str, "0\r\n\r\n"));
    close(fd);
    finish(&f);
}

/* ---- in ---- */

#define PUT(length, body)                                                                                    \
    "PUT /files?path=f&mode=0600 HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: " length        \
    "\r\n\r\n" body

static void
expect_answer(int fd, int status)
{
    g_autoptr(GString) answer = client_read(fd, NULL);

    g_assert_cmpint(answer_status(answer->str), ==, status);
    close(fd);
}

static void
test_write(void)
{
    Fixture f;

    begin(&f);
    int fd = ask(&f, PUT("5", "hello"));
    while (played.ended == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpint(played.mode, ==, 0600);
    g_assert_cmpint(played.length, ==, 5);
    g_assert_cmpmem(played.written->data, played.written->len, "hello", 5);
    tell_write_end(0, NULL);
    expect_answer(fd, 201);

    fd = ask(&f, "PUT /files?path=f HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: "
                 "chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    while (played.ended == 1)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpint(played.mode, ==, -1);
    g_assert_cmpint(played.length, ==, -1);
    tell_write_end(0, NULL);
    expect_answer(fd, 201);
    finish(&f);
}

/* Byte by byte: nothing is lost, and the end waits for the last one. */
static void
test_write_without_room(void)
{
    Fixture f;

    begin(&f);
    played.room = 0;
    int fd = ask(&f, PUT("5", "hello"));
    fixture_turn();
    for (int i = 0; i < 5; i++) {
        fixture_turn();
        g_assert_cmpuint(played.ended, ==, 0);
        tell_room(1);
    }
    while (played.ended == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpmem(played.written->data, played.written->len, "hello", 5);
    tell_write_end(0, NULL);
    expect_answer(fd, 201);
    finish(&f);
}

/* A box that takes nothing holds the client up. */
static void
test_write_holds_up(void)
{
    g_autofree guint8 *block = g_malloc0(MIB);
    Fixture f;

    begin(&f);
    played.room = 0;
    int fd = ask(&f, PUT("104857600", ""));
    size_t sent = 0;
    for (int quiet = 0; quiet < 50;) {
        ssize_t n = send(fd, block, MIB, MSG_DONTWAIT | MSG_NOSIGNAL);

        quiet = n > 0 ? 0 : quiet + 1;
        sent += n > 0 ? (size_t)n : 0;
        fixture_turn();
    }
    g_assert_cmpuint(sent, <, 16 * MIB); /* what the kernel holds */
    g_assert_cmpuint(played.written->len, ==, 0);
    close(fd);
    /* The end of the connection lies behind what was sent before. */
    tell_room(SIZE_MAX);
    while (played.cancelled == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(played.written->len, ==, sent);
    g_assert_cmpuint(played.ended, ==, 0);
    finish(&f);
}

/* Most of a large body goes past the server's memory; its order, its last byte and whatever comes
 * behind it are what they would be. */
static void
write_large(size_t size)
{
    g_autofree guint8 *body = g_malloc(size);
    g_autofree char *head = g_strdup_printf(
        "PUT /files?path=f HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\nx", size);
    g_autofree char *told = g_strdup_printf("%zu}", size);
    Fixture f;
    size_t sent = 1;

    for (size_t i = 0; i < size; i++)
        body[i] = (guint8)(i * 2654435761u >> 13);
    body[0] = 'x';
    begin(&f);
    played.room = 1;
    int fd = ask(&f, head);
    while (played.ended == 0) {
        ssize_t n = send(fd, body + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        sent += n > 0 ? (size_t)n : 0;
        fixture_turn();
        /* What the kernel takes lies there, all of a small one. */
        if (played.room == 0 && n <= 0)
            tell_room(700001);
    }
    g_assert_cmpuint(played.moved, >, 0);
    g_assert_cmpmem(played.written->data, played.written->len, body, size);
    tell_write_end(0, NULL);
    g_autoptr(GString) answer = client_read(fd, "}");
    g_assert_cmpint(answer_status(answer->str), ==, 201);
    g_assert_nonnull(strstr(answer->str, told));
    client_sends(fd, GET("/files?path=f"));
    while (played.reads == 0)
        g_main_context_iteration(NULL, TRUE);
    tell_entry(0);
    expect_answer(fd, 200);
    finish(&f);
}

static void
test_write_large(void)
{
    write_large(100 * 1024);
    write_large(3 * MIB + 17);
}

/* Nothing is written before the folder is there; whoever asked may have gone meanwhile. */
static void
test_write_with_parents(void)
{
    static const char request[] = "PUT /files?path=a/b/f&parents=1 HTTP/1.1\r\nHost: h\r\nConnection: "
                                  "close\r\nContent-Length: 5\r\n\r\nhello";

    for (int how = 0; how < 3; how++) {
        Fixture f;

        begin(&f);
        int fd = fixture_connect(&f);
        client_sends(fd, request);
        while (played.made == NULL)
            g_main_context_iteration(NULL, TRUE);
        fixture_turn();
        g_assert_cmpstr(played.folder, ==, "a/b");
        g_assert_cmpuint(played.writes, ==, 0);
        if (how == 2)
            close(fd);
        fixture_turn();
        tell_made(ERR_DENIED, how == 1 ? "no" : NULL);
        while (how == 0 && played.ended == 0)
            g_main_context_iteration(NULL, TRUE);
        if (how == 0)
            tell_write_end(0, NULL);
        if (how != 2)
            expect_answer(fd, how == 0 ? 201 : 403);
        else if (played.write != NULL)
            tell_write_end(0, NULL);
        g_assert_cmpuint(played.writes, ==, how == 1 ? 0 : 1);
        finish(&f);
    }
}

/* In the middle of it: the client goes, the box fails, the key ends. */
static void
test_write_large_ends(void)
{
    g_autofree guint8 *block = g_malloc0(MIB);

    for (int how = 0; how < 3; how++) {
        Fixture f;

        begin(&f);
        int fd = ask(&f, PUT("104857600", ""));
        while (played.moved < 4) {
            (void)!send(fd, block, MIB, MSG_DONTWAIT | MSG_NOSIGNAL);
            fixture_turn();
        }
        if (how == 0)
            close(fd);
        else if (how == 1)
            tell_write_end(ERR_FULL, "no room");
        else
            played.unknown = true;
        while (how != 1 && played.cancelled == 0) {
            if (how == 2)
                (void)!send(fd, block, MIB, MSG_DONTWAIT | MSG_NOSIGNAL);
            g_main_context_iteration(NULL, FALSE);
        }
        g_assert_cmpuint(played.ended, ==, 0);
        g_assert_cmpuint(played.written->len, <, 32 * MIB);
        if (how != 0) {
            g_autoptr(GString) answer = client_read(fd, "}");

            g_assert_cmpint(answer_status(answer->str), ==, how == 1 ? 507 : 401);
            close(fd);
        }
        finish(&f);
    }
}

static void
test_write_fails(void)
{
    static const char *const requests[] = {PUT("5", "hello"), PUT("5", "he")};
    Fixture f;

    begin(&f);
    for (size_t i = 0; i < G_N_ELEMENTS(requests); i++) {
        int fd = ask(&f, requests[i]);

        tell_write_end(ERR_FULL, "no room");
        expect_answer(fd, 507);
    }
    /* It fails while there is more to come. */
    played.room = 1;
    int fd = ask(&f, PUT("5", "he"));
    fixture_turn();
    tell_write_end(ERR_FULL, "no room");
    expect_answer(fd, 507);
    played.refuse = true;
    g_autofree char *answer = client_ask(&f, PUT("5", "hello"));
    g_assert_cmpint(answer_status(answer), ==, 409);
    finish(&f);
}

static void
test_write_is_cut(void)
{
    static const char *const requests[] = {
        PUT("5", ""), PUT("5", "hell"),
        "PUT /files?path=f HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "PUT /files?path=f HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz",
        "PUT /archive?path=f HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabc"};

    for (size_t i = 0; i < G_N_ELEMENTS(requests); i++) {
        Fixture f;

        begin(&f);
        int fd = ask(&f, requests[i]);
        close(fd);
        while (played.cancelled == 0)
            g_main_context_iteration(NULL, TRUE);
        g_assert_cmpuint(played.ended, ==, 0);
        finish(&f);
    }
}

static void
test_write_with_a_key_that_ended(void)
{
    Fixture f;

    begin(&f);
    int fd = ask(&f, PUT("5", "he"));
    played.unknown = true;
    client_sends(fd, "llo");
    expect_answer(fd, 401);
    g_assert_cmpuint(played.ended, ==, 0);
    g_assert_cmpuint(played.cancelled, ==, 1);
    finish(&f);
}

/* The answer is lost, the file is not. */
static void
test_write_of_a_client_that_went_after(void)
{
    Fixture f;

    begin(&f);
    int fd = ask(&f, PUT("5", "hello"));
    while (played.ended == 0)
        g_main_context_iteration(NULL, TRUE);
    close(fd);
    fixture_turn();
    tell_write_end(0, NULL);
    fixture_until(&f.over, 1);
    g_assert_cmpuint(played.cancelled, ==, 0);
    finish(&f);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/files/read", test_read);
    g_test_add_func("/files/read/fails", test_read_fails);
    g_test_add_func("/files/read/short", test_read_is_cut_short);
    g_test_add_func("/files/read/grows", test_read_grows);
    g_test_add_func("/files/read/ranges", test_ranges);
    g_test_add_func("/files/read/slow-client", test_a_slow_client);
    g_test_add_func("/files/read/client-goes", test_a_client_that_goes);
    g_test_add_func("/files/read/key-ends", test_a_key_that_ends);
    g_test_add_func("/files/trees", test_trees);
    g_test_add_func("/files/write", test_write);
    g_test_add_func("/files/write/no-room", test_write_without_room);
    g_test_add_func("/files/write/holds-up", test_write_holds_up);
    g_test_add_func("/files/write/large", test_write_large);
    g_test_add_func("/files/write/parents", test_write_with_parents);
    g_test_add_func("/files/write/large-ends", test_write_large_ends);
    g_test_add_func("/files/write/fails", test_write_fails);
    g_test_add_func("/files/write/cut", test_write_is_cut);
    g_test_add_func("/files/write/key-ended", test_write_with_a_key_that_ended);
    g_test_add_func("/files/write/client-went", test_write_of_a_client_that_went_after);
    return g_test_run();
}
