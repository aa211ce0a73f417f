/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/keeper-place.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"
#include "daemon/home.h"

enum {
    SUB_IDS_NEEDED = 65536,
    SUB_ID_FIELDS = 3, /* who:first:count */
};

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

/* ---- sub-ids ---- */

static bool
is_theirs(const char *who, const char *user, uid_t uid)
{
    guint64 number;

    return (user != NULL && strcmp(who, user) == 0) ||
           (g_ascii_string_to_unsigned(who, 10, 0, G_MAXUINT32, &number, NULL) && number == uid);
}

static guint32
sub_ids_in(const char *text, const char *user, uid_t uid)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) fields = g_strsplit(*line, ":", -1);
        guint64 first, count;

        if (g_strv_length(fields) == SUB_ID_FIELDS && is_theirs(fields[0], user, uid) &&
            g_ascii_string_to_unsigned(fields[1], 10, 1, G_MAXUINT32 - SUB_IDS_NEEDED, &first, NULL) &&
            g_ascii_string_to_unsigned(fields[2], 10, SUB_IDS_NEEDED, G_MAXUINT32, &count, NULL))
            return (guint32)first;
    }
    return 0;
}

guint32
sub_ids_of(const char *user, uid_t uid)
{
    g_autofree char *text = NULL;
    const struct passwd *pw = user == NULL ? getpwuid(uid) : NULL;

    if (!g_file_get_contents("/etc/subuid", &text, NULL, NULL))
        return 0;
    return sub_ids_in(text, pw != NULL ? pw->pw_name : user, uid);
}

/* ---- the command line ---- */

static void
add_option(GPtrArray *argv, const char *name, char *value)
{
    g_ptr_array_add(argv, g_strdup(name));
    g_ptr_array_add(argv, value);
}

GPtrArray *
keeper_argv(const Config *config, const RunAs *server, const char *self, bool in_leaf, GError **error)
{
    bool root = geteuid() == 0;
    g_autofree char *program = program_find(self, "coop-keeper", error);
    g_autofree char *init = program != NULL ? program_find(self, "coop-init", error) : NULL;
    g_autofree char *folder = folder_of(config, root);

    if (init == NULL)
        return NULL;
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(argv, g_steal_pointer(&program));
    add_option(argv, "--init", g_steal_pointer(&init));
    add_option(argv, "--socket", socket_of(config, root));
    add_option(argv, "--state", g_build_filename(folder, "state", NULL));
    add_option(argv, "--templates", g_strdup(config->templates_dir));
    add_option(argv, "--server-uid", g_strdup_printf("%u", server->uid));
    add_option(argv, "--template-base", g_strdup_printf("%u", sub_ids_of(server->name, server->uid)));
    if (in_leaf)
        g_ptr_array_add(argv, g_strdup("--cgroup-leaf"));
    g_ptr_array_add(argv, NULL);
    return argv;
}
