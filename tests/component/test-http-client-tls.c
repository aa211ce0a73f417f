/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/spawn.h"
#include "http-probe.h"

static void
on_exit_flag(Child *child, ChildExit how, void *data)
{
    *(bool *)data = true;
}

static Child *
run_openssl(const char *const *argv, int stdout_fd, bool *ret_ended)
{
    SpawnSpec spec = SPAWN_SPEC_INIT;
    g_autoptr(GError) error = NULL;

    spec.argv = argv;
    spec.stdout_fd = stdout_fd;
    spec.stderr_fd = stdout_fd;
    Child *child = child_spawn(&spec, on_exit_flag, ret_ended, &error);
    g_assert_no_error(error);
    return child;
}

static void
make_certificate(const char *key, const char *cert)
{
    const char *const argv[] = {"openssl",
                                "req",
                                "-x509",
                                "-newkey",
                                "ec",
                                "-pkeyopt",
                                "ec_paramgen_curve:P-256",
                                "-nodes",
                                "-subj",
                                "/CN=x",
                                "-addext",
                                "subjectAltName=IP:127.0.0.1",
                                "-keyout",
                                key,
                                "-out",
                                cert,
                                NULL};
    autofd null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool ended = false;
    G_GNUC_UNUSED g_autoptr(Child) child = run_openssl(argv, null, &ended);

    while (!ended)
        g_main_context_iteration(NULL, TRUE);
}

static int
read_port(int fd)
{
    char text[512];
    int port = 0;

    for (size_t n = 0; n < sizeof text - 1 && port == 0;) {
        ssize_t got = read(fd, text + n, sizeof text - 1 - n);

        g_assert_cmpint(got, >, 0);
        n += (size_t)got;
        text[n] = '\0';
        const char *line = strstr(text, "ACCEPT ");
        if (line != NULL && strchr(line, '\n') != NULL)
            g_assert_cmpint(sscanf(line, "ACCEPT 127.0.0.1:%d", &port), ==, 1);
    }
    return port;
}

/* The name is right and the handshake would succeed; only nobody vouches for the server. */
static void
test_untrusted_server(void)
{
    g_autofree char *dir = g_dir_make_tmp("coop-client-XXXXXX", NULL);
    g_autofree char *key = g_build_filename(dir, "key.pem", NULL);
    g_autofree char *cert = g_build_filename(dir, "cert.pem", NULL);
    const char *const argv[] = {"openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
                                cert,      "-key",     key,       "-www",        NULL};
    int out[2];
    bool ended = false;

    make_certificate(key, cert);
    g_assert_no_errno(pipe2(out, O_CLOEXEC));
    g_autoptr(Child) server = run_openssl(argv, out[1], &ended);
    g_autofree char *url = g_strdup_printf("https://127.0.0.1:%d/", read_port(out[0]));
    g_autoptr(HttpClient) client = http_client_new(NULL);
    g_auto(Probe) probe = probe_init(client);

    probe_get(&probe, url);
    probe_wait(&probe);
    probe_check_error(&probe, ERR_UNAVAILABLE, "no connection: SSL peer certificate");
    g_assert_cmpuint(probe.heads, ==, 0);

    g_assert_true(child_signal(server, SIGKILL, NULL));
    while (!ended)
        g_main_context_iteration(NULL, TRUE);
    close(out[0]);
    close(out[1]);
    g_unlink(key);
    g_unlink(cert);
    g_rmdir(dir);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    probe_start_watchdog();
    g_test_add_func("/http/client/tls/untrusted-server", test_untrusted_server);
    return g_test_run();
}
