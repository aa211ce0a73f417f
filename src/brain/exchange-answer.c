/* SPDX-License-Identifier: Apache-2.0 */
/* From the provider to the client.  A stream goes on event by event, each whole; one that is cut,
 * malformed or too long ends with an event that says so, never silently.  Anything else is held
 * until it is complete. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "brain/gate-private.h"
#include "brain/usage-private.h"
#include "http/params.h"

enum {
    EVENT_MAX = USAGE_LINE_MAX + 64 * 1024, /* with its comments, and what came behind it */
    OUT_MAX = GATE_OUT_HIGH + 2 * EVENT_MAX,
    OUT_LOW = GATE_OUT_HIGH / 2,
};

void
answer_clear(Answer *answer)
{
    event_cut_clear(&answer->events);
    buf_clear(&answer->whole);
    usage_reader_free(g_steal_pointer(&answer->usage));
    g_free(answer->retry_after);
    g_free(answer->request_id);
}

/* ---- the stream's way to the client ---- */

static HttpPull
pull_stream(void *ctx, Buf *out)
{
    Exchange *x = ctx;
    size_t n;
    const guint8 *bytes = buf_peek(&x->answer.whole, &n);

    n = MIN(n, buf_room(out));
    if (n == 0)
        return x->answer.ended ? HTTP_PULL_END : HTTP_PULL_WAIT;
    bool ok = buf_put(out, bytes, n);
    g_assert(ok); /* looked at its room */
    buf_skip(&x->answer.whole, n);
    if (x->is_paused && buf_len(&x->answer.whole) < OUT_LOW) {
        x->is_paused = false;
        if (x->call != NULL)
            http_call_resume(x->call);
        if (x->play != NULL)
            tape_resume(x->play);
    }
    return HTTP_PULL_DATA;
}

static void on_stream_closed(void *ctx);

static const HttpSource stream_source = {.pull = pull_stream, .closed = on_stream_closed};

/* Ends a stream under way; `why` NULL: it is complete. */
static void
end_stream(Exchange *x, Fault fault, const char *why)
{
    Answer *a = &x->answer;

    exchange_ref(x);
    exchange_stop_call(x);
    a->ended = true;
    if (why != NULL) {
        g_autofree char *event = fault_event(fault, x->route->shape, why);
        bool ok = buf_puts(&a->whole, event);

        g_assert(ok); /* no event is taken beyond half of OUT_MAX */
        x->error = fault_code(fault);
    } else {
        exchange_record_end(x);
    }
    exchange_account(x);
    if (x->lingers)
        exchange_end(x);
    else
        http_request_wake(x->request);
    exchange_unref(x);
}

/* ---- when the client has gone ---- */

static void
on_lingered(LoopTimer *timer)
{
    Exchange *x = (Exchange *)((char *)timer - G_STRUCT_OFFSET(Exchange, linger));

    end_stream(x, FAULT_UPSTREAM, NULL);
}

/* The chunk with the usage comes after the last word, so who goes in between would pay for less
 * than was used. */
static bool
waits_for_usage(Exchange *x)
{
    Usage used;

    if (x->gate == NULL || x->answer.ended || x->call == NULL || x->route->kind != ROUTE_CHAT ||
        !usage_reader_is_complete(x->answer.usage))
        return false;
    usage_reader_result(x->answer.usage, x->ask->bytes, &used);
    return used.estimated;
}

static void
linger(Exchange *x)
{
    x->lingers = true;
    http_request_on_gone(x->request, NULL, NULL);
    x->linger.expired = on_lingered;
    loop_timer_set(x->gate->loop, &x->linger, x->gate->times.linger_ms);
    if (x->is_paused)
        http_call_resume(x->call);
    x->is_paused = false;
}

static void
on_stream_closed(void *ctx)
{
    Exchange *x = ctx;

    if (waits_for_usage(x))
        linger(x);
    else
        exchange_end(x);
    exchange_unref(x);
}

/* ---- its events ---- */

/* False: the stream has ended. */
static bool
pass_event(Exchange *x, guint8 *event, size_t n)
{
    g_autoptr(GError) error = NULL;
    Answer *a = &x->answer;

    if (!usage_reader_feed(a->usage, event, n, &error)) {
        g_autofree char *why = g_strdup_printf("the provider's stream is malformed: %s", error->message);

        end_stream(x, FAULT_UPSTREAM, why);
        return false;
    }
    provider_scrub(x->provider, (char *)event, n);
    exchange_record(x, event, n);
    if (x->lingers)
        return true;
    /* A LF in front is the end of the event before. */
    if (x->ask->adds_usage && usage_reader_last_is_extra(a->usage))
        n = *event == '\n' ? 1 : 0;
    bool ok = buf_put(&a->whole, event, n);
    g_assert(ok); /* paused above GATE_OUT_HIGH, and what is held of events is bounded */
    return true;
}

static bool
take_stream(Exchange *x, const guint8 *bytes, size_t n)
{
    Answer *a = &x->answer;
    size_t event_len;
    guint8 *event;

    if (a->bytes > GATE_STREAM_MAX || !event_cut_put(&a->events, bytes, n)) {
        end_stream(x, FAULT_UPSTREAM, "the provider's stream is longer than the gateway takes");
        return true;
    }
    while ((event = event_cut_next(&a->events, &event_len)) != NULL) {
        if (!pass_event(x, event, event_len))
            return true;
    }
    x->is_paused = buf_len(&a->whole) >= GATE_OUT_HIGH;
    bool is_paused = x->is_paused;
    /* The client may take it all at once, and resume: that counts in the client of ours too. */
    http_request_wake(x->request);
    return !is_paused;
}

/* A server may leave out the last empty line.  What else is not whole is left out. */
static void
pass_rest(Exchange *x)
{
    Answer *a = &x->answer;
    size_t n;
    guint8 *rest = event_cut_rest(&a->events, &n);

    if (rest == NULL)
        return;
    g_autofree guint8 *last = g_malloc(n + 2);
    memcpy(last, rest, n);
    memcpy(last + n, "\n\n", 2);
    if (!usage_reader_feed(a->usage, last, n + 2, NULL) || !usage_reader_is_complete(a->usage))
        return;
    provider_scrub(x->provider, (char *)last, n);
    exchange_record(x, last, n + 2);
    if (x->lingers)
        return;
    bool ok = buf_put(&a->whole, last, n + 2);
    g_assert(ok); /* as in pass_event() */
}

static void
stream_done(Exchange *x, const GError *error)
{
    if (error == NULL)
        pass_rest(x);
    if (usage_reader_is_complete(x->answer.usage)) {
        end_stream(x, FAULT_UPSTREAM, NULL);
        return;
    }
    g_autofree char *why = g_strdup_printf("the provider's stream broke off before its end%s%s",
                                           error != NULL ? ": " : "", error != NULL ? error->message : "");
    end_stream(x, error != NULL && err_kind(error) == ERR_TIMEOUT ? FAULT_UPSTREAM_TIMEOUT : FAULT_UPSTREAM,
               why);
}

/* ---- whole answers ---- */

static void
pass_headers(Exchange *x)
{
    const Answer *a = &x->answer;

    if (a->retry_after != NULL)
        http_response_header(x->request, "Retry-After", a->retry_after);
    if (a->request_id != NULL)
        http_response_header(x->request,
                             x->route->dialect == DIALECT_ANTHROPIC ? "request-id" : "x-request-id",
                             a->request_id);
    http_response_header(x->request, "X-Coop-Request", http_request_id(x->request));
    if (x->brain != NULL)
        http_response_header(x->request, "X-Coop-Brain", x->brain);
}

static void
respond_whole(Exchange *x, const char *type)
{
    size_t n;
    guint8 *bytes = (guint8 *)(guintptr)buf_peek(&x->answer.whole, &n);

    exchange_ref(x);
    provider_scrub(x->provider, (char *)bytes, n);
    pass_headers(x);
    http_respond(x->request, x->answer.status, type, bytes, n);
    exchange_end(x);
    exchange_unref(x);
}

static void
whole_done(Exchange *x)
{
    Answer *a = &x->answer;
    size_t n;
    const guint8 *bytes = buf_peek(&a->whole, &n);
    g_autoptr(Json) object = json_decode_foreign(bytes != NULL ? (const char *)bytes : "", n,
                                                 USAGE_VALUES_MAX, NULL, NULL);

    if (!json_is_object(object)) {
        exchange_refuse(x, FAULT_UPSTREAM, "the provider '%s' answered with something that is not JSON",
                        provider_name(x->provider));
        return;
    }
    a->used.estimated = !usage_of_answer(x->route->dialect, object, &a->used);
    a->ended = true;
    provider_scrub(x->provider, (char *)(guintptr)bytes, n);
    exchange_record(x, bytes, n);
    exchange_record_end(x);
    respond_whole(x, "application/json");
}

/* In the provider's own words where they are JSON, so that clients find what they know. */
static void
error_done(Exchange *x)
{
    Answer *a = &x->answer;
    size_t n;
    const guint8 *bytes = buf_peek(&a->whole, &n);
    g_autoptr(Json) object = n > 0 ? json_decode_foreign(bytes, n, USAGE_VALUES_MAX, NULL, NULL) : NULL;

    x->error = "upstream_refused";
    if (json_is_object(object)) {
        respond_whole(x, "application/json");
        return;
    }
    g_autofree char *message = g_strdup_printf("the provider '%s' answered with status %d",
                                               provider_name(x->provider), a->status);
    g_autofree char *body = fault_body(a->status == 429 ? FAULT_RATE : FAULT_INVALID, x->route->dialect,
                                       message);
    buf_clear(&a->whole);
    bool ok = buf_puts(&a->whole, body);
    g_assert(ok); /* a few hundred bytes */
    respond_whole(x, "application/json");
}

static bool
take_whole(Exchange *x, const guint8 *bytes, size_t n)
{
    Answer *a = &x->answer;

    if (a->mode == ANSWER_ERROR)
        n = MIN(n, buf_room(&a->whole));
    if (!exchange_hold_bytes(x, n))
        exchange_refuse_busy(x);
    else if (!buf_put(&a->whole, bytes, n))
        exchange_refuse(x, FAULT_UPSTREAM, "the provider's answer is longer than %d bytes", GATE_ANSWER_MAX);
    return true;
}

/* ---- its head ---- */

static bool
is_plain(const char *value)
{
    for (const char *p = value; *p != '\0'; p++) {
        if (*p <= ' ' || *p > '~')
            return false;
    }
    return *value != '\0';
}

/* Of an answer's headers these two alone go on, and only where they are what they should be. */
static void
keep_headers(Exchange *x, const AnswerHead *head)
{
    Answer *a = &x->answer;

    if (head->retry_after != NULL && is_plain(head->retry_after))
        a->retry_after = g_strdup(head->retry_after);
    if (head->request_id == NULL || !is_plain(head->request_id))
        return;
    a->request_id = g_strdup(head->request_id);
    provider_scrub(x->provider, a->request_id, strlen(a->request_id));
}

static void
begin_stream(Exchange *x)
{
    Answer *a = &x->answer;

    a->mode = ANSWER_STREAM;
    event_cut_init(&a->events, EVENT_MAX);
    buf_init(&a->whole, OUT_MAX);
    a->usage = usage_reader_new(x->route->dialect, true);
    pass_headers(x);
    http_response_header(x->request, "Cache-Control", "no-cache");
    http_respond_stream(x->request, a->status, "text/event-stream", -1, &stream_source, exchange_ref(x));
}

static void
begin_whole(Exchange *x, AnswerMode mode)
{
    x->answer.mode = mode;
    buf_init(&x->answer.whole, mode == ANSWER_ERROR ? GATE_ERROR_MAX : GATE_ANSWER_MAX);
}

/* Statuses that say nothing of the request; true: it was refused. */
static bool
refuse_status(Exchange *x, int status)
{
    const char *name = provider_name(x->provider);

    if (status >= 200 && status < 300)
        return false;
    if (status >= 500)
        circuit_failed(x->circuit, clock_mono_us());
    if (status < 400) {
        exchange_refuse(x, FAULT_UPSTREAM,
                        "the provider '%s' answered with a redirect, which is not followed", name);
    } else if (status == 401 || status == 403 || status == 407) {
        exchange_tell_auth(x, status);
        exchange_refuse(x, FAULT_UPSTREAM_AUTH,
                        "the provider '%s' does not accept the gateway's key: its operator has been told",
                        name);
    } else if (status >= 500) {
        exchange_refuse(x, status == 504 ? FAULT_UPSTREAM_TIMEOUT : FAULT_UPSTREAM,
                        "the provider '%s' answered with status %d (request %s)", name, status,
                        http_request_id(x->request));
    } else {
        return false;
    }
    return true;
}

void
answer_head(Exchange *x, int status, const AnswerHead *head)
{
    const char *rest;
    bool is_stream = head->type != NULL && params_begin(head->type, "text/event-stream", &rest);

    if (status < 500)
        circuit_answered(x->circuit);
    if (refuse_status(x, status))
        return;
    if (head->encoding != NULL && g_ascii_strcasecmp(head->encoding, "identity") != 0) {
        exchange_refuse(x, FAULT_UPSTREAM, "the provider '%s' encoded its answer, which was not asked for",
                        provider_name(x->provider));
        return;
    }
    if (status < 300 && x->ask->stream && !is_stream) {
        exchange_refuse(x, FAULT_UPSTREAM, "the provider '%s' was asked for a stream and sent something else",
                        provider_name(x->provider));
        return;
    }
    x->answer.status = status;
    keep_headers(x, head);
    exchange_record_start(x);
    if (status >= 400)
        begin_whole(x, ANSWER_ERROR);
    else if (x->ask->stream)
        begin_stream(x);
    else
        begin_whole(x, ANSWER_WHOLE);
}

bool
answer_data(Exchange *x, const guint8 *bytes, size_t n)
{
    Answer *a = &x->answer;

    if (x->first_byte_us == 0)
        x->first_byte_us = clock_mono_us();
    a->bytes += n;
    return a->mode == ANSWER_STREAM ? take_stream(x, bytes, n) : take_whole(x, bytes, n);
}

void
answer_done(Exchange *x, const GError *error)
{
    if (x->answer.mode == ANSWER_NONE)
        circuit_failed(x->circuit, clock_mono_us());
    if (x->answer.mode == ANSWER_STREAM)
        stream_done(x, error);
    else if (error != NULL)
        exchange_refuse(x, err_kind(error) == ERR_TIMEOUT ? FAULT_UPSTREAM_TIMEOUT : FAULT_UPSTREAM,
                        "the provider '%s' gave no whole answer: %s", provider_name(x->provider),
                        error->message);
    else if (x->answer.mode == ANSWER_WHOLE)
        whole_done(x);
    else
        error_done(x);
}
