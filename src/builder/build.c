/* SPDX-License-Identifier: Apache-2.0 */
#include "builder/build.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/failpoint.h"

typedef struct BuildStep {
    const char *name; /* of its failpoint */
    bool (*run)(Build *b, GError **error);
} BuildStep;

/* Cells mount over these; what is copied may lack them. */
static bool
make_places(GError **error)
{
    static const char *const places[] = {"dev", "etc", "proc", "run", "sys", "tmp"};

    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *path = g_build_filename(BUILD_ROOT, places[i], NULL);

        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return err_errno(error, "make '/%s'", places[i]);
    }
    return true;
}

bool
step_root(Build *b, GError **error)
{
    if (b->plan->root == NULL)
        return true;
    return (strcmp(b->plan->root, "debian") == 0 ? step_debian(b, error) : step_copy(b, error)) &&
           make_places(error);
}

/* In the order in which they may need each other. */
static const BuildStep build_steps[] = {
    {"build-mount", build_mount},  {"build-root", step_root},     {"build-packages", step_packages},
    {"build-node", step_node},     {"build-npm", step_npm},       {"build-pip", step_pip},
    {"build-go", step_go},         {"build-files", step_files},   {"build-commands", step_commands},
    {"build-verify", step_verify}, {"build-finish", step_finish},
};

static const BuildStep try_steps[] = {{"build-mount", build_mount}, {"build-verify", step_verify}};

static bool
run_steps(Build *b, const BuildStep *steps, size_t n, GError **error)
{
    for (size_t i = 0; i < n; i++) {
        if (!steps[i].run(b, error))
            return false;
        FAILPOINT(steps[i].name);
    }
    return true;
}

int
build_in_space(void *data)
{
    Build *b = data;
    g_autoptr(GError) error = NULL;
    bool build = b->plan->action == PLAN_BUILD;

    if (run_steps(b, build ? build_steps : try_steps,
                  build ? G_N_ELEMENTS(build_steps) : G_N_ELEMENTS(try_steps), &error)) {
        if (!build)
            report_done(json_pack("{s:O}", "versions", b->versions));
        return 0;
    }
    report_error(error);
    return 1;
}

char **
build_env(Build *b, char **more, const char *home)
{
    g_auto(GStrv) env = g_strdupv(b->plan->env);

    env = g_environ_setenv(env, "HOME", home, TRUE);
    env = g_environ_setenv(env, "PATH", BUILD_PATH, FALSE);
    env = g_environ_setenv(env, "LC_ALL", "C.UTF-8", FALSE);
    for (guint i = 0; more != NULL && more[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(more[i], "=", 2);

        env = g_environ_setenv(env, parts[0], parts[1], TRUE);
    }
    return g_steal_pointer(&env);
}

static void
on_line(const char *line, void *data)
{
    Build *b = data;

    report_line(&b->report, line);
}

bool
build_shell(Build *b, const char *line, GError **error)
{
    g_auto(GStrv) env = build_env(b, NULL, "/root");
    const char *const argv[] = {"/bin/sh", "-ec", line, NULL};
    CellSpec cell = {
        .root = BUILD_ROOT, .argv = argv, .env = (const char *const *)env, .line = on_line, .line_data = b};

    return cell_run(&cell, error);
}
