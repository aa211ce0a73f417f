/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/place.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"

static const char libexec_folder[] = "../libexec/coop";

enum { FOLDER_MODE = 0711 };

char *
place_folder(const Config *config, const char *name, bool beside)
{
    return beside ? g_strconcat(config->home, "-", name, NULL) : g_build_filename(config->home, name, NULL);
}

static char *
socket_in(const Config *config, const char *name, bool beside)
{
    g_autofree char *folder = place_folder(config, name, beside);

    return g_build_filename(folder, "socket", NULL);
}

char *
place_socket(const Config *config, const char *name)
{
    g_autofree char *of_root = socket_in(config, name, true);

    if (access(of_root, F_OK) == 0)
        return g_steal_pointer(&of_root);
    return socket_in(config, name, false);
}

/* The socket inside is for the server's user, who must be able to get there. */
bool
place_make(const char *folder, uid_t uid, gid_t gid, GError **error)
{
    struct stat st;

    if (!path_make_private_dir(folder, FOLDER_MODE, error))
        return false;
    if (lstat(folder, &st) < 0)
        return err_errno(error, "look at folder '%s'", folder);
    if (st.st_uid != uid && st.st_uid != geteuid())
        return err_set(error, ERR_DENIED, "folder '%s' belongs to another user (uid %u)", folder, st.st_uid);
    if (st.st_uid != uid && lchown(folder, uid, gid) < 0)
        return err_errno(error, "give folder '%s' to its user", folder);
    return chmod(folder, FOLDER_MODE) == 0 || err_errno(error, "open folder '%s' to the server", folder);
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

void
place_add_option(GPtrArray *argv, const char *name, char *value)
{
    g_ptr_array_add(argv, g_strdup(name));
    g_ptr_array_add(argv, value);
}
