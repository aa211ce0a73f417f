/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/keeper-place.h"

#include <unistd.h>

#include "base/err.h"
#include "base/subids.h"
#include "daemon/home.h"
#include "daemon/place.h"

static const char name[] = "keeper";

char *
keeper_socket(const Config *config)
{
    return place_socket(config, name);
}

bool
keeper_prepare(const Config *config, const RunAs *server, GError **error)
{
    g_autofree char *folder = place_folder(config, name, geteuid() == 0);
    g_autofree char *generations = g_build_filename(config->home, "generations", NULL);

    return home_prepare(config->home, server->uid, server->gid, error) &&
           home_make_folder(config->templates_dir, server->uid, server->gid, error) &&
           home_make_folder(generations, server->uid, server->gid, error) &&
           place_make(folder, geteuid(), getegid(), error);
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
    g_autofree char *folder = place_folder(config, name, root);

    if (init == NULL)
        return NULL;
    /* Without such ids no template can be built either, which is said elsewhere. */
    (void)keeper_find_ids(server, &base, NULL);
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(argv, g_steal_pointer(&program));
    place_add_option(argv, "--init", g_steal_pointer(&init));
    place_add_option(argv, "--socket", g_build_filename(folder, "socket", NULL));
    place_add_option(argv, "--state", g_build_filename(folder, "state", NULL));
    place_add_option(argv, "--templates", g_strdup(config->templates_dir));
    place_add_option(argv, "--generations", g_build_filename(config->home, "generations", NULL));
    place_add_option(argv, "--server-uid", g_strdup_printf("%u", server->uid));
    place_add_option(argv, "--template-base", g_strdup_printf("%u", base));
    place_add_option(argv, "--user-disk-memory",
                     g_strdup_printf("%" G_GINT64_FORMAT, config->keeper_memory_disk));
    if (in_leaf)
        g_ptr_array_add(argv, g_strdup("--cgroup-leaf"));
    g_ptr_array_add(argv, NULL);
    return argv;
}
