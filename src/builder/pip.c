/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/err.h"
#include "builder/build.h"

#define HOST_CERTIFICATES "/etc/ssl/certs/ca-certificates.crt"

static void
on_line(const char *line, void *data)
{
    Build *b = data;

    report_line(&b->report, line);
}

/* Fetching is one step with network, installing another without. */
static bool
run_pip(Build *b, const char *const *head, bool network, GError **error)
{
    const CellBind binds[] = {{BUILD_CACHE "/pip", "pip"}, {HOST_CERTIFICATES, "certificates"}};
    g_auto(GStrv) env = build_env(b, b->host->pip_env, "/tmp");
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    bool certificates = access(HOST_CERTIFICATES, R_OK) == 0;

    for (guint i = 0; b->host->proxy_env[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(b->host->proxy_env[i], "=", 2);

        env = g_environ_setenv(env, parts[0], parts[1], TRUE);
    }
    env = g_environ_setenv(env, "PIP_BREAK_SYSTEM_PACKAGES", "1", TRUE);
    env = g_environ_setenv(env, "PIP_ROOT_USER_ACTION", "ignore", TRUE);
    env = g_environ_setenv(env, "PIP_DISABLE_PIP_VERSION_CHECK", "1", TRUE);
    env = g_environ_setenv(env, "PIP_NO_CACHE_DIR", "1", TRUE);
    if (certificates)
        env = g_environ_setenv(env, "PIP_CERT", "/tmp/certificates", TRUE);
    for (guint i = 0; head[i] != NULL; i++)
        g_ptr_array_add(argv, (char *)(guintptr)head[i]);
    for (guint i = 0; b->plan->pip[i] != NULL; i++)
        g_ptr_array_add(argv, b->plan->pip[i]);
    g_ptr_array_add(argv, NULL);
    CellSpec cell = {.root = BUILD_ROOT,
                     .argv = (const char *const *)argv->pdata,
                     .env = (const char *const *)env,
                     .network = network,
                     .binds = binds,
                     .n_binds = certificates ? 2 : 1,
                     .line = on_line,
                     .line_data = b};

    return cell_run(&cell, error);
}

bool
step_pip(Build *b, GError **error)
{
    static const char *const install[] = {
        "python3", "-m", "pip", "install", "--no-index", "--find-links=/tmp/pip", NULL};
    static const char *const fetch[] = {
        "python3", "-m", "pip", "wheel", "--wheel-dir=/tmp/pip", "--find-links=/tmp/pip", NULL};

    if (b->plan->pip[0] == NULL)
        return true;
    report_step(&b->report, "pip", 75, 78);
    if (!build_mount_cache(b, "pip", error))
        return false;
    if (!b->plan->fresh && run_pip(b, install, false, NULL))
        return true;
    return run_pip(b, fetch, true, error) && run_pip(b, install, false, error);
}
