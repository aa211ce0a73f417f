/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "brain/gate-private.h"
#include "brain/usage-private.h"

enum { STATUS_GONE = 499 };

static void
set_string(Json *object, const char *name, const char *value)
{
    if (value != NULL)
        json_object_set_new(object, name, json_string(value));
}

static void
set_number(Json *object, const char *name, guint64 value)
{
    json_object_set_new(object, name, json_integer((json_int_t)MIN(value, (guint64)G_MAXINT64)));
}

static Json *
new_fact(const Exchange *x, const char *kind)
{
    Json *fact = json_object();

    set_string(fact, "kind", kind);
    set_string(fact, "box", x->who.box);
    set_string(fact, "agent", x->who.agent);
    set_string(fact, "task", x->who.task);
    set_string(fact, "squad", x->who.squad);
    if (x->provider != NULL)
        set_string(fact, "provider", provider_name(x->provider));
    set_string(fact, "model", x->model);
    set_string(fact, "brain", x->brain);
    set_string(fact, "dialect", dialect_name(x->route->dialect));
    set_string(fact, "request", http_request_id(x->request));
    return fact;
}

static void
tell(Exchange *x, Json *fact)
{
    if (x->gate->tell != NULL)
        x->gate->tell(fact, x->gate->ctx);
    else
        json_decref(fact);
}

guint64
exchange_cost(Exchange *x, const Usage *usage, bool *ret_known)
{
    *ret_known = false;
    if (x->model == NULL || x->gate->prices == NULL)
        return 0;
    return price_cost_microusd(x->gate->prices, provider_name(x->provider), x->model, usage, ret_known);
}

static bool
is_gone(const Exchange *x)
{
    return x->error == NULL && !x->answer.ended;
}

/* What the provider will charge for, as far as it is known; false: nothing.  It may go on after
 * the client went, or have thought where nobody saw it: leaving early is charged as what was held. */
static bool
find_usage(Exchange *x, Usage *ret)
{
    Answer *a = &x->answer;
    Usage input_only = {.input_tokens = (x->ask->bytes + USAGE_BYTES_PER_TOKEN - 1) / USAGE_BYTES_PER_TOKEN,
                        .estimated = true};

    if (a->mode == ANSWER_STREAM) {
        usage_reader_result(a->usage, x->ask->bytes, ret);
    } else if (a->mode == ANSWER_ERROR || (a->mode == ANSWER_NONE && x->error != NULL) || x->retry != 0) {
        return false;
    } else if (a->ended && !a->used.estimated) {
        *ret = a->used;
    } else {
        *ret = input_only;
        ret->output_tokens = (a->bytes + USAGE_BYTES_PER_TOKEN - 1) / USAGE_BYTES_PER_TOKEN;
    }
    if (is_gone(x) && ret->estimated)
        ret->output_tokens = MAX(ret->output_tokens, x->ask->max_output);
    return true;
}

static void
tell_called(Exchange *x, const Usage *usage, guint64 microusd, bool price_known)
{
    Json *fact = new_fact(x, "model.called");
    gint64 now = clock_mono_us();
    bool gone = is_gone(x);

    set_string(fact, "path", x->route->path);
    set_number(fact, "status", (guint64)(gone ? STATUS_GONE : x->answer.status));
    set_string(fact, "error", gone ? "client_gone" : x->error);
    set_number(fact, "input_tokens", usage->input_tokens);
    set_number(fact, "output_tokens", usage->output_tokens);
    set_number(fact, "cached_tokens", usage->cached_tokens);
    set_number(fact, "cache_write_tokens", usage->cache_write_tokens);
    set_number(fact, "microusd", microusd);
    json_object_set_new(fact, "price_known", json_boolean(price_known));
    json_object_set_new(fact, "estimated", json_boolean(usage->estimated));
    json_object_set_new(fact, "stream", json_boolean(x->ask->stream));
    set_number(fact, "retries", x->retries);
    set_number(fact, "latency_ms", (guint64)((now - x->began_us) / 1000));
    if (x->first_byte_us > 0)
        set_number(fact, "first_byte_ms", (guint64)((x->first_byte_us - x->began_us) / 1000));
    tell(x, fact);
}

/* Another try at a provider that failed is no loop. */
static void
forgive(Exchange *x)
{
    if (x->in_breaker && (x->answer.status == 429 || x->answer.status >= 500))
        breaker_forgive(x->who.breaker, x->digest);
}

void
exchange_account(Exchange *x)
{
    BudgetHold *hold = g_steal_pointer(&x->hold);
    Usage usage = {0};
    bool known = false;

    if (x->told || x->began_us == 0 || !x->route->metered) {
        if (hold != NULL)
            budgets_release(hold);
        return;
    }
    x->told = true;
    bool charged = find_usage(x, &usage);
    guint64 microusd = exchange_cost(x, &usage, &known);
    if (hold != NULL && charged)
        budgets_settle(hold, &usage, microusd);
    else if (hold != NULL)
        budgets_release(hold);
    forgive(x);
    tell_called(x, &usage, microusd, known);
}

void
exchange_tell_auth(Exchange *x, int status)
{
    Json *fact = new_fact(x, "provider.refused");

    set_number(fact, "status", (guint64)status);
    tell(x, fact);
}

void
exchange_tell_warned(Exchange *x, const char *scope)
{
    Json *fact = new_fact(x, "budget.warned");

    set_string(fact, "scope", scope);
    tell(x, fact);
}

void
exchange_tell_exceeded(Exchange *x, const BudgetNews *news, const char *message)
{
    Json *fact = new_fact(x, "budget.exceeded");

    set_string(fact, "scope", news->refused);
    set_string(fact, "bound", news->bound);
    set_number(fact, "most", news->most);
    set_string(fact, "message", message);
    tell(x, fact);
}

void
exchange_tell_loop(Exchange *x, guint repeats)
{
    Json *fact = new_fact(x, "loop.broken");

    set_number(fact, "repeats", repeats);
    tell(x, fact);
}
