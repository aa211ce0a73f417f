/* SPDX-License-Identifier: Apache-2.0 */
#include "http-script.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { BLOCK = 64 * 1024, STUCK_MS = 50, SIP_SIZE = 64 * 1024, SIP_BREAK_MS = 20 };

struct Script {
    const ScriptStep *const *scripts;
    guint n_scripts;
    const ScriptStep *only;
    int listener;
    guint16 port;
    GThread *acceptor;

    GMutex lock; /* over all below */
    GArray *conns;
    GPtrArray *threads;
    char *head;
    guint64 body_len, filled;
    bool body_is_pattern, is_stuck;
};

typedef struct Conn {
    Script *script;
    int fd;
    guint number;
    GString *unread;
} Conn;

void
script_pattern_fill(guint8 *to, size_t n, guint64 at)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (guint8)((at + i) % SCRIPT_PATTERN);
}

bool
script_pattern_matches(const guint8 *bytes, size_t n, guint64 at)
{
    static guint8 want[BLOCK + SCRIPT_PATTERN];
    static gsize once;

    if (g_once_init_enter(&once)) {
        script_pattern_fill(want, sizeof want, 0);
        g_once_init_leave(&once, 1);
    }
    for (size_t done = 0; done < n;) {
        size_t part = MIN(n - done, (size_t)BLOCK);

        if (memcmp(bytes + done, want + (at + done) % SCRIPT_PATTERN, part) != 0)
            return false;
        done += part;
    }
    return true;
}

static bool
receive(Conn *conn)
{
    char block[4096];
    ssize_t n = recv(conn->fd, block, sizeof block, 0);

    if (n <= 0)
        return false;
    g_string_append_len(conn->unread, block, n);
    return true;
}

static bool
read_head(Conn *conn, guint64 *ret_length)
{
    char *end;

    while ((end = strstr(conn->unread->str, "\r\n\r\n")) == NULL) {
        if (!receive(conn))
            return false;
    }
    size_t n = (size_t)(end - conn->unread->str) + 4;
    const char *length = strcasestr(conn->unread->str, "\r\ncontent-length:");
    *ret_length = length != NULL && length < end ? g_ascii_strtoull(strchr(length, ':') + 1, NULL, 10) : 0;

    g_mutex_lock(&conn->script->lock);
    g_free(conn->script->head);
    conn->script->head = g_strndup(conn->unread->str, n);
    conn->script->body_len = 0;
    conn->script->body_is_pattern = true;
    g_mutex_unlock(&conn->script->lock);
    g_string_erase(conn->unread, 0, (gssize)n);
    return true;
}

static void
note_body(Script *script, const guint8 *bytes, size_t n)
{
    g_mutex_lock(&script->lock);
    script->body_is_pattern &= script_pattern_matches(bytes, n, script->body_len);
    script->body_len += n;
    g_mutex_unlock(&script->lock);
}

static bool
read_body(Conn *conn, guint64 length)
{
    g_autofree guint8 *block = g_malloc(BLOCK);
    size_t early = MIN(length, conn->unread->len);

    note_body(conn->script, (const guint8 *)conn->unread->str, early);
    g_string_erase(conn->unread, 0, (gssize)early);
    for (guint64 left = length - early; left > 0;) {
        ssize_t n = recv(conn->fd, block, MIN(left, BLOCK), 0);

        if (n <= 0)
            return false;
        note_body(conn->script, block, (size_t)n);
        left -= (guint64)n;
    }
    return true;
}

static bool
sip(Conn *conn, guint64 length)
{
    while (length > 0) {
        guint64 part = MIN(length, SIP_SIZE);

        if (!read_body(conn, part))
            return false;
        length -= part;
        (void)poll(NULL, 0, SIP_BREAK_MS);
    }
    return true;
}

static bool
send_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool
wait_for_room(Conn *conn)
{
    struct pollfd pfd = {.fd = conn->fd, .events = POLLOUT};

    for (;;) {
        int n = poll(&pfd, 1, STUCK_MS);

        g_mutex_lock(&conn->script->lock);
        conn->script->is_stuck = n == 0;
        g_mutex_unlock(&conn->script->lock);
        g_main_context_wakeup(NULL);
        if (n != 0)
            return n > 0 && (pfd.revents & (POLLERR | POLLHUP)) == 0;
    }
}

static bool
send_pattern(Conn *conn, guint64 n)
{
    g_autofree guint8 *block = g_malloc(BLOCK + SCRIPT_PATTERN);

    script_pattern_fill(block, BLOCK + SCRIPT_PATTERN, 0);
    for (guint64 at = 0; at < n;) {
        ssize_t sent = send(conn->fd, block + at % SCRIPT_PATTERN, MIN(n - at, BLOCK),
                            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno != EAGAIN)
            return false;
        if (sent < 0 && !wait_for_room(conn))
            return false;
        if (sent < 0)
            continue;
        at += (guint64)sent;
        g_mutex_lock(&conn->script->lock);
        conn->script->filled = at;
        g_mutex_unlock(&conn->script->lock);
    }
    return true;
}

/* False: the connection is over. */
static bool
play(Conn *conn, const ScriptStep *step)
{
    struct linger now = {.l_onoff = 1};
    struct pollfd closed = {.fd = conn->fd, .events = POLLRDHUP};
    guint64 length;

    switch (step->op) {
    case SCRIPT_CLOSE:
        return false;
    case SCRIPT_RESET:
        (void)setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        return false;
    case SCRIPT_REQUEST:
        return read_head(conn, &length) && read_body(conn, length);
    case SCRIPT_HEAD:
        return read_head(conn, &length);
    case SCRIPT_SEND:
        return send_all(conn->fd, step->bytes, step->n > 0 ? step->n : strlen(step->bytes));
    case SCRIPT_FILL:
        return send_pattern(conn, step->n);
    case SCRIPT_SIP:
        return sip(conn, step->n);
    case SCRIPT_HOLD:
        while (receive(conn))
            g_string_truncate(conn->unread, 0);
        return false;
    case SCRIPT_IGNORE:
        (void)poll(&closed, 1, -1);
        return false;
    case SCRIPT_AGAIN:
        break;
    }
    return true;
}

static gpointer
run_conn(gpointer data)
{
    Conn *conn = data;
    Script *script = conn->script;
    const ScriptStep *first = script->scripts[MIN(conn->number, script->n_scripts - 1)];

    for (const ScriptStep *step = first; play(conn, step);)
        step = step->op == SCRIPT_AGAIN ? first : step + 1;
    g_mutex_lock(&script->lock);
    g_array_index(script->conns, int, conn->number) = -1;
    g_mutex_unlock(&script->lock);
    close(conn->fd);
    g_string_free(conn->unread, TRUE);
    g_free(conn);
    return NULL;
}

static gpointer
run_acceptor(gpointer data)
{
    Script *script = data;
    int fd;

    while ((fd = accept4(script->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        Conn *conn = g_new0(Conn, 1);

        g_mutex_lock(&script->lock);
        *conn = (Conn){script, fd, script->conns->len, g_string_new(NULL)};
        g_array_append_val(script->conns, fd);
        g_ptr_array_add(script->threads, g_thread_new("conn", run_conn, conn));
        g_mutex_unlock(&script->lock);
    }
    return NULL;
}

static int
listen_on(const char *unix_path, guint16 *ret_port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    socklen_t len = sizeof in;
    int fd = socket(unix_path != NULL ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_assert_cmpint(fd, >=, 0);
    if (unix_path != NULL) {
        g_assert_cmpuint(g_strlcpy(un.sun_path, unix_path, sizeof un.sun_path), <, sizeof un.sun_path);
        g_assert_no_errno(bind(fd, (struct sockaddr *)&un, sizeof un));
    } else {
        g_assert_no_errno(bind(fd, (struct sockaddr *)&in, sizeof in));
        g_assert_no_errno(getsockname(fd, (struct sockaddr *)&in, &len));
        *ret_port = ntohs(in.sin_port);
    }
    g_assert_no_errno(listen(fd, 128));
    return fd;
}

static Script *
script_new(void)
{
    Script *script = g_new0(Script, 1);

    script->conns = g_array_new(FALSE, FALSE, sizeof(int));
    script->threads = g_ptr_array_new();
    g_mutex_init(&script->lock);
    return script;
}

static void
start(Script *script, const char *unix_path)
{
    script->listener = listen_on(unix_path, &script->port);
    script->acceptor = g_thread_new("acceptor", run_acceptor, script);
}

Script *
script_serve(const ScriptStep *const *scripts, guint n_scripts, const char *unix_path)
{
    Script *script = script_new();

    script->scripts = scripts;
    script->n_scripts = n_scripts;
    start(script, unix_path);
    return script;
}

Script *
script_serve_one(const ScriptStep *steps)
{
    Script *script = script_new();

    script->only = steps;
    script->scripts = &script->only;
    script->n_scripts = 1;
    start(script, NULL);
    return script;
}

void
script_free(Script *script)
{
    /* Wakes the acceptor, and then whoever still reads or writes. */
    (void)shutdown(script->listener, SHUT_RDWR);
    g_thread_join(script->acceptor);
    g_mutex_lock(&script->lock);
    for (guint i = 0; i < script->conns->len; i++)
        (void)shutdown(g_array_index(script->conns, int, i), SHUT_RDWR);
    g_mutex_unlock(&script->lock);
    for (guint i = 0; i < script->threads->len; i++)
        g_thread_join(script->threads->pdata[i]);
    close(script->listener);
    g_ptr_array_unref(script->threads);
    g_array_unref(script->conns);
    g_mutex_clear(&script->lock);
    g_free(script->head);
    g_free(script);
}

char *
script_url(const Script *script, const char *target)
{
    return g_strdup_printf("http://127.0.0.1:%u%s", script->port, target);
}

guint
script_accepts(Script *script)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&script->lock);

    return script->conns->len;
}

char *
script_dup_head(Script *script)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&script->lock);

    return g_strdup(script->head);
}

guint64
script_body_len(Script *script)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&script->lock);

    return script->body_len;
}

bool
script_body_is_pattern(Script *script)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&script->lock);

    return script->body_is_pattern;
}

guint64
script_filled(Script *script)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&script->lock);

    return script->filled;
}

bool
script_is_stuck(Script *script)
{
    G_GNUC_UNUSED g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&script->lock);

    return script->is_stuck;
}
