/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call.h"

#include <string.h>

#include "api/state.h"
#include "api/v3/v3.h"
#include "base/err.h"
#include "base/log.h"

/* The loop stands still while JSON is parsed; who has no key may not make it stand for long. */
enum { STRANGER_BODY_MAX = 16 * 1024, BOX_BODY_MAX = 256 * 1024 };
/* Where nothing better is known of when it is worth a try. */
enum { RETRY_S = 1 };

/* The only place where kinds of errors become HTTP statuses. */
static const int statuses[ERR_KIND_MAX] = {
    [ERR_INVALID] = 400,     [ERR_DENIED] = 403,   [ERR_NOT_FOUND] = 404, [ERR_CONFLICT] = 409,
    [ERR_LIMIT] = 429,       [ERR_FULL] = 507,     [ERR_TIMEOUT] = 504,   [ERR_CANCELLED] = 499,
    [ERR_UNAVAILABLE] = 503, [ERR_INTERNAL] = 500,
};

int
error_status(const GError *error)
{
    return statuses[err_kind(error)];
}

static void
keep_nowhere(HttpRequest *request)
{
    http_response_header(request, "Cache-Control", "no-store");
}

static char *
dup_error(HttpRequest *request, int status, const char *message)
{
    /* Messages quote what was sent, cut at a byte; JSON wants whole characters. */
    g_autofree char *valid = g_utf8_make_valid(message, -1);
    g_autoptr(Json) body = v3_is_asked(request) ? v3_error_json(request, status, valid)
                                                : json_pack("{s:i, s:s, s:s}", "code", status, "message",
                                                            valid, "request_id", http_request_id(request));

    return json_encode(body);
}

static void
respond_error_after(HttpRequest *request, int status, const char *message, gint64 retry_s)
{
    g_autofree char *text = dup_error(request, status, message);

    keep_nowhere(request);
    if (v3_is_asked(request))
        v3_add_headers(request);
    if (status == 429 || status == 503) {
        g_autofree char *after = g_strdup_printf("%" G_GINT64_FORMAT, MAX(retry_s, RETRY_S));

        http_response_header(request, "Retry-After", after);
    }
    http_respond_text(request, status, "application/json", text);
}

void
respond_error(HttpRequest *request, int status, const char *message)
{
    respond_error_after(request, status, message, RETRY_S);
}

bool
call_is_admin(const ApiCall *call)
{
    return (call->caller.scopes & SCOPE_ADMIN) != 0;
}

void
call_respond_error_after(ApiCall *call, const GError *error, gint64 retry_s)
{
    int status = v3_is_asked(call->request) ? v3_error_status(error) : error_status(error);

    if (status >= 500)
        log_error("api", "a call failed", log_str("id", http_request_id(call->request)),
                  log_str("path", http_request_path(call->request)), log_gerror(error));
    respond_error_after(call->request, status,
                        status == 500 ? "something went wrong inside; the log has it under this request id"
                                      : error->message,
                        retry_s);
}

void
call_respond_error(ApiCall *call, const GError *error)
{
    call_respond_error_after(call, error, RETRY_S);
}

void
call_on_done(void *data, const GError *error)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_empty(call);
    http_request_unref(call->request);
}

void
call_respond_text(ApiCall *call, int status, const char *json)
{
    keep_nowhere(call->request);
    http_respond_text(call->request, status, "application/json", json);
}

void
call_respond_json(ApiCall *call, int status, Json *value)
{
    g_autoptr(Json) owned = value;
    g_autofree char *text = json_encode(owned);

    call_respond_text(call, status, text);
}

void
call_respond_empty(ApiCall *call)
{
    keep_nowhere(call->request);
    http_respond(call->request, 204, NULL, NULL, 0);
}

/* ---- reading ---- */

bool
call_wants_stream(const ApiCall *call)
{
    const char *accept = http_request_header(call->request, "Accept");

    return accept != NULL && strstr(accept, "text/event-stream") != NULL;
}

typedef struct BodyRead {
    ApiCall *call;
    CallBodyFunc func;
    void *data;
} BodyRead;

void
call_respond_body_error(ApiCall *call, const GError *error)
{
    ErrKind kind = err_kind(error);

    if (kind == ERR_LIMIT)
        respond_error(call->request, 413, error->message);
    else if (kind == ERR_TIMEOUT)
        respond_error(call->request, 408, error->message);
    else
        call_respond_error(call, error);
}

static void
on_body(HttpRequest *request, const guint8 *body, size_t n, const GError *error, void *data)
{
    g_autofree BodyRead *read = data;
    g_autoptr(GError) bad = NULL;

    if (error != NULL) {
        call_respond_body_error(read->call, error);
        return;
    }
    /* A body may take its time, and the key that let its head in may be gone by now. */
    if (!caller_is_still_known(read->call)) {
        respond_error(request, 401, "the key of this call is not valid any more");
        return;
    }
    /* No body at all is an object without members: curl -X POST needs no -d '{}'. */
    g_autoptr(Json) value = n == 0 ? json_object() : json_decode(body, n, &bad);
    if (value == NULL) {
        respond_error(request, error_status(bad),
                      v3_is_asked(request) ? "Problems parsing JSON" : bad->message);
        return;
    }
    read->func(read->call, value, read->data);
}

static bool
has_json_type(HttpRequest *request)
{
    const char *type = http_request_header(request, "Content-Type");

    return type != NULL && g_ascii_strncasecmp(type, "application/json", 16) == 0 &&
           (type[16] == '\0' || type[16] == ';' || type[16] == ' ');
}

void
call_read_json(ApiCall *call, CallBodyFunc func, void *data)
{
    const char *coding = http_request_header(call->request, "Content-Encoding");

    if (coding != NULL && g_ascii_strcasecmp(coding, "identity") != 0) {
        respond_error(call->request, 415, "compressed bodies are not read");
        return;
    }
    /* A form of a foreign page can only send the simple types. */
    if (call->caller.kind == CALLER_SESSION && http_request_has_body(call->request) &&
        !has_json_type(call->request)) {
        respond_error(call->request, 415, "the body must be sent as application/json");
        return;
    }
    guint64 max = call->api->body_max;
    if (call->caller.kind == CALLER_NOBODY)
        max = MIN(max, STRANGER_BODY_MAX);
    else if (call->caller.kind == CALLER_BOX)
        max = MIN(max, BOX_BODY_MAX);
    BodyRead *read = g_new0(BodyRead, 1);
    *read = (BodyRead){.call = call, .func = func, .data = data};
    http_request_read_all(call->request, max, on_body, read);
}
