/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping and going on, and everything a callback may do. */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "http-probe.h"
#include "http-script.h"

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define ENDLESS "HTTP/1.1 200 OK\r\n\r\n"

enum { STREAM_BYTES = 256 << 20, RSS_GROWTH_MAX = 24 << 20 };

const char *__asan_default_options(void);

/* What ASan keeps of freed memory is not ours. */
const char *
__asan_default_options(void)
{
    return "quarantine_size_mb=4";
}

static size_t
rss_bytes(void)
{
    g_autofree char *text = NULL;
    size_t pages = 0;

    g_assert_true(g_file_get_contents("/proc/self/statm", &text, NULL, NULL));
    g_assert_cmpint(sscanf(text, "%*u %zu", &pages), ==, 1);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

typedef struct Stream {
    guint64 checked, stop_at;
    size_t rss_first, rss_max;
} Stream;

static void
check_stream(Probe *probe, ProbeEvent event)
{
    Stream *stream = probe->hook_data;

    if (event != PROBE_DATA)
        return;
    g_assert_true(
        script_pattern_matches((const guint8 *)probe->body->str, probe->body->len, stream->checked));
    stream->checked += probe->body->len;
    g_string_truncate(probe->body, 0);
    probe->stop = stream->checked >= stream->stop_at;
    size_t rss = rss_bytes();
    if (stream->rss_first == 0)
        stream->rss_first = rss;
    stream->rss_max = MAX(stream->rss_max, rss);
}

/* Runs the loop dry: a stopped call must not keep it turning. */
static void
check_idle(void)
{
    for (guint turns = 0; g_main_context_iteration(NULL, FALSE); turns++)
        g_assert_cmpuint(turns, <, 100);
}

static void
test_stream(void)
{
    static const ScriptStep steps[] = {
        {SCRIPT_REQUEST}, {SCRIPT_SEND, ENDLESS}, {SCRIPT_FILL, NULL, STREAM_BYTES}, {SCRIPT_CLOSE}};
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve_one(steps);
    g_autofree char *url = script_url(script, "/");
    g_auto(Probe) probe = probe_init(client);
    Stream stream = {.stop_at = 1 << 20};
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    probe.hook = check_stream;
    probe.hook_data = &stream;
    spec.url = url;
    spec.stall_ms = 10 * 1000;
    probe_start(&probe, &spec);
    for (guint stops = 0; stops < 4; stops++) {
        while (!probe.stop)
            g_main_context_iteration(NULL, TRUE);
        guint64 before = stream.checked;
        while (!script_is_stuck(script) && script_filled(script) < STREAM_BYTES)
            g_main_context_iteration(NULL, TRUE);
        check_idle();
        g_assert_cmpuint(stream.checked, ==, before);
        g_assert_cmpuint(script_filled(script), <, STREAM_BYTES);
        stream.stop_at = stops < 3 ? stream.checked + (7 << 20) : G_MAXUINT64;
        probe.stop = false;
        http_call_resume(probe.call);
        g_assert_cmpuint(stream.checked, ==, before);
    }
    probe_wait(&probe);
    g_assert_no_error(probe.error);
    g_assert_cmpuint(stream.checked, ==, STREAM_BYTES);
    g_assert_cmpuint(stream.rss_max - stream.rss_first, <, RSS_GROWTH_MAX);
}

/* Stopped at the last byte: the end is not told before the caller goes on. */
static void
test_end_waits(void)
{
    static const ScriptStep steps[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, HELLO}, {SCRIPT_CLOSE}};
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve_one(steps);
    g_autofree char *url = script_url(script, "/");
    g_auto(Probe) probe = probe_init(client);

    probe.stop = true;
    probe_get(&probe, url);
    while (probe.chunks == 0)
        g_main_context_iteration(NULL, TRUE);
    check_idle();
    g_assert_cmpuint(probe.dones, ==, 0);
    http_call_resume(probe.call);
    g_assert_cmpuint(probe.dones, ==, 0);
    probe_wait(&probe);
    probe_check_ok(&probe, 200, "hello");
}

static void
resume_in_data(Probe *probe, ProbeEvent event)
{
    http_call_resume(probe->call);
}

static void
test_resume_in_callbacks(void)
{
    static const ScriptStep steps[] = {
        {SCRIPT_REQUEST}, {SCRIPT_SEND, ENDLESS}, {SCRIPT_FILL, NULL, 4 << 20}, {SCRIPT_CLOSE}};
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve_one(steps);
    g_autofree char *url = script_url(script, "/");
    g_auto(Probe) probe = probe_init(client);

    probe.hook = resume_in_data;
    probe.stop = true;
    probe_get(&probe, url);
    probe_wait(&probe);
    g_assert_no_error(probe.error);
    g_assert_true(script_pattern_matches((const guint8 *)probe.body->str, probe.body->len, 0));
    g_assert_cmpuint(probe.got, ==, 4 << 20);
}

static gboolean
on_timeout_flag(gpointer data)
{
    *(bool *)data = true;
    return G_SOURCE_REMOVE;
}

/* Silence the caller asked for is no stall; the total time runs on. */
static void
test_deadlines_while_stopped(void)
{
    static const ScriptStep steps[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, ENDLESS "hello"}, {SCRIPT_HOLD}};
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve_one(steps);
    g_autofree char *url = script_url(script, "/");
    g_auto(Probe) stalled = probe_init(client);
    g_auto(Probe) total = probe_init(client);
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;
    bool is_later = false;

    spec.url = url;
    spec.stall_ms = 40;
    stalled.stop = total.stop = true;
    probe_start(&stalled, &spec);
    while (stalled.chunks == 0)
        g_main_context_iteration(NULL, TRUE);
    g_timeout_add(120, on_timeout_flag, &is_later);
    while (!is_later)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(stalled.dones, ==, 0);
    gint64 resumed_us = clock_mono_us();
    http_call_resume(stalled.call);
    probe_wait(&stalled);
    probe_check_error(&stalled, ERR_TIMEOUT, "the answer stalled for 40 ms");
    g_assert_cmpint(clock_mono_us() - resumed_us, >=, 40 * 1000);

    spec.total_ms = 80;
    probe_start(&total, &spec);
    probe_wait(&total);
    probe_check_error(&total, ERR_TIMEOUT, "not finished within 80 ms");
}

/* A table of what a callback may do, tried in each callback. */
typedef struct Deed Deed;
struct Deed {
    const char *name;
    void (*act)(Probe *probe);
    bool ends_call;  /* no further callback for the acting call */
    bool ends_other; /* nor for the other */
};

typedef struct Scene {
    const Deed *deed;
    ProbeEvent when;
    HttpClient *client; /* NULL: freed */
    Probe acting, other, third;
    char *url;
    bool has_acted;
} Scene;

static void
cancel_self(Probe *probe)
{
    http_call_cancel(probe->call);
}

static void
cancel_other(Probe *probe)
{
    Scene *scene = probe->hook_data;

    http_call_cancel(scene->other.call);
}

static void
free_client(Probe *probe)
{
    Scene *scene = probe->hook_data;

    http_client_free(g_steal_pointer(&scene->client));
}

static void
start_third(Probe *probe)
{
    Scene *scene = probe->hook_data;

    probe_get(&scene->third, scene->url);
}

static void
run_loop_for_third(Probe *probe)
{
    Scene *scene = probe->hook_data;

    start_third(probe);
    probe_wait(&scene->third);
}

static void
run_loop_and_cancel(Probe *probe)
{
    run_loop_for_third(probe);
    cancel_self(probe);
}

static void
free_in_inner_loop(Probe *probe, ProbeEvent event)
{
    if (event == PROBE_DONE)
        free_client(probe);
}

static void
run_loop_that_frees(Probe *probe)
{
    Scene *scene = probe->hook_data;

    scene->third.hook = free_in_inner_loop;
    scene->third.hook_data = scene;
    run_loop_for_third(probe);
}

static const Deed deeds[] = {
    {"nothing", NULL, false, false},
    {"cancel itself", cancel_self, true, false},
    {"cancel the other", cancel_other, false, true},
    {"free the client", free_client, true, true},
    {"start a call", start_third, false, false},
    {"run the loop", run_loop_for_third, false, false},
    {"run the loop, then cancel", run_loop_and_cancel, true, false},
    {"run the loop, which frees the client", run_loop_that_frees, true, true},
};

static void
act_once(Probe *probe, ProbeEvent event)
{
    Scene *scene = probe->hook_data;

    if (event != scene->when || scene->has_acted)
        return;
    scene->has_acted = true;
    if (scene->deed->act != NULL)
        scene->deed->act(probe);
}

static void
check_scene(Script *script, const Deed *deed, ProbeEvent when)
{
    Scene scene = {.deed = deed, .when = when, .client = http_client_new(NULL)};
    g_autofree char *slow_url = script_url(script, "/slow");

    g_test_message("%s at event %d", deed->name, when);
    scene.url = script_url(script, "/");
    scene.acting = scene.other = scene.third = (Probe)probe_init(scene.client);
    scene.other.body = g_string_new(NULL);
    scene.third.body = g_string_new(NULL);
    scene.acting.hook = act_once;
    scene.acting.hook_data = &scene;
    probe_get(&scene.other, slow_url);
    probe_get(&scene.acting, scene.url);
    while (!scene.has_acted)
        g_main_context_iteration(NULL, TRUE);
    check_idle();

    if (scene.client != NULL && !deed->ends_call)
        probe_wait(&scene.acting);
    if (scene.third.call != NULL)
        probe_wait(&scene.third);
    g_assert_cmpuint(scene.acting.dones, ==, deed->ends_call && when != PROBE_DONE ? 0 : 1);
    g_assert_cmpuint(scene.other.dones, ==, 0);
    if (scene.client != NULL && !deed->ends_other)
        http_call_cancel(scene.other.call);
    http_client_free(scene.client);
    probe_clear(&scene.acting);
    probe_clear(&scene.other);
    probe_clear(&scene.third);
    g_free(scene.url);
}

static void
test_deeds(void)
{
    /* The first connection is the other call's, which is never answered. */
    static const ScriptStep slow[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, ENDLESS}, {SCRIPT_HOLD}};
    static const ScriptStep hello[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, HELLO}, {SCRIPT_AGAIN}};
    static const ScriptStep *const scripts[] = {slow, hello};

    for (size_t i = 0; i < G_N_ELEMENTS(deeds); i++) {
        for (ProbeEvent when = PROBE_HEAD; when <= PROBE_DONE; when++) {
            g_autoptr(Script) script = script_serve(scripts, 2, NULL);

            check_scene(script, &deeds[i], when);
        }
    }
}

typedef struct Inner {
    const char *url;
    guint depth, runs;
} Inner;

static void
run_loop_in_data(Probe *probe, ProbeEvent event)
{
    Inner *inner = probe->hook_data;

    if (event != PROBE_DATA || ++inner->runs > 20)
        return;
    g_assert_cmpuint(inner->depth++, ==, 0);
    g_auto(Probe) third = probe_init(probe->client);
    probe_get(&third, inner->url);
    probe_wait(&third);
    inner->depth--;
}

/* What arrives while a callback runs the loop waits for that callback to return. */
static void
test_no_callback_inside_another(void)
{
    static const ScriptStep fill[] = {
        {SCRIPT_REQUEST}, {SCRIPT_SEND, ENDLESS}, {SCRIPT_FILL, NULL, 4 << 20}, {SCRIPT_CLOSE}};
    static const ScriptStep hello[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, HELLO}, {SCRIPT_AGAIN}};
    static const ScriptStep *const scripts[] = {fill, hello};
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve(scripts, 2, NULL);
    g_autofree char *url = script_url(script, "/");
    g_auto(Probe) probe = probe_init(client);
    Inner inner = {.url = url};

    probe.hook = run_loop_in_data;
    probe.hook_data = &inner;
    probe_get(&probe, url);
    probe_wait(&probe);
    g_assert_no_error(probe.error);
    g_assert_cmpuint(probe.got, ==, 4 << 20);
    g_assert_true(script_pattern_matches((const guint8 *)probe.body->str, probe.body->len, 0));
}

/* Freed with a call in each stage: nothing is called, nothing is left (ASan looks). */
static void
test_free_under_way(void)
{
    static const ScriptStep silent[] = {{SCRIPT_REQUEST}, {SCRIPT_HOLD}};
    static const ScriptStep stuck[] = {
        {SCRIPT_REQUEST}, {SCRIPT_SEND, ENDLESS}, {SCRIPT_FILL, NULL, STREAM_BYTES}, {SCRIPT_CLOSE}};
    static const ScriptStep *const scripts[] = {stuck, silent};
    g_autoptr(Script) script = script_serve(scripts, 2, NULL);
    g_autofree char *url = script_url(script, "/");
    HttpClient *client = http_client_new(NULL);
    g_auto(Probe) stopped = probe_init(client);
    g_auto(Probe) waiting = probe_init(client);
    g_auto(Probe) fresh = probe_init(client);

    stopped.stop = true;
    probe_get(&stopped, url);
    while (!script_is_stuck(script))
        g_main_context_iteration(NULL, TRUE);
    probe_get(&waiting, url);
    while (script_accepts(script) < 2)
        g_main_context_iteration(NULL, FALSE);
    probe_get(&fresh, url);
    guint before = stopped.chunks;
    http_call_resume(stopped.call);
    http_client_free(client);
    check_idle();
    g_assert_cmpuint(stopped.chunks, ==, before);
    g_assert_cmpuint(stopped.dones + waiting.dones + fresh.dones + waiting.heads, ==, 0);
}

static void
test_other_context(void)
{
    static const ScriptStep hello[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, HELLO}, {SCRIPT_CLOSE}};
    g_autoptr(GMainContext) context = g_main_context_new();
    g_autoptr(HttpClient) client = http_client_new(context);
    g_autoptr(Script) script = script_serve_one(hello);
    g_autofree char *url = script_url(script, "/");
    g_auto(Probe) probe = probe_init(client);

    probe_get(&probe, url);
    check_idle();
    g_assert_cmpuint(probe.dones, ==, 0);
    while (probe.dones == 0)
        g_main_context_iteration(context, TRUE);
    probe_check_ok(&probe, 200, "hello");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    probe_start_watchdog();
    g_test_add_func("/http/client/flow/stream", test_stream);
    g_test_add_func("/http/client/flow/end-waits", test_end_waits);
    g_test_add_func("/http/client/flow/resume-in-callbacks", test_resume_in_callbacks);
    g_test_add_func("/http/client/flow/deadlines-while-stopped", test_deadlines_while_stopped);
    g_test_add_func("/http/client/flow/deeds", test_deeds);
    g_test_add_func("/http/client/flow/no-callback-inside-another", test_no_callback_inside_another);
    g_test_add_func("/http/client/flow/free-under-way", test_free_under_way);
    g_test_add_func("/http/client/flow/other-context", test_other_context);
    return g_test_run();
}
