/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/gate.h"

#include <string.h>

#include "base/err.h"
#include "brain/gate-private.h"

static void
slot_free(void *data)
{
    ProviderSlot *slot = data;

    provider_unref(slot->provider);
    brain_script_unref(slot->script);
    circuit_unref(slot->circuit);
    g_free(slot);
}

static guint
or_default(guint value, guint otherwise)
{
    return value > 0 ? value : otherwise;
}

Gate *
gate_new(const GateSpec *spec)
{
    Gate *gate = g_new0(Gate, 1);
    const GateTimes *t = &spec->times;

    gate->loop = spec->loop;
    gate->budgets = spec->budgets;
    gate->prices = spec->prices;
    gate->recordings = g_strdup(spec->recordings);
    gate->tell = spec->tell;
    gate->may_tell = spec->may_tell;
    gate->ctx = spec->ctx;
    gate->times = (GateTimes){
        .body_ms = or_default(t->body_ms, GATE_BODY_MS),
        .connect_ms = or_default(t->connect_ms, GATE_CONNECT_MS),
        .first_byte_ms = or_default(t->first_byte_ms, GATE_FIRST_BYTE_MS),
        .idle_ms = or_default(t->idle_ms, GATE_IDLE_MS),
        .total_ms = or_default(t->total_ms, GATE_TOTAL_MS),
        .retry_ms = or_default(t->retry_ms, GATE_RETRY_MS),
        .linger_ms = or_default(t->linger_ms, GATE_LINGER_MS),
    };
    gate->client = http_client_new(NULL);
    http_client_allow(gate->client, GATE_CONNECTIONS_MAX, GATE_CONNECTIONS_MAX);
    gate->slots = g_ptr_array_new_with_free_func(slot_free);
    gate->loads = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return gate;
}

void
gate_free(Gate *gate)
{
    Exchange *x;

    if (gate == NULL)
        return;
    while ((x = g_queue_peek_head(&gate->exchanges)) != NULL) {
        g_autoptr(HttpRequest) request = http_request_ref(x->request);

        exchange_end(x);
        http_request_cut(request);
    }
    while (gate->tests.length > 0)
        gate_test_free(gate->tests.head->data);
    http_client_free(gate->client);
    g_ptr_array_unref(gate->slots);
    g_hash_table_unref(gate->loads);
    g_free(gate->recordings);
    g_free(gate);
}

/* ---- the providers ---- */

ProviderSlot *
gate_find_provider(Gate *gate, const char *name)
{
    for (guint i = 0; i < gate->slots->len; i++) {
        ProviderSlot *slot = gate->slots->pdata[i];

        if (strcmp(provider_name(slot->provider), name) == 0)
            return slot;
    }
    return NULL;
}

static int
compare_slots(gconstpointer a, gconstpointer b)
{
    const ProviderSlot *x = *(ProviderSlot *const *)a, *y = *(ProviderSlot *const *)b;

    return strcmp(provider_name(x->provider), provider_name(y->provider));
}

/* `*ret` is the script, NULL where there is none. */
static bool
check_provider(Gate *gate, Provider *provider, const char *script, BrainScript **ret, GError **error)
{
    if ((provider_kind(provider) == PROVIDER_SCRIPT) != (script != NULL))
        return err_set(error, ERR_INVALID, "a provider of kind 'script' has a script, and no other has");
    if (gate_find_provider(gate, provider_name(provider)) == NULL && gate->slots->len >= GATE_PROVIDERS_MAX)
        return err_set(error, ERR_LIMIT, "there are %d providers already", GATE_PROVIDERS_MAX);
    *ret = script != NULL ? brain_script_new(script, strlen(script), error) : NULL;
    return script == NULL || *ret != NULL;
}

bool
gate_check_provider(Gate *gate, Provider *provider, const char *script, GError **error)
{
    g_autoptr(BrainScript) parsed = NULL;

    return check_provider(gate, provider, script, &parsed, error);
}

bool
gate_set_provider(Gate *gate, Provider *provider, const char *script, GError **error)
{
    g_autoptr(BrainScript) parsed = NULL;
    ProviderSlot *slot;

    if (!check_provider(gate, provider, script, &parsed, error))
        return false;
    gate_remove_provider(gate, provider_name(provider));
    slot = g_new0(ProviderSlot, 1);
    slot->provider = provider_ref(provider);
    slot->script = g_steal_pointer(&parsed);
    slot->circuit = circuit_new();
    g_ptr_array_add(gate->slots, slot);
    g_ptr_array_sort(gate->slots, compare_slots);
    return true;
}

void
gate_remove_provider(Gate *gate, const char *name)
{
    ProviderSlot *slot = gate_find_provider(gate, name);

    if (slot != NULL)
        g_ptr_array_remove(gate->slots, slot);
}

void
gate_each_provider(Gate *gate, void (*func)(Provider *provider, void *data), void *data)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func((GDestroyNotify)provider_unref);

    for (guint i = 0; i < gate->slots->len; i++)
        g_ptr_array_add(all, provider_ref(((ProviderSlot *)gate->slots->pdata[i])->provider));
    for (guint i = 0; i < all->len; i++)
        func(all->pdata[i], data);
}

/* "provider/model" decides; then those that list the model, then those that take any, and of
 * these the dialect's default first. */
static ProviderSlot *
choose_listed(Gate *gate, Dialect dialect, const char *model, bool listed)
{
    ProviderSlot *found = NULL;

    for (guint i = 0; i < gate->slots->len; i++) {
        ProviderSlot *slot = gate->slots->pdata[i];
        const Provider *p = slot->provider;

        if (!provider_speaks(p, dialect) || provider_lists_models(p) != listed ||
            (model != NULL && !provider_has_model(p, model)))
            continue;
        if (provider_is_default(p, dialect))
            return slot;
        if (found == NULL)
            found = slot;
    }
    return found;
}

ProviderSlot *
gate_choose(Gate *gate, Dialect dialect, const char *model, const char **ret_model)
{
    const char *slash = model != NULL ? strchr(model, '/') : NULL;

    if (slash != NULL) {
        g_autofree char *name = g_strndup(model, (size_t)(slash - model));
        ProviderSlot *slot = gate_find_provider(gate, name);

        if (slot != NULL && provider_speaks(slot->provider, dialect) &&
            provider_has_model(slot->provider, slash + 1)) {
            *ret_model = slash + 1;
            return slot;
        }
    }
    *ret_model = model;
    ProviderSlot *slot = choose_listed(gate, dialect, model, true);
    /* Who asks for no model asks the default, whether it lists its models or not. */
    if (slot != NULL && (model != NULL || provider_is_default(slot->provider, dialect)))
        return slot;
    ProviderSlot *any = choose_listed(gate, dialect, model, false);
    return any != NULL ? any : slot;
}

/* ---- the boxes ---- */

bool
gate_owns(const char *path)
{
    return g_str_has_prefix(path, "/openai/") || g_str_has_prefix(path, "/anthropic/");
}

void
gate_handle(Gate *gate, HttpRequest *request, const GateCaller *caller)
{
    const char *message = NULL;
    Dialect dialect;
    Fault fault;
    const Route *route = route_find(request, &dialect, &fault, &message);
    const BoxLoad *load = g_hash_table_lookup(gate->loads, caller->box);

    if (route == NULL) {
        gate_respond_fault(request, dialect, fault, message);
        return;
    }
    if (gate->may_tell != NULL && !gate->may_tell(gate->ctx)) {
        gate_respond_fault(request, dialect, FAULT_BUSY,
                           "what was used cannot be written down at the moment, so no call is made");
        return;
    }
    if (load != NULL && load->streams >= GATE_STREAMS_PER_BOX) {
        g_autofree char *text = g_strdup_printf("this box has %u model calls under way, which is the most",
                                                load->streams);

        gate_respond_fault(request, dialect, FAULT_RATE, text);
        return;
    }
    exchange_start(exchange_new(gate, request, caller, route));
}

void
gate_forget_box(Gate *gate, const char *box)
{
    g_autoptr(GPtrArray) of_box = g_ptr_array_new_with_free_func((GDestroyNotify)exchange_unref);

    for (GList *l = gate->exchanges.head; l != NULL; l = l->next) {
        Exchange *x = l->data;

        if (strcmp(x->who.box, box) == 0)
            g_ptr_array_add(of_box, exchange_ref(x));
    }
    for (guint i = 0; i < of_box->len; i++) {
        Exchange *x = of_box->pdata[i];
        g_autoptr(HttpRequest) request = http_request_ref(x->request);

        exchange_end(x);
        http_request_cut(request);
    }
}
