/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "builder/build.h"

/* A root of Debian packages, by mmdebstrap with the lists and archives of our cache. */

#define BIND_HOOK                                                                                            \
    "--setup-hook=mkdir -p \"$1/var/cache/apt/archives\" \"$1/var/lib/apt/lists\"; "                         \
    "mount --bind " BUILD_CACHE "/archives \"$1/var/cache/apt/archives\"; "                                  \
    "mount --bind " BUILD_CACHE "/lists \"$1/var/lib/apt/lists\""
#define UNBIND_HOOK "--customize-hook=umount \"$1/var/lib/apt/lists\"; umount \"$1/var/cache/apt/archives\""

static const char *const options[] = {
    "mmdebstrap",
    "--verbose",
    "--mode=root",
    "--variant=essential",
    "--format=directory",
    "--skip=update",
    "--skip=essential/unlink",
    "--skip=cleanup/apt",
    "--skip=cleanup/tmp",
    "--skip=cleanup/run",
    BIND_HOOK,
    UNBIND_HOOK,
    "--aptopt=APT::Install-Recommends \"false\"",
    "--aptopt=APT::Sandbox::User \"root\"",
    "--aptopt=APT::Keep-Downloaded-Packages \"true\"",
    "--aptopt=Acquire::Languages \"none\"",
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
};

static GPtrArray *
make_argv(Build *b)
{
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) lines = g_strsplit(b->host->apt_options, "\n", -1);
    g_autofree char *include = g_strjoinv(",", b->plan->packages);

    for (size_t i = 0; i < G_N_ELEMENTS(options); i++)
        g_ptr_array_add(argv, g_strdup(options[i]));
    for (guint i = 0; lines[i] != NULL; i++) {
        if (*lines[i] != '\0')
            g_ptr_array_add(argv, g_strconcat("--aptopt=", lines[i], NULL));
    }
    g_ptr_array_add(argv, g_strconcat("--include=apt,", include, NULL));
    g_ptr_array_add(argv, g_strdup(b->host->codename));
    g_ptr_array_add(argv, g_strdup(BUILD_ROOT));
    if (*b->host->apt_list != '\0')
        g_ptr_array_add(argv, g_strdup(APT_SOURCES "/host.list"));
    if (*b->host->apt_stanzas != '\0')
        g_ptr_array_add(argv, g_strdup(APT_SOURCES "/host.sources"));
    g_ptr_array_add(argv, NULL);
    return argv;
}

/* Without network: the archives are there. */
static bool
run_mmdebstrap(Build *b, AptProgress *progress, GError **error)
{
    g_autoptr(GPtrArray) argv = make_argv(b);
    GStrvBuilder *builder = g_strv_builder_new();

    g_strv_builder_add_many(builder, "PATH=" BUILD_PATH, "HOME=/tmp", "TMPDIR=/tmp", "LC_ALL=C.UTF-8",
                            "DEBIAN_FRONTEND=noninteractive", NULL);
    g_auto(GStrv) env = g_strv_builder_end(builder);
    g_strv_builder_unref(builder);
    CellSpec cell = {.argv = (const char *const *)argv->pdata,
                     .env = (const char *const *)env,
                     .mounts = true,
                     .line = apt_on_line,
                     .line_data = progress};

    return cell_run(&cell, error);
}

/* The essential packages have no list; dpkg-deb's own dependencies stand for them. */
static bool
count_packages(Build *b, guint *ret_n, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    g_ptr_array_add(names, (char *)(guintptr) "?essential");
    g_ptr_array_add(names, (char *)(guintptr) "apt");
    for (guint i = 0; b->plan->packages[i] != NULL; i++)
        g_ptr_array_add(names, b->plan->packages[i]);
    g_ptr_array_add(names, NULL);
    return apt_simulate(b, (const char *const *)names->pdata, ret_n, error);
}

bool
step_debian(Build *b, GError **error)
{
    g_autofree char *program = g_find_program_in_path("mmdebstrap");
    AptProgress progress = {.build = b};

    if (program == NULL)
        return err_set(
            error, ERR_UNAVAILABLE,
            "mmdebstrap is not installed, and Debian roots are made with it; the template \"host\" "
            "needs none");
    report_step(&b->report, "lists", 1, 6);
    if (!apt_update(b, error) || !count_packages(b, &progress.total, error))
        return false;
    report_step(&b->report, "packages", 6, 70);
    return apt_fetch_root(&progress, error) && run_mmdebstrap(b, &progress, error);
}
