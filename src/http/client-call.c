/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "http/client-private.h"
#include "http/limits.h"

HttpCall *
call_ref(HttpCall *call)
{
    call->refs++;
    return call;
}

void
call_unref(HttpCall *call)
{
    if (--call->refs > 0)
        return;
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    if (call->values != NULL)
        g_string_chunk_free(call->values);
    if (call->body.fd >= 0)
        close(call->body.fd);
    g_free(call->body.bytes);
    g_free(call->peer);
    buf_clear(&call->in);
    g_clear_error(&call->error);
    g_free(call);
}

void
call_leave_curl(HttpCall *call)
{
    if (call->stage != CALL_OVER)
        (void)curl_multi_remove_handle(call->client->multi, call->easy);
    call->stage = CALL_OVER;
}

void
call_detach(HttpCall *call)
{
    HttpClient *client = call->client;

    if (client == NULL)
        return;
    call_leave_curl(call);
    if (call->is_ready)
        g_queue_unlink(&client->ready, &call->ready_link);
    g_queue_unlink(&client->calls, &call->link);
    call->client = NULL;
    call_unref(call);
}

static void
enter_stage(HttpCall *call, CallStage stage)
{
    call->stage = stage;
    call->mark_us = clock_mono_us();
    client_watch_deadline(call->client, call);
}

/* Also on a connection that is used again. */
static int
on_connected(void *data, char *ip, char *local_ip, int port, int local_port)
{
    enter_stage(data, CALL_HEAD);
    return CURL_PREREQFUNC_OK;
}

static curl_socket_t
on_open_socket(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
    HttpCall *call = data;

    call->denied = address->family == AF_UNIX ? NULL : client_denies(call->client, &address->addr);
    if (call->denied != NULL)
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static bool
read_body(CallBody *body, guint8 *to, size_t n, GError **error)
{
    if (body->bytes != NULL) {
        memcpy(to, body->bytes + body->sent, n);
        return true;
    }
    for (size_t got = 0; got < n;) {
        ssize_t r = pread(body->fd, to + got, n - got, (off_t)(body->sent + got));

        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return err_errno(error, "read the file to send");
        if (r == 0)
            return err_set(error, ERR_CONFLICT, "the file to send became shorter while it was read");
        got += (size_t)r;
    }
    return true;
}

static size_t
on_read(char *to, size_t size, size_t count, void *data)
{
    HttpCall *call = data;
    size_t n = MIN(size * count, call->body.len - call->body.sent);

    if (!read_body(&call->body, (guint8 *)to, n, call->error == NULL ? &call->error : NULL))
        return CURL_READFUNC_ABORT;
    call->body.sent += n;
    if (call->stage == CALL_HEAD)
        call->mark_us = clock_mono_us();
    return n;
}

/* curl sends again what a dead connection of the pool had swallowed. */
static int
on_seek(void *data, curl_off_t offset, int origin)
{
    HttpCall *call = data;

    if (origin != SEEK_SET || offset < 0 || (guint64)offset > call->body.len)
        return CURL_SEEKFUNC_FAIL;
    call->body.sent = (guint64)offset;
    return CURL_SEEKFUNC_OK;
}

bool
call_refuse(HttpCall *call, const char *why)
{
    if (call->error == NULL)
        err_set(&call->error, ERR_INVALID, "%s: %s", call->peer, why);
    return false;
}

/* curl would undo any transfer coding it knows, take the last of several lengths, and read
 * until the end for one it cannot count to. */
static bool
framing_is_plain(CURL *easy)
{
    struct curl_header *header;

    if (curl_easy_header(easy, "transfer-encoding", 0, CURLH_HEADER, -1, &header) == CURLHE_OK &&
        (header->amount > 1 || g_ascii_strcasecmp(header->value, "chunked") != 0))
        return false;
    if (curl_easy_header(easy, "content-length", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return true;
    return header->amount == 1 && g_ascii_string_to_unsigned(header->value, 10, 0, G_MAXINT64, NULL, NULL);
}

/* "HTTP/1.1 200 OK", "HTTP/2 200 "; 0: neither.  curl also lets other things pass, and calls
 * them whole. */
static int
parse_status_line(const char *line, size_t n)
{
    static const char *const versions[] = {"HTTP/1.0 ", "HTTP/1.1 ", "HTTP/2 "};

    for (size_t i = 0; i < G_N_ELEMENTS(versions); i++) {
        size_t at = strlen(versions[i]);

        if (n < at + 4 || memcmp(line, versions[i], at) != 0 || line[at] == '0' ||
            strchr(" \r\n", line[at + 3]) == NULL)
            continue;
        if (g_ascii_isdigit(line[at]) && g_ascii_isdigit(line[at + 1]) && g_ascii_isdigit(line[at + 2]))
            return (line[at] - '0') * 100 + (line[at + 1] - '0') * 10 + (line[at + 2] - '0');
    }
    return 0;
}

static bool
end_head(HttpCall *call)
{
    int status = call->head.reading;

    call->head.reading = 0;
    if (status < 200)
        return true;
    if (!framing_is_plain(call->easy))
        return call_refuse(call, "the length of the answer makes no sense");
    call->head.status = status;
    enter_stage(call, CALL_BODY);
    client_mark_ready(call->client, call);
    return true;
}

/* The bounds are over all of a call's heads: interim answers do not start them again. */
static bool
take_header_line(HttpCall *call, const char *line, size_t n)
{
    CallHead *head = &call->head;

    if (call->stage == CALL_BODY) {
        head->trailer_bytes += n;
        return head->trailer_bytes <= HTTP_TRAILER_MAX ||
               call_refuse(call, "the trailers of the answer are too long");
    }
    head->bytes += n;
    if (head->bytes > HTTP_HEAD_MAX)
        return call_refuse(call, "the head of the answer is too long");
    if (head->reading == 0) {
        head->reading = parse_status_line(line, n);
        return (head->reading != 0 && head->reading != 101) ||
               call_refuse(call, "the answer is not valid HTTP");
    }
    if (line[0] == '\r' || line[0] == '\n')
        return end_head(call);
    return ++head->count <= HTTP_HEADER_COUNT_MAX || call_refuse(call, "the answer has too many headers");
}

static size_t
on_header(char *line, size_t size, size_t count, void *data)
{
    size_t n = size * count;

    return n > 0 && take_header_line(data, line, n) ? n : 0;
}

static size_t
on_body(char *bytes, size_t size, size_t count, void *data)
{
    HttpCall *call = data;
    size_t n = size * count;

    call->mark_us = clock_mono_us();
    if (call->is_paused || !buf_put(&call->in, bytes, n)) {
        call->is_held = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    client_mark_ready(call->client, call);
    return n;
}

static void
set_callbacks(HttpCall *call)
{
    CURL *easy = call->easy;

    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, call);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, call);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(easy, CURLOPT_READDATA, call);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, call);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
}

HttpCall *
call_new(const HttpCallSpec *spec, const HttpCallHandler *handler, void *ctx, GError **error)
{
    g_autoptr(HttpCall) call = g_new0(HttpCall, 1);

    g_assert(handler->data != NULL && handler->done != NULL);
    call->refs = 1;
    call->link.data = call->ready_link.data = call;
    call->handler = *handler;
    call->ctx = ctx;
    call->body.fd = -1;
    call->start_us = call->mark_us = clock_mono_us();
    buf_init(&call->in, HTTP_CLIENT_IN_MAX);
    call->easy = curl_easy_init();
    if (call->easy == NULL)
        g_error("no memory for an HTTP call");
    if (!call_setup(call, spec, error))
        return NULL;
    set_callbacks(call);
    return g_steal_pointer(&call);
}
