/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include "brain/gate-private.h"

static void
count_stream(Gate *gate, const char *box)
{
    BoxLoad *load = g_hash_table_lookup(gate->loads, box);

    if (load == NULL) {
        load = g_new0(BoxLoad, 1);
        g_hash_table_insert(gate->loads, g_strdup(box), load);
    }
    load->streams++;
}

static void
leave_load(Exchange *x)
{
    BoxLoad *load = g_hash_table_lookup(x->gate->loads, x->who.box);

    exchange_drop_bytes(x, x->held);
    if (--load->streams == 0)
        g_hash_table_remove(x->gate->loads, x->who.box);
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
    x->loop = gate->loop;
    x->link.data = x;
    x->request = http_request_ref(request);
    x->who = (Who){g_strdup(caller->box), g_strdup(caller->agent), g_strdup(caller->task),
                   g_strdup(caller->squad), caller->breaker};
    x->route = route;
    g_queue_push_tail_link(&gate->exchanges, &x->link);
    count_stream(gate, x->who.box);
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
    ask_drop(x->ask, x->loop);
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
    exchange_account(x); /* looks at what is under way */
    exchange_stop_call(x);
    loop_timer_cancel(gate->loop, &x->linger);
    leave_load(x);
    x->gate = NULL;
    g_queue_unlink(&gate->exchanges, &x->link);
    http_request_on_gone(x->request, NULL, NULL);
    exchange_unref(x);
}

bool
exchange_hold_bytes(Exchange *x, size_t n)
{
    BoxLoad *load = g_hash_table_lookup(x->gate->loads, x->who.box);

    if (n > GATE_HELD_MAX - x->gate->held || n > GATE_HELD_PER_BOX - load->held)
        return false;
    x->gate->held += n;
    load->held += n;
    x->held += n;
    return true;
}

void
exchange_drop_bytes(Exchange *x, size_t n)
{
    BoxLoad *load = g_hash_table_lookup(x->gate->loads, x->who.box);

    x->gate->held -= n;
    load->held -= n;
    x->held -= n;
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

void
exchange_refuse_busy(Exchange *x)
{
    exchange_refuse(x, FAULT_BUSY, "the gateway holds as many bytes as it may, of this box or of all");
}
