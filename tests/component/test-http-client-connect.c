/* SPDX-License-Identifier: Apache-2.0 */
/* Getting a connection and keeping it. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "http-probe.h"
#include "http-script.h"
#include "http/limits.h"

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

enum { SHORT_MS = 60, LONG_MS = 60 * 1000 };

static const ScriptStep hello_forever[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, HELLO}, {SCRIPT_AGAIN}};

static struct {
    GMutex lock;
    GCond released;
    bool is_released;
    guint waiting;
} slow_lookup;

/* Stands before the C library's: no test asks a real name server, and one name can be made to
 * take as long as a test likes. */
int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    if (strcmp(node, "here.invalid") == 0) {
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
        return real("127.0.0.1", service, hints, ret);
    }
    if (strcmp(node, "slow.invalid") == 0) {
        g_mutex_lock(&slow_lookup.lock);
        slow_lookup.waiting++;
        g_main_context_wakeup(NULL);
        while (!slow_lookup.is_released)
            g_cond_wait(&slow_lookup.released, &slow_lookup.lock);
        slow_lookup.waiting--;
        g_cond_signal(&slow_lookup.released);
        g_mutex_unlock(&slow_lookup.lock);
    }
    return EAI_NONAME;
}

static void
hold_lookups(void)
{
    g_mutex_lock(&slow_lookup.lock);
    slow_lookup.is_released = false;
    g_mutex_unlock(&slow_lookup.lock);
}

static void
release_lookups(void)
{
    g_mutex_lock(&slow_lookup.lock);
    slow_lookup.is_released = true;
    g_cond_broadcast(&slow_lookup.released);
    while (slow_lookup.waiting > 0)
        g_cond_wait(&slow_lookup.released, &slow_lookup.lock);
    g_mutex_unlock(&slow_lookup.lock);
}

static void
wait_for_lookup(void)
{
    for (bool waits = false; !waits;) {
        g_mutex_lock(&slow_lookup.lock);
        waits = slow_lookup.waiting > 0;
        g_mutex_unlock(&slow_lookup.lock);
        if (!waits)
            g_main_context_iteration(NULL, TRUE);
    }
}

static int
listen_silently(int backlog, guint16 *ret_port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    g_assert_no_errno(bind(fd, (struct sockaddr *)&in, sizeof in));
    g_assert_no_errno(getsockname(fd, (struct sockaddr *)&in, &len));
    g_assert_no_errno(listen(fd, backlog));
    *ret_port = ntohs(in.sin_port);
    return fd;
}

static void
test_names(void)
{
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve_one(hello_forever);
    g_autofree char *numeric = script_url(script, "/");
    g_autofree char *url = g_strdup_printf("http://here.invalid:%s", strrchr(numeric, ':') + 1);
    g_auto(Probe) found = probe_init(client);
    g_auto(Probe) missing = probe_init(client);

    probe_get(&found, url);
    probe_wait(&found);
    probe_check_ok(&found, 200, "hello");

    probe_get(&missing, "http://nowhere.invalid/");
    probe_wait(&missing);
    probe_check_error(&missing, ERR_UNAVAILABLE, "nowhere.invalid: the name cannot be resolved");
}

/* Neither the end of a call nor of the client may wait for a look-up that hangs. */
static void
test_slow_lookup(void)
{
    g_autoptr(HttpClient) client = http_client_new(NULL);
    HttpClient *second = http_client_new(NULL);
    g_auto(Probe) timed = probe_init(client);
    g_auto(Probe) cancelled = probe_init(client);
    g_auto(Probe) freed = probe_init(second);
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    hold_lookups();
    probe_get(&freed, "http://slow.invalid/");
    wait_for_lookup();
    http_client_free(second);

    probe_get(&cancelled, "http://slow.invalid/");
    wait_for_lookup();
    http_call_cancel(cancelled.call);

    spec.url = "http://slow.invalid:81/";
    spec.connect_ms = SHORT_MS;
    probe_start(&timed, &spec);
    probe_wait(&timed);
    probe_check_error(&timed, ERR_TIMEOUT, "slow.invalid:81: no connection within 60 ms");
    g_assert_cmpuint(cancelled.dones + freed.dones, ==, 0);
    release_lookups();
}

static void
test_refused(void)
{
    g_autoptr(HttpClient) client = http_client_new(NULL);
    guint16 port;
    autofd fd = listen_silently(1, &port);
    g_autofree char *url = g_strdup_printf("http://127.0.0.1:%u/", port);
    g_autofree char *message = g_strdup_printf("127.0.0.1:%u: cannot connect: Connection refused", port);
    g_auto(Probe) refused = probe_init(client);
    g_auto(Probe) no_socket = probe_init(client);
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    close(g_steal_fd(&fd));
    probe_get(&refused, url);
    probe_wait(&refused);
    probe_check_error(&refused, ERR_UNAVAILABLE, message);

    spec.url = "http://localhost/";
    spec.unix_socket = "/nowhere/at/all";
    probe_start(&no_socket, &spec);
    probe_wait(&no_socket);
    probe_check_error(&no_socket, ERR_UNAVAILABLE, "/nowhere/at/all: cannot connect");
}

static void
test_fence(void)
{
    static const struct {
        HttpReach reach;
        const char *host;
        const char *why; /* NULL: answers */
    } cases[] = {
        {HTTP_REACH_ANY, "127.0.0.1", NULL},
        {HTTP_REACH_LOOPBACK, "127.0.0.1", NULL},
        {HTTP_REACH_LOOPBACK, "here.invalid", NULL},
        {HTTP_REACH_PUBLIC, "127.0.0.1", "loopback"},
        {HTTP_REACH_PUBLIC, "here.invalid", "loopback"}, /* a name tells nothing */
        {HTTP_REACH_PUBLIC, "0x7f.1", "loopback"},
        {HTTP_REACH_PUBLIC, "2130706433", "loopback"},
        {HTTP_REACH_PUBLIC, "[::1]", "loopback"},
        {HTTP_REACH_LOOPBACK, "0.0.0.0", "this host"},
        {HTTP_REACH_LOOPBACK, "10.1.2.3", "a private network"},
        {HTTP_REACH_LOOPBACK, "[::ffff:127.0.0.1]", "loopback"},
        {HTTP_REACH_PUBLIC, "169.254.169.254", "a metadata service"},
    };
    g_autoptr(Script) script = script_serve_one(hello_forever);
    g_autofree char *served = script_url(script, "/");
    const char *port = strrchr(served, ':');

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(HttpClient) client = http_client_new(NULL);
        g_auto(Probe) probe = probe_init(client);
        g_autofree char *url = g_strdup_printf("http://%s%s", cases[i].host, port);

        http_client_fence(client, cases[i].reach);
        probe_get(&probe, url);
        probe_wait(&probe);
        if (cases[i].why == NULL)
            probe_check_ok(&probe, 200, "hello");
        else
            probe_check_error(&probe, ERR_DENIED, cases[i].why);
    }
    g_assert_cmpuint(script_accepts(script), ==, 3);
}

static void
test_not_tls(void)
{
    static const ScriptStep steps[] = {{SCRIPT_SEND, HELLO}, {SCRIPT_HOLD}};
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve_one(steps);
    g_autofree char *plain = script_url(script, "/");
    g_autofree char *url = g_strdup_printf("https%s", plain + strlen("http"));
    g_auto(Probe) probe = probe_init(client);

    probe_get(&probe, url);
    probe_wait(&probe);
    probe_check_error(&probe, ERR_UNAVAILABLE, "no connection");
}

static void
check_connect_stall(HttpClient *client, const char *scheme, guint16 port)
{
    g_autofree char *url = g_strdup_printf("%s://127.0.0.1:%u/", scheme, port);
    g_auto(Probe) probe = probe_init(client);
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    g_test_message("%s", url);
    spec.url = url;
    spec.connect_ms = SHORT_MS;
    spec.first_byte_ms = LONG_MS;
    probe_start(&probe, &spec);
    probe_wait(&probe);
    probe_check_error(&probe, ERR_TIMEOUT, "no connection within 60 ms");
}

/* A full backlog drops the SYN; a listener nobody accepts from never answers a TLS hello. */
static void
test_connect_stalls(void)
{
    g_autoptr(HttpClient) client = http_client_new(NULL);
    guint16 full_port, mute_port;
    G_GNUC_UNUSED autofd full = listen_silently(0, &full_port);
    G_GNUC_UNUSED autofd mute = listen_silently(8, &mute_port);
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(full_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fillers[4];

    for (size_t i = 0; i < G_N_ELEMENTS(fillers); i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(fillers[i], (struct sockaddr *)&in, sizeof in); /* EINPROGRESS is the point */
    }
    check_connect_stall(client, "http", full_port);
    check_connect_stall(client, "https", mute_port);
    for (size_t i = 0; i < G_N_ELEMENTS(fillers); i++)
        close(fillers[i]);
}

static void
test_unix_socket(void)
{
    enum { LENGTH = 4 << 20, FIRST_BYTE_MS = 600 };
    static const ScriptStep steps[] = {
        {SCRIPT_HEAD}, {SCRIPT_SIP, NULL, LENGTH}, {SCRIPT_SEND, HELLO}, {SCRIPT_HOLD}};
    static const ScriptStep *const scripts[] = {steps};
    g_autofree char *dir = g_dir_make_tmp("coop-client-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "s", NULL);
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve(scripts, 1, path);
    g_autofree guint8 *body = g_malloc(LENGTH);
    g_auto(Probe) probe = probe_init(client);
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;
    gint64 start = clock_mono_us();

    script_pattern_fill(body, LENGTH, 0);
    spec.url = "http://service/path";
    spec.unix_socket = path;
    spec.method = "POST";
    spec.body = body;
    spec.body_len = LENGTH;
    /* The server takes longer than this, but it takes something all the time. */
    spec.first_byte_ms = FIRST_BYTE_MS;
    probe_start(&probe, &spec);
    probe_wait(&probe);
    probe_check_ok(&probe, 200, "hello");
    g_assert_cmpint(clock_mono_us() - start, >, FIRST_BYTE_MS * 1000);
    g_assert_true(script_body_is_pattern(script));
    g_autofree char *head = script_dup_head(script);
    g_assert_nonnull(strstr(head, "\r\nHost: service\r\n"));
    g_unlink(path);
    g_rmdir(dir);
}

static void
get_hello(HttpClient *client, const char *url, const char *method)
{
    g_auto(Probe) probe = probe_init(client);
    HttpCallSpec spec = HTTP_CALL_SPEC_INIT;

    spec.url = url;
    spec.method = method;
    if (strcmp(method, "POST") == 0) {
        spec.body = "body";
        spec.body_len = 4;
    }
    probe_start(&probe, &spec);
    probe_wait(&probe);
    probe_check_ok(&probe, 200, "hello");
}

static void
test_keep_alive(void)
{
    static const ScriptStep one[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, HELLO}, {SCRIPT_CLOSE}};
    static const ScriptStep swallow[] = {
        {SCRIPT_REQUEST}, {SCRIPT_SEND, HELLO}, {SCRIPT_REQUEST}, {SCRIPT_CLOSE}};
    static const ScriptStep *const closing[] = {one, hello_forever};
    static const ScriptStep *const swallowing[] = {swallow, hello_forever};
    static const struct {
        const char *name;
        const ScriptStep *const *scripts;
        guint accepts;
    } cases[] = {
        {"kept", &closing[1], 1},
        {"closed when idle", closing, 2},
        {"closed on the second request", swallowing, 2},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(HttpClient) client = http_client_new(NULL);
        g_autoptr(Script) script = script_serve(cases[i].scripts, cases[i].accepts, NULL);
        g_autofree char *url = script_url(script, "/");

        g_test_message("%s", cases[i].name);
        get_hello(client, url, "GET");
        get_hello(client, url, "POST");
        g_assert_cmpuint(script_body_len(script), ==, 4);
        get_hello(client, url, "GET");
        get_hello(client, url, "GET");
        g_assert_cmpuint(script_accepts(script), ==, cases[i].accepts);
    }
}

static guint
accept_all(int listener, GArray *conns)
{
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
        g_array_append_val(conns, fd);
    return conns->len;
}

static void
answer_all(const GArray *conns)
{
    char request[4096];

    for (guint i = 0; i < conns->len; i++) {
        int fd = g_array_index(conns, int, i);

        if (recv(fd, request, sizeof request, 0) > 0)
            g_assert_cmpint(send(fd, HELLO, strlen(HELLO), MSG_NOSIGNAL), ==, strlen(HELLO));
    }
}

static guint
count_done(const Probe *probes, guint n)
{
    guint done = 0;

    for (guint i = 0; i < n; i++)
        done += probes[i].dones;
    return done;
}

/* Calls past the bound wait for a place, and get it. */
static void
test_pool_bound(void)
{
    enum { CALLS = HTTP_CLIENT_PER_HOST_MAX + 4 };
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(GArray) conns = g_array_new(FALSE, FALSE, sizeof(int));
    guint16 port;
    autofd listener = listen_silently(CALLS, &port);
    g_autofree char *url = g_strdup_printf("http://127.0.0.1:%u/", port);
    g_autofree Probe *probes = g_new0(Probe, CALLS);

    for (guint i = 0; i < CALLS; i++) {
        probes[i] = (Probe)probe_init(client);
        probe_get(&probes[i], url);
    }
    while (accept_all(listener, conns) < HTTP_CLIENT_PER_HOST_MAX)
        g_main_context_iteration(NULL, TRUE);
    while (g_main_context_iteration(NULL, FALSE))
        continue;
    g_assert_cmpuint(accept_all(listener, conns), ==, HTTP_CLIENT_PER_HOST_MAX);

    check_connect_stall(client, "http", port);
    while (count_done(probes, CALLS) < CALLS) {
        (void)accept_all(listener, conns);
        answer_all(conns);
        g_main_context_iteration(NULL, FALSE);
    }
    for (guint i = 0; i < CALLS; i++) {
        probe_check_ok(&probes[i], 200, "hello");
        probe_clear(&probes[i]);
    }
    for (guint i = 0; i < conns->len; i++)
        close(g_array_index(conns, int, i));
}

/* A child that another part starts meanwhile must not inherit a connection. */
static void
test_close_on_exec(void)
{
    g_autoptr(HttpClient) client = http_client_new(NULL);
    guint16 port;
    autofd listener = listen_silently(8, &port);
    g_autofree char *url = g_strdup_printf("http://127.0.0.1:%u/", port);
    g_auto(Probe) probe = probe_init(client);
    int conn, seen = 0;

    probe_get(&probe, url);
    while ((conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
        g_main_context_iteration(NULL, TRUE);
    for (int fd = 0; fd < 256; fd++) {
        struct sockaddr_in in;
        socklen_t len = sizeof in;

        if (getpeername(fd, (struct sockaddr *)&in, &len) == 0 && in.sin_port == htons(port)) {
            g_assert_cmpint(fcntl(fd, F_GETFD), ==, FD_CLOEXEC);
            seen++;
        }
    }
    g_assert_cmpint(seen, ==, 1);
    close(conn);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    probe_start_watchdog();
    g_test_add_func("/http/client/connect/names", test_names);
    g_test_add_func("/http/client/connect/slow-lookup", test_slow_lookup);
    g_test_add_func("/http/client/connect/refused", test_refused);
    g_test_add_func("/http/client/connect/fence", test_fence);
    g_test_add_func("/http/client/connect/not-tls", test_not_tls);
    g_test_add_func("/http/client/connect/stalls", test_connect_stalls);
    g_test_add_func("/http/client/connect/unix-socket", test_unix_socket);
    g_test_add_func("/http/client/connect/keep-alive", test_keep_alive);
    g_test_add_func("/http/client/connect/pool-bound", test_pool_bound);
    g_test_add_func("/http/client/connect/close-on-exec", test_close_on_exec);
    return g_test_run();
}
