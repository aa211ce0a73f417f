/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include "brain/gate-private.h"

static void
count_stream(Gate *gate, const char *box, int change)
{
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(gate->streams, box));

    n = (guint)((int)n + change);
    if (n == 0)
        g_hash_table_remove(gate->streams, box);
    else
        g_hash_table_replace(gate->streams, g_strdup(box), GUINT_TO_POINTER(n));
}

static void
on_gone(HttpRequest *request, void *data)
{
    exchange_end(data);
}

Exchange *
exchange_new(Gate *gate, HttpRequest *request, const GateCaller *caller, const Route *route)
{
    Exchange *x = g_new0(Exchange, 1);

    x->refs = 1;
    x->gate = gate;
    x->link.data = x;
    x->request = http_request_ref(request);
    x->who = (Who){g_strdup(caller->box), g_strdup(caller->agent), g_strdup(caller->task),
                   g_strdup(caller->squad), caller->breaker};
    x->route = route;
    g_queue_push_tail_link(&gate->exchanges, &x->link);
    count_stream(gate, x->who.box, 1);
    http_request_on_gone(request, on_gone, x);
    return x;
}

Exchange *
exchange_ref(Exchange *x)
{
    x->refs++;
    return x;
}

void
exchange_unref(Exchange *x)
{
    if (--x->refs > 0)
        return;
    g_assert(x->gate == NULL);
    answer_clear(&x->answer);
    ask_free(x->ask);
    provider_unref(x->provider);
    brain_script_unref(x->script);
    circuit_unref(x->circuit);
    tape_unref(x->recorded);
    if (x->incoming != NULL)
        g_byte_array_unref(x->incoming);
    http_request_unref(x->request);
    g_free(x->who.box);
    g_free(x->who.agent);
    g_free(x->who.task);
    g_free(x->who.squad);
    g_free(x->query);
    g_free(x->model);
    g_free(x->sent);
    g_free(x);
}

void
exchange_end(Exchange *x)
{
    Gate *gate = x->gate;

    if (gate == NULL)
        return;
    exchange_stop_call(x);
    exchange_account(x);
    x->gate = NULL;
    gate->held -= x->held;
    g_queue_unlink(&gate->exchanges, &x->link);
    count_stream(gate, x->who.box, -1);
    http_request_on_gone(x->request, NULL, NULL);
    exchange_unref(x);
}

bool
exchange_hold_bytes(Exchange *x, size_t n)
{
    if (n > GATE_HELD_MAX - x->gate->held)
        return false;
    x->gate->held += n;
    x->held += n;
    return true;
}

void
gate_respond_fault(HttpRequest *request, Dialect dialect, Fault fault, const char *message)
{
    g_autofree char *body = fault_body(fault, dialect, message);

    /* The clients of both dialects look at this before they ask again by themselves. */
    if (!fault_may_pass(fault))
        http_response_header(request, "X-Should-Retry", "false");
    if (fault == FAULT_RATE || fault == FAULT_BUSY)
        http_response_header(request, "Retry-After", "5");
    http_response_header(request, "X-Request-Id", http_request_id(request));
    http_respond_text(request, fault_status(fault), "application/json", body);
}

void
exchange_refuse(Exchange *x, Fault fault, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *message = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    exchange_ref(x);
    x->error = fault_code(fault);
    x->answer.status = fault_status(fault);
    if (x->brain != NULL)
        http_response_header(x->request, "X-Coop-Brain", x->brain);
    gate_respond_fault(x->request, x->route->dialect, fault, message);
    exchange_end(x);
    exchange_unref(x);
}
