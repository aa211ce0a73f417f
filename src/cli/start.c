/* SPDX-License-Identifier: Apache-2.0 */
#include <glib-unix.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "daemon/door-place.h"
#include "daemon/github.h"
#include "daemon/keeper-place.h"
#include "daemon/leaf.h"
#include "daemon/supervisor.h"

enum { PROGRAMS_MAX = 3 };

typedef struct Start {
    GMainLoop *loop;
    Supervisor *supervisor;
    ExitCode code;
    char *message;
} Start;

static void
on_done(ExitCode code, const char *message, void *data)
{
    Start *start = data;

    start->code = code;
    start->message = g_strdup(message);
    g_main_loop_quit(start->loop);
}

static gboolean
on_signal(gpointer data)
{
    Start *start = data;

    supervisor_stop(start->supervisor);
    return G_SOURCE_CONTINUE;
}

/* EXIT_CODE_OK, or a message has been printed. */
static ExitCode
check_user(Cli *cli, const char *name)
{
    const struct passwd *user = getpwnam(name);

    if (geteuid() != 0 && (user == NULL || user->pw_uid != geteuid()))
        return cli_fail(cli, EXIT_CODE_USAGE, "only root can run the server as user '%s'", name);
    if (user == NULL)
        return cli_fail(cli, EXIT_CODE_FAILED,
                        "there is no user '%s' to run the server as\nFIX: useradd --system --user-group "
                        "--home-dir /var/lib/coop --shell /usr/sbin/nologin %s",
                        name, name);
    if (user->pw_uid == 0)
        return cli_fail(cli, EXIT_CODE_USAGE, "the server does not run as root: choose another --user");
    return EXIT_CODE_OK;
}

static GPtrArray *
serve_argv(Cli *cli, const char *self, const char *user, const Config *config)
{
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);

    g_ptr_array_add(argv, g_strdup(self));
    g_ptr_array_add(argv, g_strdup("serve"));
    g_ptr_array_add(argv, g_strdup("--supervised"));
    if (user != NULL)
        g_ptr_array_add(argv, g_strdup_printf("--user=%s", user));
    if (out_format(cli_out(cli)) == OUT_JSON)
        g_ptr_array_add(argv, g_strdup("--output=json"));
    cli_settings_forward(cli, argv);
    /* Named also where it is the default: that depends on the user. */
    g_ptr_array_add(argv, g_strdup_printf("--home=%s", config->home));
    g_ptr_array_add(argv, NULL);
    return argv;
}

static ExitCode
supervise(Cli *cli, const SupervisorProgram *list, size_t n)
{
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    Start start = {.loop = loop};
    SupervisorSpec spec = {
        .programs = list,
        .n_programs = n,
        .times = SUPERVISOR_TIMES_INIT,
        .out_fd = STDOUT_FILENO,
        .on_done = on_done,
        .data = &start,
    };
    guint sources[G_N_ELEMENTS(signals)];

    signal(SIGPIPE, SIG_IGN); /* whoever reads our lines may go away */
    start.supervisor = supervisor_new(&spec);
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
        sources[i] = g_unix_signal_add(signals[i], on_signal, &start);
    g_main_loop_run(loop);
    for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
        g_source_remove(sources[i]);
    supervisor_free(start.supervisor);
    g_autofree char *message = start.message;
    return message != NULL ? cli_fail(cli, start.code, "%s", message) : start.code;
}

/* Not a reason to end: everything but boxes works. */
static void
tell_of_ids(Cli *cli, const RunAs *as)
{
    g_autoptr(GError) error = NULL;
    guint32 first;

    if (!keeper_find_ids(as, &first, &error))
        out_notice(cli_out(cli), "there will be no boxes: %s", error->message);
}

/* Ours and the token, which stays with us for the day the server has to be started again; NULL: ours. */
static char **
serve_environment(GithubEnv *token)
{
    if (token[0] == NULL)
        return NULL;
    char **env = g_get_environ();

    for (guint i = 0; token[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(token[i], "=", 2);

        env = g_environ_setenv(env, parts[0], parts[1], TRUE);
    }
    (void)prctl(PR_SET_DUMPABLE, 0);
    return env;
}

static ExitCode
run_programs(Cli *cli, const char *self, const Config *config)
{
    const char *given = cli_option(cli, "user");
    const char *user = given != NULL || geteuid() != 0 ? given : "coop";
    ExitCode code = user != NULL ? check_user(cli, user) : EXIT_CODE_OK;
    g_auto(RunAs) as = {0};
    g_auto(RunAs) door_as = {0};
    g_autoptr(GError) error = NULL;

    if (code != EXIT_CODE_OK)
        return code;
    if (!run_as_find(user, &as, &error) || !keeper_prepare(config, &as, &error))
        return cli_fail(cli, exit_code_of(error), "%s", error->message);
    door_find_user(&as, &door_as);
    if (!door_prepare(config, &door_as, &error))
        return cli_fail(cli, exit_code_of(error), "%s", error->message);
    tell_of_ids(cli, &as);
    bool in_leaf = leaf_enter();
    g_autoptr(GPtrArray) keeper = keeper_argv(config, &as, self, in_leaf, &error);
    g_autoptr(GPtrArray) door = keeper != NULL ? door_argv(config, &as, &door_as, self, &error) : NULL;
    if (door == NULL)
        return cli_fail(cli, exit_code_of(error), "%s", error->message);
    g_auto(GStrv) door_env = door_take_environment();
    g_autoptr(GithubEnv) token = github_take_environment();
    g_auto(GStrv) serve_env = serve_environment(token);
    g_autoptr(GPtrArray) serve = serve_argv(cli, self, user, config);
    SupervisorProgram list[PROGRAMS_MAX];
    size_t n = 0;

    /* The server last: it looks for the others. */
    if (config->boxes.enabled)
        list[n++] = (SupervisorProgram){"keeper", (const char *const *)keeper->pdata, RESTART_ALWAYS,
                                        .optional = true};
    if (config->boxes.enabled && config->door.enabled)
        list[n++] = (SupervisorProgram){"door", (const char *const *)door->pdata, RESTART_ALWAYS,
                                        (const char *const *)door_env, .optional = true};
    list[n++] = (SupervisorProgram){"serve", (const char *const *)serve->pdata, RESTART_ALWAYS,
                                    (const char *const *)serve_env};
    return supervise(cli, list, n);
}

static ExitCode
run(Cli *cli)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autoptr(Config) config = NULL;
    ExitCode code = cli_config(cli, &config);

    if (code != EXIT_CODE_OK)
        return code;
    if (self == NULL)
        return cli_fail(cli, EXIT_CODE_FAILED, "cannot find this program: /proc is not mounted");
    log_set_levels(config->log_levels);
    return run_programs(cli, self, config);
}

static const CliOption options[] = {
    {.name = "user", .value = "NAME", .help = "as root, the user to run the server as (default: coop)"},
    {NULL},
};

const Command command_start = {
    .name = "start",
    .summary = "Start the server and keep it running",
    .details = "Runs in the foreground; SIGTERM or Ctrl-C stops everything in order, a second one at once.\n"
               "As root the server runs as an ordinary user; run by an ordinary user, as that user.",
    .options = options,
    .settings = CLI_SETTINGS_ALL,
    .run = run,
};
