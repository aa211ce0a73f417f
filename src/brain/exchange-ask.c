/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "brain/gate-private.h"
#include "brain/usage-private.h"

/* ---- may it be sent? ---- */

static bool
pass_breaker(Exchange *x)
{
    guint repeats = 0;

    if (!x->route->metered || x->route->kind == ROUTE_EMBEDDINGS || x->who.breaker == NULL)
        return true;
    x->in_breaker = true;
    if (breaker_pass(x->who.breaker, x->digest, clock_mono_us(), &repeats))
        return true;
    exchange_tell_loop(x, repeats);
    exchange_refuse(x, FAULT_LOOP,
                    "the same request came %u times within %d s, which looks like a loop: wait %d s or ask "
                    "something else",
                    repeats, BREAKER_WINDOW_S, BREAKER_OPEN_S);
    return false;
}

/* A provider that is down is not waited for. */
static bool
pass_circuit(Exchange *x)
{
    guint wait_s;

    if (circuit_pass(x->circuit, clock_mono_us(), &wait_s))
        return true;
    if (x->in_breaker)
        breaker_forgive(x->who.breaker, x->digest);
    exchange_refuse(x, FAULT_UPSTREAM, "the provider '%s' keeps failing: it is asked again in %u s",
                    provider_name(x->provider), wait_s);
    return false;
}

static void
name_scopes(const Exchange *x, char **names)
{
    const struct {
        const char *prefix, *value;
    } rows[] = {
        {"box:", x->who.box}, {"agent:", x->who.agent}, {"task:", x->who.task}, {"squad:", x->who.squad}};
    guint n = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].value != NULL)
            names[n++] = g_strconcat(rows[i].prefix, rows[i].value, NULL);
    }
    names[n++] = g_strdup("all");
    names[n] = NULL;
}

/* What costs an unknown sum cannot be held to a budget in money. */
static bool
pass_price(Exchange *x, const char *const *scopes, bool is_known)
{
    const char *scope = budgets_in_money(x->gate->budgets, scopes);

    if (is_known || scope == NULL || x->script != NULL || provider_tape(x->provider) == TAPE_REPLAY)
        return true;
    exchange_refuse(x, FAULT_PRICE,
                    "the budget of %s is in money, and nobody knows what the model '%s' of the provider '%s' "
                    "costs: its operator can add a row for it to prices.yaml in the door's state folder",
                    scope, x->model, provider_name(x->provider));
    return false;
}

static bool
hold_scopes(Exchange *x, const char *const *scopes)
{
    Usage most = {.input_tokens = x->ask->bytes / USAGE_BYTES_PER_TOKEN, .output_tokens = x->ask->max_output};
    BudgetNews news;
    g_autoptr(GError) error = NULL;
    bool known;
    guint64 microusd = exchange_cost(x, &most, &known);

    if (!pass_price(x, scopes, known))
        return false;
    x->hold = budgets_hold(x->gate->budgets, scopes, most.input_tokens + most.output_tokens, microusd, &news,
                           &error);
    if (news.warned != NULL)
        exchange_tell_warned(x, news.warned);
    if (x->hold != NULL)
        return true;
    exchange_tell_exceeded(x, &news, error->message);
    exchange_refuse(x, err_kind(error) == ERR_LIMIT ? FAULT_BUDGET : FAULT_RATE, "%s", error->message);
    return false;
}

static bool
hold_budget(Exchange *x)
{
    g_auto(GStrv) scopes = g_new0(char *, BUDGET_SCOPES_PER_CALL + 1);
    g_autoptr(GError) error = NULL;

    name_scopes(x, scopes);
    if (x->route->metered)
        return hold_scopes(x, (const char *const *)scopes);
    if (budgets_count_call(x->gate->budgets, (const char *const *)scopes, &error))
        return true;
    exchange_refuse(x, FAULT_RATE, "%s", error->message);
    return false;
}

/* ---- long bodies take a thread ---- */

/* The thread has the Ask to itself: until `done`, nothing of the exchange looks at it. */
static void
run_work(Exchange *x, size_t bytes, void (*work)(void *data), void (*done)(void *data), void *data)
{
    if (bytes > GATE_PARSE_INLINE_MAX) {
        loop_offload(x->gate->loop, work, done, data);
        return;
    }
    work(data);
    done(data);
}

typedef struct Prepare {
    Exchange *x; /* a reference */
    Ask *ask;
    const char *model;
    char *sent;
    guint8 digest[ASK_DIGEST_LEN];
} Prepare;

static void
prepare_work(void *data)
{
    Prepare *p = data;

    if (p->ask->body != NULL)
        p->sent = ask_encode(p->ask, p->model);
    ask_digest(p->ask, p->digest);
}

static void
prepare_done(void *data)
{
    g_autofree Prepare *p = data;
    g_autoptr(Exchange) x = p->x;

    x->sent = p->sent;
    memcpy(x->digest, p->digest, sizeof x->digest);
    if (x->gate != NULL && pass_breaker(x) && pass_circuit(x) && hold_budget(x))
        exchange_call(x);
}

static void
admit(Exchange *x)
{
    const char *model = NULL;
    ProviderSlot *slot = gate_choose(x->gate, x->route->dialect, x->ask->model, &model);
    Prepare *p;

    if (slot == NULL && x->ask->model != NULL) {
        exchange_refuse(x, FAULT_MODEL,
                        "no provider has the model '%s' for %s clients: 'coop provider add' adds one",
                        x->ask->model, dialect_name(x->route->dialect));
        return;
    }
    if (slot == NULL) {
        exchange_refuse(x, FAULT_MODEL, "no provider is set up for %s clients",
                        dialect_name(x->route->dialect));
        return;
    }
    x->provider = provider_ref(slot->provider);
    x->script = slot->script != NULL ? brain_script_ref(slot->script) : NULL;
    x->circuit = circuit_ref(slot->circuit);
    x->model = g_strdup(model);
    p = g_new0(Prepare, 1);
    *p = (Prepare){.x = exchange_ref(x), .ask = x->ask, .model = x->model};
    run_work(x, x->ask->bytes, prepare_work, prepare_done, p);
}

/* ---- is it well formed? ---- */

typedef struct Parse {
    Exchange *x; /* a reference; touched by the loop alone */
    const Route *route;
    GByteArray *bytes;
    Ask *ask;
    GError *error;
} Parse;

static void
parse_work(void *data)
{
    Parse *p = data;

    p->ask = ask_new(p->route, p->bytes->data, p->bytes->len, &p->error);
}

static void
parse_done(void *data)
{
    Parse *p = data;
    Exchange *x = p->x;

    g_byte_array_unref(p->bytes);
    if (x->gate == NULL) {
        ask_drop(p->ask, x->loop);
    } else if (p->ask == NULL) {
        exchange_refuse(x, err_kind(p->error) == ERR_DENIED ? FAULT_STATEFUL : FAULT_INVALID, "%s",
                        p->error->message);
    } else {
        x->ask = p->ask;
        if (exchange_hold_bytes(x, x->ask->values * ASK_VALUE_BYTES))
            admit(x);
        else
            exchange_refuse_busy(x);
    }
    g_clear_error(&p->error);
    exchange_unref(x);
    g_free(p);
}

static void
parse(Exchange *x)
{
    Parse *p = g_new0(Parse, 1);

    *p = (Parse){.x = exchange_ref(x), .route = x->route, .bytes = g_steal_pointer(&x->incoming)};
    run_work(x, p->bytes->len, parse_work, parse_done, p);
}

/* ---- its body ---- */

/* Looked at when a byte comes: a body of which none comes is the server's to end. */
static bool
is_slow(const Exchange *x)
{
    gint64 most_us = (gint64)x->gate->times.body_ms * 1000 +
                     (gint64)x->incoming->len * G_USEC_PER_SEC / GATE_BODY_RATE;

    return clock_mono_us() - x->body_us > most_us;
}

static void
refuse_slow(Exchange *x)
{
    exchange_refuse(x, FAULT_SLOW, "the body did not come in time");
}

static bool
on_body(void *ctx, const guint8 *bytes, size_t n)
{
    Exchange *x = ctx;

    if (x->gate == NULL)
        return true;
    if (is_slow(x))
        refuse_slow(x);
    else if (exchange_hold_bytes(x, n))
        g_byte_array_append(x->incoming, bytes, (guint)n);
    else
        exchange_refuse_busy(x);
    return true;
}

static void
on_body_end(void *ctx, const GError *error)
{
    g_autoptr(Exchange) x = ctx;

    if (x->gate == NULL)
        return;
    if (error == NULL)
        parse(x);
    else if (err_kind(error) == ERR_LIMIT)
        exchange_refuse(x, FAULT_LARGE, "the body is longer than %d bytes", GATE_BODY_MAX);
    else if (err_kind(error) == ERR_TIMEOUT)
        refuse_slow(x);
    else
        exchange_end(x); /* answered by the server, or nobody is left */
}

static bool
check_head(Exchange *x)
{
    const char *encoding = http_request_header(x->request, "Content-Encoding");
    g_autoptr(GError) error = NULL;

    if (encoding != NULL && g_ascii_strcasecmp(encoding, "identity") != 0) {
        exchange_refuse(x, FAULT_ENCODING, "send the body as it is, without Content-Encoding");
        return false;
    }
    x->query = route_query(x->route, http_request_query(x->request), &error);
    if (x->query == NULL) {
        exchange_refuse(x, FAULT_INVALID, "%s", error->message);
        return false;
    }
    return true;
}

static void
start_get(Exchange *x)
{
    g_autofree char *model = NULL;

    if (http_request_has_body(x->request)) {
        exchange_refuse(x, FAULT_INVALID, "a GET has no body");
        return;
    }
    if (x->route->kind == ROUTE_MODEL) {
        model = route_model(x->route, http_request_path(x->request));
        if (model == NULL) {
            exchange_refuse(x, FAULT_PATH, "this is not a model's name");
            return;
        }
    }
    x->ask = ask_new_get(x->route, model);
    admit(x);
}

void
exchange_start(Exchange *x)
{
    static const HttpSink sink = {.data = on_body, .end = on_body_end};

    if (!check_head(x))
        return;
    if (strcmp(x->route->method, "GET") == 0) {
        start_get(x);
        return;
    }
    x->incoming = g_byte_array_new();
    x->body_us = clock_mono_us();
    http_request_read_body(x->request, &sink, exchange_ref(x), GATE_BODY_MAX);
}
