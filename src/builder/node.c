/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "builder/build.h"

/* Node.js comes from Debian where that is the promised version, else from its npm packages;
 * npm itself comes from its registry, because Debian's brings hundreds of packages along. */

#define NPM_MODULES BUILD_ROOT "/usr/local/lib/node_modules"
#define HOST_CERTIFICATES "/etc/ssl/certs/ca-certificates.crt"

static void
on_line(const char *line, void *data)
{
    Build *b = data;

    report_line(&b->report, line);
}

static bool
has_program(const char *name)
{
    static const char *const folders[] = {BUILD_ROOT "/usr/local/bin", BUILD_ROOT "/usr/bin"};
    struct stat st;

    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *path = g_build_filename(folders[i], name, NULL);

        if (lstat(path, &st) == 0)
            return true;
    }
    return false;
}

/* The names of certificates and caches are those of the place where npm runs. */
static char **
npm_env(Build *b, const char *cache, const char *certificates, const char *prefix)
{
    g_auto(GStrv) own = build_env(b, b->host->npm_env, "/tmp");

    for (guint i = 0; b->host->proxy_env[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(b->host->proxy_env[i], "=", 2);

        own = g_environ_setenv(own, parts[0], parts[1], TRUE);
    }
    own = g_environ_setenv(own, "npm_config_cache", cache, TRUE);
    own = g_environ_setenv(own, "npm_config_prefix", prefix, TRUE);
    own = g_environ_setenv(own, "npm_config_update_notifier", "false", TRUE);
    own = g_environ_setenv(own, "NODE_EXTRA_CA_CERTS", certificates, TRUE);
    if (g_environ_getenv(own, "npm_config_cafile") != NULL)
        own = g_environ_setenv(own, "npm_config_cafile", certificates, TRUE);
    return g_steal_pointer(&own);
}

static GPtrArray *
npm_argv(Build *b, char *const *names)
{
    static const char *const head[] = {"npm",        "install",   "--global",
                                       "--no-audit", "--no-fund", "--loglevel=warn"};
    GPtrArray *argv = g_ptr_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(head); i++)
        g_ptr_array_add(argv, (char *)(guintptr)head[i]);
    if (!b->plan->fresh)
        g_ptr_array_add(argv, (char *)(guintptr) "--prefer-offline");
    for (guint i = 0; names[i] != NULL; i++)
        g_ptr_array_add(argv, names[i]);
    return argv;
}

/* The host's npm only unpacks: scripts of packages run in the template or not at all. */
static bool
install_by_host(Build *b, char *const *names, GError **error)
{
    g_autoptr(GPtrArray) argv = npm_argv(b, names);
    g_auto(GStrv) env = npm_env(b, BUILD_CACHE "/npm", HOST_CERTIFICATES, BUILD_ROOT "/usr/local");

    g_ptr_array_add(argv, (char *)(guintptr) "--ignore-scripts");
    g_ptr_array_add(argv, NULL);
    CellSpec cell = {.argv = (const char *const *)argv->pdata,
                     .env = (const char *const *)env,
                     .network = true,
                     .line = on_line,
                     .line_data = b};
    return cell_run(&cell, error);
}

static bool
install_inside(Build *b, char *const *names, GError **error)
{
    g_autoptr(GPtrArray) argv = npm_argv(b, names);
    g_auto(GStrv) env = npm_env(b, "/tmp/npm", "/tmp/certificates", "/usr/local");
    const CellBind binds[] = {{BUILD_CACHE "/npm", "npm"}, {HOST_CERTIFICATES, "certificates"}};

    g_ptr_array_add(argv, NULL);
    CellSpec cell = {.root = BUILD_ROOT,
                     .argv = (const char *const *)argv->pdata,
                     .env = (const char *const *)env,
                     .network = true,
                     .binds = binds,
                     .n_binds = access(HOST_CERTIFICATES, R_OK) == 0 ? 2 : 1,
                     .line = on_line,
                     .line_data = b};
    return cell_run(&cell, error);
}

static bool
install_any(Build *b, char *const *names, GError **error)
{
    if (!build_mount_cache(b, "npm", error))
        return false;
    return has_program("npm") ? install_inside(b, names, error) : install_by_host(b, names, error);
}

/* npm for a template that has none yet: by the host's, or Debian's. */
static bool
bring_npm(Build *b, char *spec, GError **error)
{
    char *names[] = {spec, NULL};
    char *debian[] = {(char *)(guintptr) "npm", NULL};
    g_autoptr(GError) failed = NULL;
    Plan packages = *b->plan;
    Build other = *b;

    if (has_program("npm"))
        return true;
    if (b->host->has_npm && build_mount_cache(b, "npm", &failed) && install_by_host(b, names, &failed))
        return true;
    if (failed != NULL)
        report_line(&b->report, failed->message);
    packages.packages = debian;
    packages.root = NULL;
    other.plan = &packages;
    bool ok = step_packages(&other, error);
    b->report = other.report;
    return ok;
}

/* ---- the promised version ---- */

static char *
node_version(Build *b)
{
    g_auto(GStrv) env = build_env(b, NULL, "/tmp");
    g_autoptr(GString) output = g_string_new(NULL);
    static const char *const argv[] = {"node", "--version", NULL};
    CellSpec cell = {.root = BUILD_ROOT, .argv = argv, .env = (const char *const *)env, .output = output};

    if (!has_program("node") || cell_code(&cell, NULL) != 0)
        return g_strdup("");
    return g_strstrip(g_strdup(output->str));
}

static bool
link_node(const char *package, GError **error)
{
    g_autofree char *target = g_strdup_printf("../lib/node_modules/%s/bin/node", package);
    static const char *const place = BUILD_ROOT "/usr/local/bin/node";

    (void)unlink(place); /* a link of the package, which may be another name */
    return symlink(target, place) == 0 || err_errno(error, "link node");
}

bool
step_node(Build *b, GError **error)
{
    if (b->plan->node == NULL)
        return true;
    g_autofree char *have = node_version(b);
    g_autofree char *want = g_strdup_printf("v%s.", b->plan->node);
    const char *cpu = strcmp(b->host->architecture, "amd64") == 0 ? "x64" : b->host->architecture;
    g_autofree char *package = g_strdup_printf("node-linux-%s", cpu);
    g_autofree char *spec = g_strdup_printf("%s@%s", package, b->plan->node);
    char *names[] = {spec, NULL};

    if (g_str_has_prefix(have, want))
        return true;
    report_step(&b->report, "node", 50, 60);
    if (!install_any(b, names, error)) {
        g_prefix_error(error, "Node.js %s is not what Debian has here (%s), and from npm: ", b->plan->node,
                       *have != '\0' ? have : "none");
        return false;
    }
    return link_node(package, error);
}

bool
step_npm(Build *b, GError **error)
{
    char **names = b->plan->npm;

    if (names[0] == NULL)
        return true;
    report_step(&b->report, "npm", 60, 75);
    for (guint i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], "npm") == 0 || g_str_has_prefix(names[i], "npm@")) {
            if (!bring_npm(b, names[i], error))
                return false;
            if (names[1] == NULL)
                return true;
        }
    }
    if (!has_program("npm"))
        return err_set(error, ERR_INVALID, "the template has no npm: name it first in the list");
    return install_any(b, names, error);
}
