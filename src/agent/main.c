/* SPDX-License-Identifier: Apache-2.0 */
/* coop-agent: an agent in a box.  Without arguments it works on what the server wants of this box; with a
 * command it is a tool for other agents. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "agent/commands.h"
#include "agent/session.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/exitcode.h"
#include "base/log.h"
#include "base/version.h"

enum { EXIT_ENDED = 143 }; /* as a shell shows SIGTERM */

static int
help(void)
{
    puts("usage: coop-agent                 work on the goal of this box\n"
         "       coop-agent COMMAND …\n");
    for (const AgentCommand *c = agent_commands; c->name != NULL; c++)
        printf("  %-58s %s\n", c->usage, c->what);
    puts("\nThe server is at COOP_AGENT_URL, or where OPENAI_BASE_URL points.");
    return EXIT_CODE_OK;
}

static int
work(void)
{
    g_autoptr(GError) error = NULL;
    sigset_t ends;

    /* Read where we wait, so that commands under way end with us. */
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &ends, NULL) < 0)
        return EXIT_CODE_FAILED;
    autofd cancel = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    if (session_run(cancel, &error))
        return EXIT_CODE_OK;
    int code = agent_fail(error);
    return err_kind(error) == ERR_CANCELLED ? EXIT_ENDED : code;
}

/* GLib would convert the words of errors to UTF-8 by iconv, which in a static program reads the files of a
 * libc that may be another's.  It remembers what it found once; commands get the variable as it was. */
static void
need_no_iconv(void)
{
    g_autofree char *own = g_strdup(g_getenv("CHARSET"));

    g_setenv("CHARSET", "UTF-8", TRUE);
    g_assert(g_get_charset(NULL));
    if (own != NULL)
        g_setenv("CHARSET", own, TRUE);
    else
        g_unsetenv("CHARSET");
}

int
main(int argc, char **argv)
{
    need_no_iconv();
    const char *levels = g_getenv("COOP_LOG");

    if (levels != NULL && !log_set_levels(levels))
        log_warn("agent", "COOP_LOG is not understood", log_str("value", levels));
    if (argc == 1)
        return work();
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)
        return help();
    if (strcmp(argv[1], "--version") == 0) {
        printf("coop-agent %s\n", version_number());
        return EXIT_CODE_OK;
    }
    for (const AgentCommand *c = agent_commands; c->name != NULL; c++) {
        if (strcmp(c->name, argv[1]) == 0)
            return c->run(argc - 1, argv + 1);
    }
    fprintf(stderr, "coop-agent: '%s' is no command; see coop-agent --help\n", argv[1]);
    return EXIT_CODE_USAGE;
}
