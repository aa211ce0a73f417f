/* SPDX-License-Identifier: Apache-2.0 */
#include "api/file-send.h"

#include <errno.h>

#include "api/state.h"

static void
send_free(FileSend *s)
{
    if (s->read != NULL)
        box_read_cancel(s->read);
    file_call_free(s->file);
    g_free(s);
}

/* Before the answer; after it the source is closed. */
static void
on_gone(HttpRequest *request, void *data)
{
    send_free(data);
}

FileSend *
file_send_new(FileCall *file)
{
    FileSend *s = g_new0(FileSend, 1);

    s->file = file;
    http_request_on_gone(file->call->request, on_gone, s);
    return s;
}

void
file_send_refuse(FileSend *send, const GError *error)
{
    g_assert(!send->answered);
    http_request_on_gone(send->file->call->request, NULL, NULL);
    if (error != NULL)
        call_respond_error(send->file->call, error);
    send_free(send);
}

/* Nothing was fetched. */
static HttpPull
nothing(const FileSend *s)
{
    if (s->left > 0 && s->read != NULL)
        return HTTP_PULL_WAIT;
    /* A file that became shorter meanwhile cannot give what was promised. */
    return s->failed || (s->sized && s->left > 0) ? HTTP_PULL_FAIL : HTTP_PULL_END;
}

static HttpPull
pull(void *ctx, Buf *out)
{
    FileSend *s = ctx;
    size_t n = MIN(buf_room(out), s->left);

    if (!caller_is_still_known(s->file->call))
        return HTTP_PULL_FAIL;
    gssize got = s->read != NULL && n > 0 ? box_read_bytes(s->read, buf_reserve(out, n), n) : -1;
    if (got < 0)
        return nothing(s);
    buf_grow(out, (size_t)got);
    s->left -= (guint64)got;
    return HTTP_PULL_DATA;
}

static HttpPull
move(void *ctx, int fd, size_t n, size_t *ret_moved)
{
    FileSend *s = ctx;

    if (!caller_is_still_known(s->file->call))
        return HTTP_PULL_FAIL;
    gssize got = s->read != NULL ? box_read_splice(s->read, fd, n) : -1;
    if (got < 0 && s->read != NULL && errno != EAGAIN)
        return errno == ENOBUFS ? HTTP_PULL_FULL : HTTP_PULL_FAIL;
    if (got < 0)
        return nothing(s);
    *ret_moved = (size_t)got;
    s->left -= (guint64)got;
    return HTTP_PULL_DATA;
}

static void
on_closed(void *ctx)
{
    send_free(ctx);
}

void
file_send_answer(FileSend *send, int status, const char *type, gint64 length)
{
    static const HttpSource source = {.pull = pull, .closed = on_closed, .splice = move};

    http_request_on_gone(send->file->call->request, NULL, NULL);
    send->answered = true;
    send->sized = length >= 0;
    send->left = length >= 0 ? (guint64)length : G_MAXUINT64;
    http_respond_stream(send->file->call->request, status, type, length, &source, send);
}

void
file_send_ready(FileSend *send)
{
    http_request_wake(send->file->call->request);
}

void
file_send_end(FileSend *send, const GError *error)
{
    send->read = NULL;
    send->failed = send->failed || error != NULL;
    http_request_wake(send->file->call->request);
}
