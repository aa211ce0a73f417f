/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/spawn.h"

enum { LINE_MAX_BYTES = 64 * 1024 }; /* a longer one is cleaned in pieces */

struct Pager {
    int fd; /* that is written to; ours if `pidfd` is -1 */
    int pidfd;
    bool cleans;
    GString *line; /* what came of it */
    bool failed, gone;
};

/* Without R in LESS, less shows what could steer the terminal; there is nothing of it in here anyway. */
static bool
start(Pager *pager, Cli *cli, GError **error)
{
    const char *named = g_getenv("PAGER");
    g_auto(GStrv) env = g_get_environ();
    SpawnSpec spec = SPAWN_SPEC_INIT;
    int ends[2];

    if (named != NULL && (*named == '\0' || strcmp(named, "cat") == 0))
        return false;
    if (!g_unix_open_pipe(ends, FD_CLOEXEC, error))
        return false;
    autofd read_end = ends[0], write_end = ends[1];

    env = g_environ_setenv(env, "LESS", "FX", FALSE);
    spec.argv = named != NULL ? (const char *const[]){"/bin/sh", "-c", named, NULL}
                              : (const char *const[]){"less", NULL};
    spec.env = (const char *const *)env;
    spec.stdin_fd = read_end;
    spec.stdout_fd = out_fd(cli_out(cli));
    if (spawn_held(&spec, &pager->pidfd, error) < 0)
        return false;
    pager->fd = g_steal_fd(&write_end);
    signal(SIGINT, SIG_IGN); /* it is the pager's from here on */
    return true;
}

Pager *
pager_open(Cli *cli)
{
    Pager *pager = g_new0(Pager, 1);
    int fd = out_fd(cli_out(cli));

    *pager = (Pager){.fd = fd, .pidfd = -1, .cleans = isatty(fd) == 1, .line = g_string_new(NULL)};
    signal(SIGPIPE, SIG_IGN);
    if (pager->cleans)
        (void)start(pager, cli, NULL); /* else it goes straight to the terminal */
    return pager;
}

static void
put(Pager *pager, const void *bytes, size_t n)
{
    if (pager->failed || pager->gone || n == 0 || io_write_all(pager->fd, bytes, n))
        return;
    pager->gone = errno == EPIPE;
    pager->failed = !pager->gone;
}

static void
put_line(Pager *pager, const char *end)
{
    g_autofree char *clean = out_clean_line(pager->line->str);

    put(pager, clean, strlen(clean));
    put(pager, end, strlen(end));
    g_string_truncate(pager->line, 0);
}

bool
pager_write(Pager *pager, const guint8 *bytes, size_t n)
{
    if (!pager->cleans) {
        put(pager, bytes, n);
        return !pager->failed && !pager->gone;
    }
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n')
            put_line(pager, "\n");
        else if (bytes[i] != '\0')
            g_string_append_c(pager->line, (char)bytes[i]);
        if (pager->line->len >= LINE_MAX_BYTES)
            put_line(pager, "");
    }
    return !pager->failed && !pager->gone;
}

bool
pager_close(Pager *pager)
{
    siginfo_t how;
    bool good;

    if (pager->line->len > 0)
        put_line(pager, "");
    if (pager->pidfd >= 0) {
        close(pager->fd);
        while (waitid(P_PIDFD, (id_t)pager->pidfd, &how, WEXITED) < 0 && errno == EINTR)
            continue;
        close(pager->pidfd);
    }
    good = !pager->failed;
    g_string_free(pager->line, TRUE);
    g_free(pager);
    return good;
}
