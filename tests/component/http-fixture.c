/* SPDX-License-Identifier: Apache-2.0 */
#include "http-fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

enum { ECHO_MAX = 1024 * 1024, SERVER_PIECE = 16 * 1024 };

/* ---- streams of a known byte ---- */

typedef struct Xes {
    guint64 left;
} Xes;

static HttpPull
pull_xes(void *ctx, Buf *out)
{
    Xes *x = ctx;
    size_t n = MIN(MIN(x->left, buf_room(out)), (guint64)SERVER_PIECE);

    if (n == 0)
        return HTTP_PULL_END;
    memset(buf_reserve(out, n), 'x', n);
    buf_grow(out, n);
    x->left -= n;
    return HTTP_PULL_DATA;
}

static const HttpSource xes_source = {.pull = pull_xes, .closed = g_free};

static HttpPull
pull_once(void *ctx, Buf *out)
{
    bool *said = ctx;

    if (*said)
        return HTTP_PULL_WAIT;
    *said = buf_puts(out, "hi\n");
    return HTTP_PULL_DATA;
}

static const HttpSource once_source = {.pull = pull_once, .closed = g_free};

static HttpPull
pull_broken(void *ctx, Buf *out)
{
    bool *said = ctx;

    if (*said)
        return HTTP_PULL_FAIL;
    *said = buf_puts(out, "0123456789");
    return HTTP_PULL_DATA;
}

static const HttpSource broken_source = {.pull = pull_broken, .closed = g_free};

/* ---- counting uploads ---- */

typedef struct Count {
    HttpRequest *request;
    guint64 bytes;
    bool slow;
} Count;

static gboolean
resume_count(gpointer data)
{
    http_request_resume_body(data);
    http_request_unref(data);
    return G_SOURCE_REMOVE;
}

static bool
count_data(void *ctx, const guint8 *bytes, size_t n)
{
    Count *c = ctx;

    c->bytes += n;
    if (!c->slow)
        return true;
    g_idle_add(resume_count, http_request_ref(c->request));
    return false;
}

static void
count_end(void *ctx, const GError *error)
{
    Count *c = ctx;
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT "\n", c->bytes);

    http_respond_text(c->request, error == NULL ? 200 : 413, "text/plain", text);
    http_request_unref(c->request);
    g_free(c);
}

static void
count_body(HttpRequest *request, bool slow)
{
    static const HttpSink sink = {.data = count_data, .end = count_end};
    Count *c = g_new0(Count, 1);

    c->request = http_request_ref(request);
    c->slow = slow;
    http_request_read_body(request, &sink, c, G_MAXUINT64);
}

/* ---- echoing duplex ---- */

typedef struct Echo {
    HttpRequest *request;
    Buf buf;
    bool ended;
    gint users;
} Echo;

static void
echo_release(Echo *e)
{
    if (--e->users > 0)
        return;
    buf_clear(&e->buf);
    http_request_unref(e->request);
    g_free(e);
}

static HttpPull
echo_pull(void *ctx, Buf *out)
{
    Echo *e = ctx;
    size_t n;
    const guint8 *p = buf_peek(&e->buf, &n);

    n = MIN(n, buf_room(out));
    if (n == 0)
        return e->ended ? HTTP_PULL_END : HTTP_PULL_WAIT;
    g_assert_true(buf_put(out, p, n));
    buf_skip(&e->buf, n);
    http_request_resume_body(e->request);
    return HTTP_PULL_DATA;
}

static bool
echo_data(void *ctx, const guint8 *bytes, size_t n)
{
    Echo *e = ctx;

    g_assert_true(buf_put(&e->buf, bytes, n));
    http_request_wake(e->request);
    return buf_len(&e->buf) < SERVER_PIECE;
}

static void
echo_end(void *ctx, const GError *error)
{
    Echo *e = ctx;

    e->ended = true;
    http_request_wake(e->request);
    echo_release(e);
}

static void
echo_closed(void *ctx)
{
    echo_release(ctx);
}

static void
respond_echo(HttpRequest *request)
{
    static const HttpSource source = {.pull = echo_pull, .closed = echo_closed};
    static const HttpSink sink = {.data = echo_data, .end = echo_end};
    bool connect = strcmp(http_request_method(request), "CONNECT") == 0;
    Echo *e = g_new0(Echo, 1);

    e->request = http_request_ref(request);
    e->users = 2;
    buf_init(&e->buf, 1024 * 1024);
    if (!connect)
        http_response_header(request, "Upgrade", "echo");
    http_respond_duplex(request, connect ? 200 : 101, &source, &sink, e);
}

static void
on_hijacked(int fd, GBytes *unread, void *data)
{
    if (fd < 0)
        return;
    g_assert_true(io_write_all(fd, "taken ", 6));
    g_assert_true(io_write_all(fd, g_bytes_get_data(unread, NULL), g_bytes_get_size(unread)));
    g_assert_true(io_write_all(fd, "\n", 1));
    close(fd);
}

/* ---- the handler ---- */

static void
on_echo_body(HttpRequest *request, const guint8 *body, size_t n, const GError *error, void *data)
{
    if (error == NULL)
        http_respond(request, 200, "application/octet-stream", body, n);
    else
        http_respond_text(request, 413, "text/plain", error->message);
}

static void
count_over(HttpRequest *request, const HttpOutcome *outcome, void *data)
{
    Fixture *f = data;

    f->over++;
    if (!outcome->complete)
        f->gone++;
}

static void
drop_request(HttpRequest *request, void *data)
{
    http_request_unref(request);
}

static void
handle_stream(HttpRequest *request, const char *path)
{
    bool chunked = g_str_has_prefix(path, "/stream/");
    Xes *x = g_new0(Xes, 1);

    x->left = g_ascii_strtoull(path + 8, NULL, 10);
    http_respond_stream(request, 200, "text/plain", chunked ? -1 : (gint64)x->left, &xes_source, x);
}

static void
handle(HttpRequest *request, void *data)
{
    const char *path = http_request_path(request);
    bool takes_over = http_request_wants_upgrade(request, "echo") ||
                      strcmp(http_request_method(request), "CONNECT") == 0;

    if (strcmp(path, "/hello") == 0)
        http_respond_text(request, 200, "text/plain", "hello\n");
    else if (strcmp(path, "/echo") == 0)
        http_request_read_all(request, ECHO_MAX, on_echo_body, NULL);
    else if (strcmp(path, "/count") == 0 || strcmp(path, "/slow-count") == 0)
        count_body(request, path[1] == 's');
    else if (g_str_has_prefix(path, "/stream/") || g_str_has_prefix(path, "/length/"))
        handle_stream(request, path);
    else if (strcmp(path, "/wait") == 0)
        http_respond_stream(request, 200, "text/plain", -1, &once_source, g_new0(bool, 1));
    else if (strcmp(path, "/fail") == 0)
        http_respond_stream(request, 200, "text/plain", -1, &broken_source, g_new0(bool, 1));
    else if (strcmp(path, "/never") == 0)
        http_request_on_gone(http_request_ref(request), drop_request, NULL);
    else if (takes_over && strcmp(path, "/hijack") == 0)
        http_respond_hijack(request, 101, on_hijacked, NULL);
    else if (takes_over)
        respond_echo(request);
    else if (strcmp(path, "/forgotten") != 0)
        http_respond_text(request, 404, "text/plain", "no such page\n");
}

static void
count_and_handle(HttpRequest *request, void *data)
{
    Fixture *f = data;

    f->handled++;
    http_request_on_over(request, count_over, f);
    f->handler(request, f->handler_data);
}

static int
listen_on_loopback(guint16 *ret_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&a, sizeof a), ==, 0);
    g_assert_cmpint(listen(fd, 1024), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)&a, &n), ==, 0);
    *ret_port = ntohs(a.sin_port);
    return fd;
}

void
fixture_init(Fixture *f, const HttpLimits *limits)
{
    fixture_init_handler(f, limits, handle, NULL);
}

void
fixture_init_handler(Fixture *f, const HttpLimits *limits, HttpHandler handler, void *data)
{
    g_autoptr(GError) error = NULL;

    *f = (Fixture){.handler = handler, .handler_data = data};
    f->loop = loop_new(NULL);
    HttpServerSpec spec = {
        .loop = f->loop, .limits = HTTP_LIMITS_INIT, .handler = count_and_handle, .data = f};
    if (limits != NULL)
        spec.limits = *limits;
    f->server = http_server_new(&spec);
    HttpListenerSpec listener = {.name = "test"};
    f->listener = http_server_listen(f->server, listen_on_loopback(&f->port), &listener, &error);
    g_assert_no_error(error);
}

void
fixture_clear(Fixture *f)
{
    http_server_free(f->server);
    loop_free(f->loop);
    g_assert_cmpuint(f->over, ==, f->handled); /* nothing is left half-done */
}

size_t
fixture_rss(void)
{
    g_autofree char *text = NULL;
    unsigned long size, pages;

    g_assert_true(g_file_get_contents("/proc/self/statm", &text, NULL, NULL));
    g_assert_cmpint(sscanf(text, "%lu %lu", &size, &pages), ==, 2);
    return pages * (size_t)getpagesize();
}

/* ---- clients ---- */

int
fixture_connect(Fixture *f)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(f->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(connect(fd, (struct sockaddr *)&a, sizeof a), ==, 0);
    g_assert_cmpint(fcntl(fd, F_SETFL, O_NONBLOCK), ==, 0);
    return fd;
}

void
fixture_turn(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

/* Waits for the loop or for `fd`, whichever has something first. */
static void
wait_some(int fd, short events, gint64 deadline)
{
    struct pollfd p = {.fd = fd, .events = events};

    g_assert_cmpint(clock_mono_us(), <, deadline);
    if (g_main_context_iteration(NULL, FALSE))
        return;
    (void)poll(&p, 1, 1); /* the loop has nothing ready: let the kernel move bytes */
}

static gint64
deadline(void)
{
    return clock_mono_us() + FIXTURE_WAIT_S * G_USEC_PER_SEC;
}

void
fixture_until(const guint *counter, guint at_least)
{
    gint64 end = deadline();

    while (*counter < at_least)
        wait_some(-1, 0, end);
}

void
client_send(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    gint64 end = deadline();

    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

        if (sent < 0 && errno != EAGAIN)
            return; /* the server closed: the test looks at what it said */
        if (sent > 0) {
            p += sent;
            n -= (size_t)sent;
        }
        wait_some(fd, POLLOUT, end);
    }
}

void
client_sends(int fd, const char *text)
{
    client_send(fd, text, strlen(text));
}

GString *
client_read(int fd, const char *until)
{
    GString *got = g_string_new(NULL);
    gint64 end = deadline();
    char piece[8192];

    while (until == NULL || strstr(got->str, until) == NULL) {
        ssize_t n = recv(fd, piece, sizeof piece, 0);

        if (n > 0)
            g_string_append_len(got, piece, n);
        else if (n == 0 || errno != EAGAIN)
            break;
        else
            wait_some(fd, POLLIN, end);
    }
    return got;
}

GByteArray *
client_read_n(int fd, size_t n)
{
    GByteArray *got = g_byte_array_new();
    gint64 end = deadline();
    guint8 piece[8192];

    while (got->len < n) {
        ssize_t r = recv(fd, piece, MIN(sizeof piece, n - got->len), 0);

        if (r > 0)
            g_byte_array_append(got, piece, (guint)r);
        else if (r == 0 || errno != EAGAIN)
            break;
        else
            wait_some(fd, POLLIN, end);
    }
    return got;
}

bool
client_sees_close(int fd)
{
    g_string_free(client_read(fd, NULL), TRUE);
    return true;
}

char *
client_ask(Fixture *f, const char *request)
{
    int fd = fixture_connect(f);

    client_sends(fd, request);
    GString *answer = client_read(fd, NULL);
    close(fd);
    return g_string_free(answer, FALSE);
}

int
answer_status(const char *answer)
{
    return g_str_has_prefix(answer, "HTTP/1.1 ") ? (int)g_ascii_strtoll(answer + 9, NULL, 10) : 0;
}

const char *
answer_body(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");

    return end != NULL ? end + 4 : "";
}
