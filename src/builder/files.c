/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/path.h"
#include "builder/build.h"
#include "builder/inside.h"

/* ---- files ---- */

static bool
make_parents(int root_fd, const char *path, GError **error)
{
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        g_autofree char *above = g_strndup(path, (gsize)(slash - path));
        autofd fd = open_beneath(root_fd, above, O_PATH | O_DIRECTORY, 0, NULL);

        if (fd >= 0)
            continue;
        g_autofree char *parent = g_path_get_dirname(above);
        g_autofree char *name = g_path_get_basename(above);
        autofd dir = open_beneath(root_fd, parent, O_RDONLY | O_DIRECTORY, 0, error);

        if (dir < 0)
            return false;
        if (mkdirat(dir, name, 0755) < 0)
            return err_errno(error, "make '/%s'", above);
    }
    return true;
}

/* A link that a package has put there leads nowhere but into the root. */
static bool
write_file(int root_fd, const char *path, const char *content, guint mode, GError **error)
{
    const char *below = path + 1;

    if (!make_parents(root_fd, below, error))
        return false;
    autofd fd = open_beneath(root_fd, below, O_WRONLY | O_CREAT | O_TRUNC, 0644, error);

    if (fd < 0)
        return false;
    return (io_write_all(fd, content, strlen(content)) && fchmod(fd, mode) == 0) ||
           err_errno(error, "write '%s'", path);
}

bool
step_files(Build *b, GError **error)
{
    autofd root_fd = inside_open_root(error);
    size_t i;
    Json *file;

    if (root_fd < 0)
        return false;
    json_array_foreach(b->plan->files, i, file)
    {
        const char *path = json_string_value(json_object_get(file, "path"));
        const char *content = json_string_value(json_object_get(file, "content"));
        guint mode = (guint)json_integer_value(json_object_get(file, "mode"));

        if (path == NULL || content == NULL || !path_is_normal(path))
            return err_set(error, ERR_INVALID, "a file of the plan has no path or no content");
        if (!write_file(root_fd, path, content, mode, error))
            return false;
    }
    return true;
}

/* ---- commands ---- */

bool
step_commands(Build *b, GError **error)
{
    guint n = g_strv_length(b->plan->commands);

    if (n == 0)
        return true;
    report_step(&b->report, "commands", 80, 88);
    for (guint i = 0; i < n; i++) {
        report_line(&b->report, b->plan->commands[i]);
        if (!build_shell(b, b->plan->commands[i], error)) {
            g_prefix_error(error, "command '%s': ", b->plan->commands[i]);
            return false;
        }
        report_part(&b->report, (double)(i + 1) / n);
    }
    return true;
}

/* ---- checks ---- */

typedef struct Account {
    guint uid, gid;
    char *home;
} Account;

static bool
find_account(const char *user, Account *ret_account, GError **error)
{
    enum { FIELDS = 7, UID = 2, GID = 3, HOME = 5 };
    autofd root_fd = inside_open_root(error);
    gsize n;
    g_autofree char *text = root_fd >= 0 ? inside_read(root_fd, "etc/passwd", &n) : NULL;

    if (root_fd < 0)
        return false;
    if (text == NULL)
        return err_set(error, ERR_INVALID, "the template has no /etc/passwd that is a file");
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(lines[i], ":", FIELDS);
        guint64 uid;
        guint64 gid;

        if (g_strv_length(parts) != FIELDS || strcmp(parts[0], user) != 0 ||
            !g_ascii_string_to_unsigned(parts[UID], 10, 0, 65535, &uid, NULL) ||
            !g_ascii_string_to_unsigned(parts[GID], 10, 0, 65535, &gid, NULL))
            continue;
        *ret_account = (Account){(guint)uid, (guint)gid, g_strdup(parts[HOME])};
        return true;
    }
    return err_set(error, ERR_INVALID, "the template has no user '%s'", user);
}

static bool
check_one(Build *b, const Account *account, const char *command, const char *want, GError **error)
{
    g_auto(GStrv) env = build_env(b, NULL, account->home);
    g_autoptr(GString) output = g_string_new(NULL);
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    CellSpec cell = {.root = BUILD_ROOT,
                     .argv = argv,
                     .env = (const char *const *)env,
                     .cwd = b->plan->workdir,
                     .uid = account->uid,
                     .gid = account->gid,
                     .output = output};

    if (!cell_run(&cell, error)) {
        g_prefix_error(error, "check '%s': ", command);
        return false;
    }
    g_strstrip(output->str);
    g_auto(GStrv) lines = g_strsplit(output->str, "\n", 2);
    const char *got = lines[0] != NULL ? lines[0] : "";
    json_object_set_new(b->versions, command, json_stringn_nocheck(got, strlen(got)));
    report_line(&b->report, got);
    return g_str_has_prefix(got, want) ||
           err_set(error, ERR_UNAVAILABLE,
                   "the template promises that '%s' says '%s…'; what can be had here says '%s'", command,
                   want, got);
}

bool
step_verify(Build *b, GError **error)
{
    Account account = {0};
    size_t n = json_array_size(b->plan->verify);
    size_t i;
    Json *item;
    bool ok = true;

    report_step(&b->report, "verify", 88, 95);
    if (n == 0)
        return true;
    if (!find_account(b->plan->user != NULL ? b->plan->user : "root", &account, error))
        return false;
    json_array_foreach(b->plan->verify, i, item)
    {
        const char *command = json_string_value(json_object_get(item, "command"));
        const char *want = json_string_value(json_object_get(item, "want"));

        ok = ok && check_one(b, &account, command, want, error);
        report_part(&b->report, (double)(i + 1) / (double)n);
    }
    g_free(account.home);
    return ok;
}
