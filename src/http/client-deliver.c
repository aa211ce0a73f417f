/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "http/client-private.h"
#include "http/limits.h"

static void
set_connect_error(HttpCall *call)
{
    long e = 0;

    if (curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &e) != CURLE_OK || e == 0)
        e = ECONNREFUSED;
    err_set(&call->error, ERR_UNAVAILABLE, "%s: cannot connect: %s", call->peer, g_strerror((int)e));
}

static void
set_curl_error(HttpCall *call, CURLcode code)
{
    static const struct {
        CURLcode code;
        ErrKind kind;
        const char *text;
    } rows[] = {
        {CURLE_COULDNT_RESOLVE_HOST, ERR_UNAVAILABLE, "the name cannot be resolved"},
        {CURLE_GOT_NOTHING, ERR_INVALID, "the connection was closed before an answer came"},
        {CURLE_PARTIAL_FILE, ERR_INVALID, "the answer was cut in its middle"},
        {CURLE_RECV_ERROR, ERR_INVALID, "the answer broke off or made no sense"},
        {CURLE_SEND_ERROR, ERR_INVALID, "the connection broke while the request was sent"},
        {CURLE_SEND_FAIL_REWIND, ERR_INVALID, "the connection broke while the request was sent"},
        {CURLE_UNSUPPORTED_PROTOCOL, ERR_INVALID, "the answer is not HTTP"},
        {CURLE_WEIRD_SERVER_REPLY, ERR_INVALID, "the answer is not valid HTTP"},
        {CURLE_BAD_CONTENT_ENCODING, ERR_INVALID, "the answer has an encoding that is not known"},
#if LIBCURL_VERSION_NUM >= 0x080600
        {CURLE_TOO_LARGE, ERR_INVALID, "the head of the answer is too long"},
#endif
        {CURLE_HTTP2, ERR_INVALID, "the answer is not valid HTTP/2"},
        {CURLE_HTTP2_STREAM, ERR_INVALID, "the answer was cut in its middle"},
        /* What curl says of a header line beyond its own bound. */
        {CURLE_OUT_OF_MEMORY, ERR_INVALID, "a header of the answer is too long"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].code == code) {
            err_set(&call->error, rows[i].kind, "%s: %s", call->peer, rows[i].text);
            return;
        }
    }
    if (code == CURLE_COULDNT_CONNECT && call->denied != NULL)
        err_set(&call->error, ERR_DENIED, "%s: its address may not be called: %s", call->peer, call->denied);
    else if (code == CURLE_OPERATION_TIMEDOUT)
        err_set(&call->error, ERR_TIMEOUT, "%s: no connection within %u ms", call->peer,
                call->limits.connect_ms);
    else if (code == CURLE_COULDNT_CONNECT)
        set_connect_error(call);
    else if (call->stage == CALL_CONNECT)
        err_set(&call->error, ERR_UNAVAILABLE, "%s: no connection: %s", call->peer, curl_easy_strerror(code));
    else
        err_set(&call->error, ERR_INTERNAL, "%s: %s", call->peer, curl_easy_strerror(code));
}

static void
finish(HttpCall *call)
{
    call_leave_curl(call);
    client_mark_ready(call->client, call);
}

void
call_complete(HttpCall *call, CURLcode code)
{
    if (call->error == NULL && code != CURLE_OK)
        set_curl_error(call, code);
    /* curl takes a head that ends without its empty line for a whole one. */
    else if (call->error == NULL && call->head.status == 0)
        call_refuse(call, "the head of the answer was cut");
    finish(call);
}

static gint64
after_ms(gint64 from_us, guint ms)
{
    return ms > 0 ? from_us + (gint64)ms * 1000 : G_MAXINT64;
}

static gint64
stage_due_us(const HttpCall *call)
{
    switch (call->stage) {
    case CALL_CONNECT:
        return after_ms(call->start_us, call->limits.connect_ms);
    case CALL_HEAD:
        return after_ms(call->mark_us, call->limits.first_byte_ms);
    case CALL_BODY:
        /* Silence that the caller asked for is not the server's. */
        return call->is_paused ? G_MAXINT64 : after_ms(call->mark_us, call->limits.stall_ms);
    case CALL_OVER:
        break;
    }
    return G_MAXINT64;
}

gint64
call_due_us(const HttpCall *call)
{
    if (call->stage == CALL_OVER)
        return -1;
    gint64 due = MIN(stage_due_us(call), after_ms(call->start_us, call->limits.total_ms));
    return due == G_MAXINT64 ? -1 : due;
}

void
call_expire(HttpCall *call)
{
    static const char *const doing[] = {
        [CALL_CONNECT] = "connecting",
        [CALL_HEAD] = "waiting for the answer",
        [CALL_BODY] = "reading the answer",
    };
    const CallLimits *limits = &call->limits;

    g_clear_error(&call->error);
    if (stage_due_us(call) > after_ms(call->start_us, limits->total_ms))
        err_set(&call->error, ERR_TIMEOUT, "%s: not finished within %u ms (%s)", call->peer, limits->total_ms,
                doing[call->stage]);
    else if (call->stage == CALL_CONNECT)
        set_curl_error(call, CURLE_OPERATION_TIMEDOUT);
    else if (call->stage == CALL_HEAD)
        err_set(&call->error, ERR_TIMEOUT, "%s: connected, but no answer for %u ms", call->peer,
                limits->first_byte_ms);
    else
        err_set(&call->error, ERR_TIMEOUT, "%s: the answer stalled for %u ms", call->peer, limits->stall_ms);
    call->is_expired = true;
    finish(call);
}

static void
deliver_data(HttpCall *call)
{
    /* Taken out first: a callback that runs the loop lets more arrive. */
    g_auto(Buf) in = call->in;
    size_t n;
    const guint8 *bytes = buf_peek(&in, &n);

    buf_init(&call->in, HTTP_CLIENT_IN_MAX);
    call->was_resumed = false;
    /* A resume from inside the callback answers a stop that is only being returned. */
    if (!call->handler.data(call, bytes, n, call->ctx) && !call->was_resumed)
        call->is_paused = true;
}

/* False: nothing more to hand on for the moment. */
static bool
deliver_one(HttpCall *call)
{
    if (call->client == NULL)
        return false;
    if (call->head.status != 0 && !call->head.told && !call->is_expired) {
        call->head.told = true;
        if (call->handler.head != NULL)
            call->handler.head(call, call->head.status, call->ctx);
        return true;
    }
    if (!call->is_expired) {
        if (call->is_paused)
            return false;
        if (buf_len(&call->in) > 0) {
            deliver_data(call);
            return true;
        }
    }
    if (call->stage == CALL_OVER) {
        call->handler.done(call, call->head.status, call->error, call->ctx);
        call_detach(call);
    }
    return false;
}

/* Tells curl to stop or go on reading.  Going on, it calls on_body() at once with what it
 * kept. */
static void
sync_pause(HttpCall *call)
{
    if (call->client == NULL || call->stage == CALL_OVER || call->is_paused == call->is_held)
        return;
    call->is_held = call->is_paused;
    CURLcode code = curl_easy_pause(call->easy, call->is_held ? CURLPAUSE_RECV : CURLPAUSE_CONT);
    if (code != CURLE_OK)
        call_complete(call, code);
}

void
call_deliver(HttpCall *call)
{
    /* The frame that is handing on sees what has come when its callback returns. */
    if (call->is_delivering)
        return;
    call_ref(call);
    call->is_delivering = true;
    if (call->error != NULL && call->stage != CALL_OVER)
        finish(call);
    while (deliver_one(call))
        continue;
    call->is_delivering = false;
    sync_pause(call);
    call_unref(call);
}
