/* SPDX-License-Identifier: Apache-2.0 */
#include "http-probe.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { WATCHDOG_S = 120 };

static void
on_head(HttpCall *call, int status, void *ctx)
{
    Probe *probe = ctx;

    g_assert_true(call == probe->call);
    g_assert_cmpuint(probe->chunks, ==, 0);
    probe->heads++;
    probe->status = status;
    if (probe->hook != NULL)
        probe->hook(probe, PROBE_HEAD);
}

static bool
on_data(HttpCall *call, const guint8 *bytes, size_t n, void *ctx)
{
    Probe *probe = ctx;

    g_assert_true(call == probe->call);
    g_assert_cmpuint(probe->heads, ==, 1);
    g_assert_cmpuint(n, >, 0);
    probe->chunks++;
    probe->got += n;
    if (!probe->discard)
        g_string_append_len(probe->body, (const char *)bytes, (gssize)n);
    if (probe->hook != NULL)
        probe->hook(probe, PROBE_DATA);
    return !probe->stop;
}

static void
on_done(HttpCall *call, int status, const GError *error, void *ctx)
{
    Probe *probe = ctx;

    g_assert_true(call == probe->call);
    g_assert_cmpint(status, ==, probe->heads > 0 || error == NULL ? probe->status : status);
    probe->status = status;
    probe->dones++;
    g_assert_cmpuint(probe->dones, ==, 1);
    probe->error = error != NULL ? g_error_copy(error) : NULL;
    if (probe->hook != NULL)
        probe->hook(probe, PROBE_DONE);
    probe->call = NULL;
}

void
probe_start(Probe *probe, const HttpCallSpec *spec)
{
    static const HttpCallHandler handler = {on_head, on_data, on_done};
    g_autoptr(GError) error = NULL;

    probe->call = http_client_call(probe->client, spec, &handler, probe, &error);
    g_assert_no_error(error);
    g_assert_nonnull(probe->call);
    g_assert_cmpuint(probe->heads + probe->dones, ==, 0);
}

void
probe_get(Probe *probe, const char *url)
{
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    spec.url = url;
    probe_start(probe, &spec);
}

void
probe_wait(Probe *probe)
{
    while (probe->dones == 0)
        g_main_context_iteration(NULL, TRUE);
}

void
probe_clear(Probe *probe)
{
    g_string_free(probe->body, TRUE);
    g_clear_error(&probe->error);
}

void
probe_check_error(const Probe *probe, ErrKind kind, const char *text)
{
    g_assert_error(probe->error, ERR_DOMAIN, (int)kind);
    if (text != NULL && strstr(probe->error->message, text) == NULL)
        g_error("'%s' does not say '%s'", probe->error->message, text);
}

void
probe_check_ok(const Probe *probe, int status, const char *body)
{
    g_assert_no_error(probe->error);
    g_assert_cmpint(probe->status, ==, status);
    g_assert_cmpuint(probe->heads, ==, 1);
    g_assert_cmpstr(probe->body->str, ==, body);
}

void
probe_start_watchdog(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    alarm(WATCHDOG_S);
}
