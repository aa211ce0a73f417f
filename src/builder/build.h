/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "builder/cell.h"
#include "builder/host.h"
#include "builder/plan.h"
#include "builder/report.h"

/* One build.  In the space the root of the template is at BUILD_ROOT and the caches are below
 * BUILD_CACHE, on a /tmp of its own; no path of the store is used there. */

#define BUILD_ROOT "/tmp/root"
#define BUILD_CACHE "/tmp/cache"
#define BUILD_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

typedef struct Build {
    const Plan *plan;
    const HostSources *host;
    Report report;
    int store_fd;
    int folder_fd, sudo_fd; /* what is copied in; -1: nothing */
    char **env;             /* of programs of the template */
    Json *versions;         /* what the checks printed */
} Build;

/* Everything between an empty space and a finished layer. */
int build_in_space(void *build);

/* mount.c */
bool build_mount(Build *b, GError **error);
bool build_mount_cache(Build *b, const char *name, GError **error); /* at BUILD_CACHE/name */
bool build_unmount_root(Build *b, GError **error);

/* The steps; each does nothing when the plan does not ask for it. */
bool step_root(Build *b, GError **error); /* debian.c, copy.c */
bool step_debian(Build *b, GError **error);
bool step_copy(Build *b, GError **error);
bool step_packages(Build *b, GError **error); /* apt.c */
bool step_node(Build *b, GError **error);     /* node.c */
bool step_npm(Build *b, GError **error);
bool step_pip(Build *b, GError **error);
bool step_go(Build *b, GError **error);
bool step_files(Build *b, GError **error); /* files.c */
bool step_commands(Build *b, GError **error);
bool step_verify(Build *b, GError **error);
bool step_finish(Build *b, GError **error);

/* An environment of `env` and `more` (NULL: nothing); the caller frees it. */
char **build_env(Build *b, char **more, const char *home);
/* A shell line in the root of the template, as root and without network. */
bool build_shell(Build *b, const char *line, GError **error);

/* apt.c: an apt.conf for the host's apt that works on BUILD_ROOT. */
bool apt_write_config(Build *b, bool in_root, GError **error);
bool apt_update(Build *b, GError **error); /* when the lists are missing, old or unwanted */
/* How many packages would be installed; an error names those that there are not, and what
 * there is in their place. */
bool apt_simulate(Build *b, const char *const *packages, guint *ret_n, GError **error);
typedef struct AptProgress {
    Build *build;
    guint total, fetched, unpacked, set_up;
} AptProgress;
void apt_on_line(const char *line, void *progress);
/* Into the cache: whatever a root of the plan's packages needs. */
bool apt_fetch_root(AptProgress *progress, GError **error);
#define APT_CONFIG_FILE "/tmp/apt.conf"
#define APT_SOURCES "/tmp/sources.d"
