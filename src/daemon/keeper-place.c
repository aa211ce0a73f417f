/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/keeper-place.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"
#include "base/subids.h"
#include "daemon/home.h"

static const char libexec_folder[] = "../libexec/coop";

static char *
folder_of(const Config *config, bool root)
{
    return root ? g_strconcat(config->home, "-keeper", NULL) : g_build_filename(config->home, "keeper", NULL);
}

static char *
socket_of(const Config *config, bool root)
{
    g_autofree char *folder = folder_of(config, root);

    return g_build_filename(folder, "socket", NULL);
}

char *
keeper_socket(const Config *config)
{
    g_autofree char *of_root = socket_of(config, true);

    if (access(of_root, F_OK) == 0)
        return g_steal_pointer(&of_root);
    return socket_of(config, false);
}

/* The socket inside is for the server's user, who must be able to get there. */
static bool
make_keeper_folder(const Config *config, bool root, GError **error)
{
    g_autofree char *folder = folder_of(config, root);
    struct stat st;

    if (!path_make_private_dir(folder, 0711, error))
        return false;
    if (lstat(folder, &st) < 0)
        return err_errno(error, "look at folder '%s'", folder);
    if (st.st_uid != geteuid())
        return err_set(error, ERR_DENIED, "folder '%s' belongs to another user (uid %u)", folder, st.st_uid);
    return chmod(folder, 0711) == 0 || err_errno(error, "open folder '%s' to the server", folder);
}

bool
keeper_prepare(const Config *config, const RunAs *server, GError **error)
{
    return home_prepare(config->home, server->uid, server->gid, error) &&
           home_make_folder(config->templates_dir, server->uid, server->gid, error) &&
           make_keeper_folder(config, geteuid() == 0, error);
}

char *
program_find(const char *self, const char *name, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(self);
    g_autofree char *beside = g_build_filename(folder, name, NULL);
    g_autofree char *libexec = g_build_filename(folder, libexec_folder, name, NULL);

    if (access(beside, X_OK) == 0)
        return g_steal_pointer(&beside);
    if (access(libexec, X_OK) == 0)
        return g_steal_pointer(&libexec);
    err_set(error, ERR_UNAVAILABLE, "the program '%s' is neither beside '%s' nor in '%s'", name, self,
            libexec);
    return NULL;
}

/* ---- the command line ---- */

static void
add_option(GPtrArray *argv, const char *name, char *value)
{
    g_ptr_array_add(argv, g_strdup(name));
    g_ptr_array_add(argv, value);
}

bool
keeper_find_ids(const RunAs *server, guint32 *ret_first, GError **error)
{
    g_autofree char *map = NULL;

    if (geteuid() == 0 && g_file_get_contents("/proc/self/uid_map", &map, NULL, NULL) &&
        !subids_map_is_host(map))
        return subids_find_mapped(map, KEEPER_SUB_IDS, ret_first) ||
               err_set(error, ERR_UNAVAILABLE,
                       "this user namespace has too few ids\nFIX: map at least %d ids into it",
                       2 * KEEPER_SUB_IDS);
    if (server->name != NULL)
        return subids_find_user(server->name, server->uid, KEEPER_SUB_IDS, ret_first, error);
    return subids_find_own(KEEPER_SUB_IDS, ret_first, error);
}

GPtrArray *
keeper_argv(const Config *config, const RunAs *server, const char *self, bool in_leaf, GError **error)
{
    bool root = geteuid() == 0;
    guint32 base = 0;
    g_autofree char *program = program_find(self, "coop-keeper", error);
    g_autofree char *init = program != NULL ? program_find(self, "coop-init", error) : NULL;
    g_autofree char *folder = folder_of(config, root);

    if (init == NULL)
        return NULL;
    /* Without such ids no template can be built either, which is said elsewhere. */
    (void)keeper_find_ids(server, &base, NULL);
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(argv, g_steal_pointer(&program));
    add_option(argv, "--init", g_steal_pointer(&init));
    add_option(argv, "--socket", socket_of(config, root));
    add_option(argv, "--state", g_build_filename(folder, "state", NULL));
    add_option(argv, "--templates", g_strdup(config->templates_dir));
    add_option(argv, "--server-uid", g_strdup_printf("%u", server->uid));
    add_option(argv, "--template-base", g_strdup_printf("%u", base));
    add_option(argv, "--user-disk-memory", g_strdup_printf("%" G_GINT64_FORMAT, config->keeper_memory_disk));
    if (in_leaf)
        g_ptr_array_add(argv, g_strdup("--cgroup-leaf"));
    g_ptr_array_add(argv, NULL);
    return argv;
}
