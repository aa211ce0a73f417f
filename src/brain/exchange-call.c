/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/version.h"
#include "brain/gate-private.h"
#include "http/url.h"

enum { BETA_MAX = 4096 };

static const HttpCallHandler call_handler;

/* ---- what is sent: written anew from what was checked, never copied ---- */

/* A list of names such as clients send to have features turned on; NULL: none, or odd. */
static char *
plain_header(Exchange *x, const char *name, const char *otherwise)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._, ";
    const char *value = http_request_header(x->request, name);

    if (value == NULL || strlen(value) > BETA_MAX || strspn(value, allowed) != strlen(value) ||
        *value == '\0')
        value = otherwise;
    return value != NULL ? g_strdup_printf("%s: %s", name, value) : NULL;
}

static char *
make_url(const Exchange *x)
{
    g_autofree char *model = x->route->kind == ROUTE_MODEL ? url_encode_path(x->model) : g_strdup("");

    return g_strconcat(provider_base_url(x->provider), x->route->upstream, model, x->query, NULL);
}

static HttpCall *
start_call(Exchange *x, GError **error)
{
    g_autofree char *url = make_url(x);
    g_autofree char *agent = g_strdup_printf("User-Agent: coop/%s", version_number());
    g_autofree char *version = NULL, *beta = NULL;
    char **auth = provider_auth_headers(x->provider, x->route->dialect);
    g_autoptr(GPtrArray) headers = g_ptr_array_new();
    const GateTimes *t = &x->gate->times;
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    g_ptr_array_add(headers, agent);
    g_ptr_array_add(headers, (char *)(guintptr)(x->ask->stream ? "Accept: text/event-stream"
                                                               : "Accept: application/json"));
    if (x->sent != NULL)
        g_ptr_array_add(headers, (char *)(guintptr) "Content-Type: application/json");
    if (x->route->dialect == DIALECT_ANTHROPIC) {
        version = plain_header(x, "anthropic-version", "2023-06-01");
        g_ptr_array_add(headers, version);
        beta = plain_header(x, "anthropic-beta", NULL);
        if (beta != NULL)
            g_ptr_array_add(headers, beta);
    }
    if (auth[0] != NULL)
        g_ptr_array_add(headers, auth[0]);
    g_ptr_array_add(headers, NULL);
    spec.method = x->route->method;
    spec.url = url;
    spec.headers = (const char *const *)headers->pdata;
    spec.body = x->sent;
    spec.body_len = x->sent != NULL ? strlen(x->sent) : 0;
    spec.connect_ms = t->connect_ms;
    spec.first_byte_ms = t->first_byte_ms;
    spec.stall_ms = t->idle_ms;
    spec.total_ms = t->total_ms;
    HttpCall *call = http_client_call(x->gate->client, &spec, &call_handler, x, error);
    provider_wipe(auth);
    return call;
}

static void
call_provider(Exchange *x)
{
    g_autoptr(GError) error = NULL;

    x->call = start_call(x, &error);
    if (x->call == NULL)
        exchange_refuse(x, FAULT_UPSTREAM, "the provider '%s' cannot be called: %s",
                        provider_name(x->provider), error->message);
}

void
exchange_call(Exchange *x)
{
    g_autoptr(Json) body = NULL;

    x->began_us = clock_mono_us();
    if (x->script != NULL)
        exchange_play_script(x);
    /* Only scripts look at it again; a conversation may be large. */
    body = g_steal_pointer(&x->ask->body);
    if (x->gate != NULL)
        exchange_drop_bytes(x, x->ask->values * ASK_VALUE_BYTES);
    if (x->script != NULL)
        return;
    if (provider_tape(x->provider) == TAPE_REPLAY)
        exchange_replay(x);
    else
        call_provider(x);
}

void
exchange_stop_call(Exchange *x)
{
    if (x->retry != 0)
        g_source_remove(x->retry);
    x->retry = 0;
    if (x->call != NULL)
        http_call_cancel(g_steal_pointer(&x->call));
    if (x->play != NULL)
        tape_stop(g_steal_pointer(&x->play));
}

/* ---- once more ---- */

static gboolean
on_retry(gpointer data)
{
    Exchange *x = data;

    x->retry = 0;
    call_provider(x);
    return G_SOURCE_REMOVE;
}

/* Milliseconds to wait; -1: longer than we wait for anybody. */
static int
retry_wait_ms(const Exchange *x, const char *retry_after)
{
    guint64 seconds;

    if (retry_after == NULL || !g_ascii_string_to_unsigned(retry_after, 10, 0, G_MAXUINT32, &seconds, NULL))
        return (int)(x->gate->times.retry_ms << x->retries);
    return seconds <= GATE_RETRY_AFTER_MAX_S ? (int)(seconds * 1000) : -1;
}

/* Only before the client has seen a byte, and only where asking again may help. */
static bool
try_again(Exchange *x, const char *retry_after)
{
    int wait_ms = retry_wait_ms(x, retry_after);

    if (x->retries >= GATE_RETRIES_MAX || wait_ms < 0)
        return false;
    x->retries++;
    exchange_stop_call(x);
    /* Of a length that the provider chooses, so not a timer of the Loop. */
    x->retry = g_timeout_add((guint)wait_ms, on_retry, x);
    return true;
}

/* ---- what comes ---- */

static void
on_head(HttpCall *call, int status, void *ctx)
{
    Exchange *x = ctx;
    AnswerHead head = {
        .type = http_call_header(call, "Content-Type"),
        .encoding = http_call_header(call, "Content-Encoding"),
        .retry_after = http_call_header(call, "Retry-After"),
        .request_id = http_call_header(call, "request-id"),
    };

    if (head.request_id == NULL)
        head.request_id = http_call_header(call, "x-request-id");
    if ((status == 429 || status >= 500) && try_again(x, head.retry_after))
        return;
    answer_head(x, status, &head);
}

static bool
on_data(HttpCall *call, const guint8 *bytes, size_t n, void *ctx)
{
    return answer_data(ctx, bytes, n);
}

static void
on_done(HttpCall *call, int status, const GError *error, void *ctx)
{
    Exchange *x = ctx;

    x->call = NULL; /* freed when this returns */
    /* Nothing was sent, so nothing is asked twice. */
    if (error != NULL && status == 0 && err_kind(error) == ERR_UNAVAILABLE && try_again(x, NULL))
        return;
    answer_done(x, error);
}

static const HttpCallHandler call_handler = {.head = on_head, .data = on_data, .done = on_done};
