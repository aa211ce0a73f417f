/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "brain/gate-private.h"

enum { TEST_TOTAL_MS = 20 * 1000, TEST_BODY_MAX = 8 * 1024 * 1024 };

/* One call of gate_test_provider(). */
struct GateTest {
    Gate *gate;
    GList link;
    HttpCall *call;
    Provider *provider;
    Buf body;
    gint64 began_us;
    GateTestFunc done;
    void *data;
};

void
gate_test_free(GateTest *test)
{
    if (test->call != NULL)
        http_call_cancel(test->call);
    g_queue_unlink(&test->gate->tests, &test->link);
    provider_unref(test->provider);
    buf_clear(&test->body);
    g_free(test);
}

static Json *
make_result(GateTest *test)
{
    size_t n;
    const guint8 *bytes = buf_peek(&test->body, &n);
    g_autoptr(Json) answer = n > 0 ? json_decode_foreign(bytes, n, USAGE_VALUES_MAX, NULL, NULL) : NULL;
    gint64 ms = (clock_mono_us() - test->began_us) / 1000;

    return json_pack("{s:I, s:I}", "models", (json_int_t)json_array_size(json_object_get(answer, "data")),
                     "latency_ms", (json_int_t)ms);
}

static void
check_status(GateTest *test, int status, GError **error)
{
    const char *name = provider_name(test->provider);

    if (status == 401 || status == 403)
        err_set(error, ERR_DENIED, "the provider '%s' does not accept the key (status %d)", name, status);
    else if (status < 200 || status >= 300)
        err_set(error, ERR_UNAVAILABLE, "the provider '%s' answered with status %d", name, status);
}

static bool
on_data(HttpCall *call, const guint8 *bytes, size_t n, void *ctx)
{
    GateTest *test = ctx;

    /* A list beyond the bound is counted as empty: that it came is what matters. */
    if (!buf_put(&test->body, bytes, n))
        buf_clear(&test->body);
    return true;
}

static void
on_done(HttpCall *call, int status, const GError *error, void *ctx)
{
    GateTest *test = ctx;
    g_autoptr(GError) refusal = NULL;
    g_autoptr(Json) result = NULL;

    test->call = NULL;
    if (error == NULL)
        check_status(test, status, &refusal);
    if (error == NULL && refusal == NULL)
        result = make_result(test);
    test->done(result, error != NULL ? error : refusal, test->data);
    gate_test_free(test);
}

static bool
start(GateTest *test, GError **error)
{
    static const HttpCallHandler handler = {.data = on_data, .done = on_done};
    Dialect dialect = provider_speaks(test->provider, DIALECT_OPENAI) ? DIALECT_OPENAI : DIALECT_ANTHROPIC;
    g_autofree char *url = g_strconcat(provider_base_url(test->provider), "/models", NULL);
    char **auth = provider_auth_headers(test->provider, dialect);
    const char *headers[] = {"anthropic-version: 2023-06-01", auth[0], NULL};
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    spec.url = url;
    spec.headers = dialect == DIALECT_ANTHROPIC ? headers : headers + 1;
    spec.total_ms = TEST_TOTAL_MS;
    test->call = http_client_call(test->gate->client, &spec, &handler, test, error);
    provider_wipe(auth);
    return test->call != NULL;
}

void
gate_test_provider(Gate *gate, const char *name, GateTestFunc done, void *data)
{
    ProviderSlot *slot = gate_find_provider(gate, name);
    g_autoptr(GError) error = NULL;

    if (slot == NULL) {
        err_set(&error, ERR_NOT_FOUND, "there is no provider '%s'", name);
        done(NULL, error, data);
        return;
    }
    if (provider_kind(slot->provider) == PROVIDER_SCRIPT) {
        g_autoptr(Json) result = json_pack("{s:s}", "brain", "script");

        done(result, NULL, data);
        return;
    }
    GateTest *test = g_new0(GateTest, 1);
    *test = (GateTest){.gate = gate,
                       .provider = provider_ref(slot->provider),
                       .began_us = clock_mono_us(),
                       .done = done,
                       .data = data};
    test->link.data = test;
    buf_init(&test->body, TEST_BODY_MAX);
    g_queue_push_tail_link(&gate->tests, &test->link);
    if (start(test, &error))
        return;
    done(NULL, error, data);
    gate_test_free(test);
}
