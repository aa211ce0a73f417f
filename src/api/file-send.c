/* SPDX-License-Identifier: Apache-2.0 */
#include "api/file-send.h"

#include "api/state.h"

enum {
    SEND_HIGH = 256 * 1024, /* the box is stopped above this */
    SEND_LOW = 128 * 1024,
    SEND_MAX = SEND_HIGH + FRAME_DATA_MAX,
};

static void
send_free(FileSend *s)
{
    if (s->read != NULL)
        box_read_cancel(s->read);
    buf_clear(&s->waiting);
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
    buf_init(&s->waiting, SEND_MAX);
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

static HttpPull
pull(void *ctx, Buf *out)
{
    FileSend *s = ctx;
    size_t n;
    const guint8 *bytes = buf_peek(&s->waiting, &n);

    if (!caller_is_still_known(s->file->call))
        return HTTP_PULL_FAIL;
    n = MIN(MIN(n, buf_room(out)), s->left);
    if (n > 0) {
        bool ok = buf_put(out, bytes, n);

        g_assert(ok); /* looked at its room */
        buf_skip(&s->waiting, n);
        s->left -= n;
        if (s->stopped && !s->held && s->read != NULL && buf_len(&s->waiting) < SEND_LOW) {
            s->stopped = false;
            box_read_resume(s->read);
        }
        return HTTP_PULL_DATA;
    }
    if (s->left > 0 && s->read != NULL)
        return HTTP_PULL_WAIT;
    /* A file that became shorter meanwhile cannot give what was promised. */
    return s->failed || (s->sized && s->left > 0) ? HTTP_PULL_FAIL : HTTP_PULL_END;
}

static void
on_closed(void *ctx)
{
    FileSend *s = ctx;

    s->closed = true;
    if (!s->held)
        send_free(s);
}

void
file_send_answer(FileSend *send, int status, const char *type, gint64 length)
{
    static const HttpSource source = {.pull = pull, .closed = on_closed};

    http_request_on_gone(send->file->call->request, NULL, NULL);
    send->answered = true;
    send->sized = length >= 0;
    send->left = length >= 0 ? (guint64)length : G_MAXUINT64;
    http_respond_stream(send->file->call->request, status, type, length, &source, send);
}

bool
file_send_data(FileSend *send, const guint8 *bytes, size_t n)
{
    if (!buf_put(&send->waiting, bytes, n)) {
        send->failed = true; /* more than was asked for: nothing can be right after it */
        n = 0;
    }
    send->held = true;
    http_request_wake(send->file->call->request);
    send->held = false;
    if (send->closed) {
        send_free(send);
        return true;
    }
    send->stopped = buf_len(&send->waiting) >= SEND_HIGH;
    return !send->stopped;
}

void
file_send_end(FileSend *send, const GError *error)
{
    send->read = NULL;
    send->failed = send->failed || error != NULL;
    http_request_wake(send->file->call->request);
}
