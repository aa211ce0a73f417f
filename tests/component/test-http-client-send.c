/* SPDX-License-Identifier: Apache-2.0 */
/* What goes out: request heads to the byte, bodies, and what is refused before. */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "http-probe.h"
#include "http-script.h"
#include "http/limits.h"

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static const ScriptStep hello_forever[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, HELLO}, {SCRIPT_AGAIN}};

static const char *const some_headers[] = {"X-One: 1", "X-Empty:", "X-Blank:  ", "x-two:2", NULL};
static const char *const expect_header[] = {"expect: 100-continue", NULL};
static const char *const host_header[] = {"Host: elsewhere", "User-Agent: coop", "Accept: text/plain", NULL};

static const struct {
    const char *name;
    const char *target;
    HttpCallSpec spec;
    const char *head; /* @ stands for the address */
} heads[] = {
    {"plain",
     "/a/../b?x=1#part",
     {.body_fd = -1},
     "GET /a/../b?x=1 HTTP/1.1\r\nHost: @\r\nAccept: */*\r\n\r\n"},
    {"delete",
     "",
     {.method = "DELETE", .body_fd = -1},
     "DELETE / HTTP/1.1\r\nHost: @\r\nAccept: */*\r\n\r\n"},
    {"headers",
     "/",
     {.headers = some_headers, .body_fd = -1},
     "GET / HTTP/1.1\r\nHost: @\r\nAccept: */*\r\nX-One: "
     "1\r\nX-Empty:\r\nX-Blank:\r\nx-two:2\r\n\r\n"},
    {"own headers in place of curl's",
     "/",
     {.headers = host_header, .body_fd = -1},
     "GET / HTTP/1.1\r\nHost: elsewhere\r\nUser-Agent: coop\r\nAccept: text/plain\r\n\r\n"},
    {"body",
     "/",
     {.method = "POST", .body = "{}", .body_len = 2, .body_fd = -1},
     "POST / HTTP/1.1\r\nHost: @\r\nAccept: */*\r\nContent-Length: 2\r\n\r\n"},
    {"no body, but a length",
     "/",
     {.method = "POST", .body_fd = -1},
     "POST / HTTP/1.1\r\nHost: @\r\nAccept: */*\r\nContent-Length: 0\r\n\r\n"},
    {"empty body",
     "/",
     {.method = "PUT", .body = "", .body_fd = -1},
     "PUT / HTTP/1.1\r\nHost: @\r\nAccept: */*\r\nContent-Length: 0\r\n\r\n"},
    {"body of a GET",
     "/",
     {.body = "abc", .body_len = 3, .body_fd = -1},
     "GET / HTTP/1.1\r\nHost: @\r\nAccept: */*\r\nContent-Length: 3\r\n\r\n"},
    {"expect",
     "/",
     {.method = "PUT", .headers = expect_header, .body = "abc", .body_len = 3, .body_fd = -1},
     "PUT / HTTP/1.1\r\nHost: @\r\nAccept: */*\r\nexpect: 100-continue\r\nContent-Length: "
     "3\r\n\r\n"},
};

static void
test_heads(void)
{
    static const ScriptStep steps[] = {{SCRIPT_HEAD}, {SCRIPT_SEND, HELLO}, {SCRIPT_CLOSE}};

    for (size_t i = 0; i < G_N_ELEMENTS(heads); i++) {
        g_autoptr(HttpClient) client = http_client_new(NULL);
        g_autoptr(Script) script = script_serve_one(steps);
        g_autofree char *url = script_url(script, heads[i].target);
        g_auto(Probe) probe = probe_init(client);
        g_autoptr(GString) want = g_string_new(heads[i].head);
        g_autofree char *base = script_url(script, "");
        HttpCallSpec spec = heads[i].spec;

        g_test_message("%s", heads[i].name);
        g_string_replace(want, "@", base + strlen("http://"), 0);
        spec.url = url;
        probe_start(&probe, &spec);
        probe_wait(&probe);
        g_autofree char *head = script_dup_head(script);
        g_assert_cmpstr(head, ==, want->str);
    }
}

static int
make_file(guint64 length)
{
    int fd = memfd_create("body", MFD_CLOEXEC);
    g_autofree guint8 *bytes = g_malloc(length + 1);

    script_pattern_fill(bytes, length, 0);
    g_assert_true(io_write_all(fd, bytes, length));
    return fd;
}

static void
test_bodies(void)
{
    static const guint64 lengths[] = {0, 1, 16384, 65536, 65537, 32 << 20};
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve_one(hello_forever);
    g_autofree char *url = script_url(script, "/");
    g_autofree guint8 *bytes = g_malloc(32 << 20);

    script_pattern_fill(bytes, 32 << 20, 0);
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(lengths); i++) {
        guint64 length = lengths[i / 2];
        bool from_file = i % 2 == 1;
        autofd fd = from_file ? make_file(length) : -1;
        g_auto(Probe) probe = probe_init(client);
        HttpCallSpec spec = {.method = "PUT", .url = url, .body_fd = fd};

        g_test_message("%" G_GUINT64_FORMAT " bytes from %s", length, from_file ? "a file" : "memory");
        spec.body = from_file ? NULL : bytes;
        spec.body_len = from_file ? 0 : length;
        probe_start(&probe, &spec);
        /* The caller's descriptor is its own again. */
        close(g_steal_fd(&fd));
        probe_wait(&probe);
        probe_check_ok(&probe, 200, "hello");
        g_assert_cmpuint(script_body_len(script), ==, length);
        g_assert_true(script_body_is_pattern(script));
    }
    g_assert_cmpuint(script_accepts(script), ==, 1);
}

static void
test_file_shrinks(void)
{
    static const ScriptStep steps[] = {{SCRIPT_HEAD}, {SCRIPT_IGNORE}};
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve_one(steps);
    g_autofree char *url = script_url(script, "/");
    autofd fd = make_file(1 << 20);
    g_auto(Probe) probe = probe_init(client);
    HttpCallSpec spec = {.method = "PUT", .url = url, .body_fd = fd};

    probe_start(&probe, &spec);
    g_assert_no_errno(ftruncate(fd, 1000));
    probe_wait(&probe);
    probe_check_error(&probe, ERR_CONFLICT, "shorter");
}

/* An answer that comes before the whole request was taken. */
static void
test_early_answer(void)
{
    static const ScriptStep steps[] = {
        {SCRIPT_HEAD}, {SCRIPT_SEND, "HTTP/1.1 413 Too Much\r\nContent-Length: 2\r\n\r\nno"}, {SCRIPT_HOLD}};
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve_one(steps);
    g_autofree char *url = script_url(script, "/");
    autofd fd = make_file(64 << 20);
    g_auto(Probe) probe = probe_init(client);
    HttpCallSpec spec = {.method = "POST", .url = url, .body_fd = fd};

    probe_start(&probe, &spec);
    probe_wait(&probe);
    probe_check_ok(&probe, 413, "no");
}

static void
ignore_head(HttpCall *call, int status, void *ctx)
{
    g_assert_not_reached();
}

static bool
ignore_data(HttpCall *call, const guint8 *bytes, size_t n, void *ctx)
{
    g_assert_not_reached();
}

static void
ignore_done(HttpCall *call, int status, const GError *error, void *ctx)
{
    g_assert_not_reached();
}

static void
check_refused(HttpClient *client, const HttpCallSpec *spec)
{
    static const HttpCallHandler handler = {ignore_head, ignore_data, ignore_done};
    g_autoptr(GError) error = NULL;

    g_assert_null(http_client_call(client, spec, &handler, NULL, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
}

static void
test_bad_specs(void)
{
    static const char *const urls[] = {"",
                                       "/path",
                                       "example.com",
                                       "http://",
                                       "http:///path",
                                       "ftp://example.com/",
                                       "file:///etc/passwd",
                                       "gopher://example.com/",
                                       "http://a b/",
                                       "http://example.com/a\r\nX: y",
                                       "http://example.com/a b",
                                       "http://example.com:99999/",
                                       "http://example.com:port/",
                                       "http://[::1/"};
    static const char *const lines[] = {"",
                                        "no-colon",
                                        ": value",
                                        "a b: c",
                                        "A: b\r\nC: d",
                                        "A: b\nC: d",
                                        "A: \x01",
                                        "A: \x7f",
                                        "Content-Length: 3",
                                        "transfer-encoding: chunked",
                                        "A\xc3\xa9: b"};
    static const char *const methods[] = {"", "G E T", "GET\r\n", "GET /x HTTP/1.1\r\n"};
    g_autoptr(HttpClient) client = http_client_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(urls); i++) {
        g_test_message("URL '%s'", urls[i]);
        check_refused(client, &(HttpCallSpec){.url = urls[i], .body_fd = -1});
    }
    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
        const char *const list[] = {lines[i], NULL};

        g_test_message("header '%s'", lines[i]);
        check_refused(client, &(HttpCallSpec){.url = "http://127.0.0.1/", .headers = list, .body_fd = -1});
    }
    for (size_t i = 0; i < G_N_ELEMENTS(methods); i++)
        check_refused(client,
                      &(HttpCallSpec){.url = "http://127.0.0.1/", .method = methods[i], .body_fd = -1});
    check_refused(client,
                  &(HttpCallSpec){.url = "http://127.0.0.1/", .method = "HEAD", .body = "", .body_fd = -1});

    autofd null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    check_refused(client, &(HttpCallSpec){.url = "http://127.0.0.1/", .method = "PUT", .body_fd = null});

    g_autofree char *slashes = g_strnfill(HTTP_CLIENT_URL_MAX, '/');
    g_autofree char *url = g_strconcat("http://127.0.0.1", slashes, NULL);
    check_refused(client, &(HttpCallSpec){.url = url, .body_fd = -1});
    g_assert_false(g_main_context_pending(NULL));
}

/* Neither a proxy nor credentials come from the environment; main() has set both. */
static void
test_environment(void)
{
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve_one(hello_forever);
    g_autofree char *url = script_url(script, "/");
    g_auto(Probe) probe = probe_init(client);

    g_assert_nonnull(g_getenv("http_proxy"));
    probe_get(&probe, url);
    probe_wait(&probe);
    probe_check_ok(&probe, 200, "hello");
    g_autofree char *head = script_dup_head(script);
    g_assert_null(strstr(head, "Authorization"));
}

static char *
poison_environment(void)
{
    static const char *const names[] = {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"};
    char *home = g_dir_make_tmp("coop-client-XXXXXX", NULL);
    g_autofree char *netrc = g_build_filename(home, ".netrc", NULL);

    g_assert_true(g_file_set_contents(netrc, "default login me password secret\n", -1, NULL));
    g_setenv("HOME", home, TRUE);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        g_setenv(names[i], "http://127.0.0.1:1", TRUE);
    return home;
}

static void
remove_home(const char *home)
{
    g_autofree char *netrc = g_build_filename(home, ".netrc", NULL);

    g_unlink(netrc);
    g_rmdir(home);
}

static void
check_headers(Probe *probe, ProbeEvent event)
{
    const char *first = http_call_header(probe->call, "x-many");

    g_assert_cmpstr(first, ==, "one");
    g_assert_cmpstr(http_call_header(probe->call, "X-SPACED"), ==, "a  b");
    g_assert_cmpstr(http_call_header(probe->call, "X-Empty"), ==, "");
    g_assert_null(http_call_header(probe->call, "X-Interim"));
    g_assert_null(http_call_header(probe->call, "X-None"));
    g_assert_cmpstr(first, ==, "one");
}

static void
test_answer_headers(void)
{
    static const ScriptStep steps[] = {
        {SCRIPT_REQUEST},
        {SCRIPT_SEND, "HTTP/1.1 103 Hm\r\nX-Interim: 1\r\nX-Many: zero\r\n\r\n"
                      "HTTP/1.1 200 OK\r\nX-Many: one\r\nX-Many: two\r\nx-spaced: \t a  b  \r\nX-Empty:\r\n"
                      "Content-Length: 1\r\n\r\nx"},
        {SCRIPT_CLOSE}};
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_autoptr(Script) script = script_serve_one(steps);
    g_autofree char *url = script_url(script, "/");
    g_auto(Probe) probe = probe_init(client);

    probe.hook = check_headers;
    probe_get(&probe, url);
    probe_wait(&probe);
    probe_check_ok(&probe, 200, "x");
}

int
main(int argc, char **argv)
{
    g_autofree char *home = poison_environment();

    g_test_init(&argc, &argv, NULL);
    probe_start_watchdog();
    g_test_add_func("/http/client/send/heads", test_heads);
    g_test_add_func("/http/client/send/bodies", test_bodies);
    g_test_add_func("/http/client/send/file-shrinks", test_file_shrinks);
    g_test_add_func("/http/client/send/early-answer", test_early_answer);
    g_test_add_func("/http/client/send/bad-specs", test_bad_specs);
    g_test_add_func("/http/client/send/environment", test_environment);
    g_test_add_func("/http/client/send/answer-headers", test_answer_headers);
    int result = g_test_run();
    remove_home(home);
    return result;
}
