/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "cli/box-call.h"
#include "cli/commands.h"
#include "cli/cp-tree.h"
#include "cli/sandbox.h"

/* "BOX:PATH", unless it looks like a path of ours. */
typedef struct Place {
    char *box; /* NULL: here */
    char *path;
} Place;

static void
place_clear(Place *place)
{
    g_free(place->box);
    g_free(place->path);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Place, place_clear)

static Place
parse_place(const char *word)
{
    const char *colon = strchr(word, ':');

    if (colon == NULL || word[0] == '/' || word[0] == '.' ||
        memchr(word, '/', (size_t)(colon - word)) != NULL)
        return (Place){NULL, g_strdup(word)};
    return (Place){g_strndup(word, (size_t)(colon - word)), g_strdup(colon[1] != '\0' ? colon + 1 : ".")};
}

static char *
file_path(const char *box, const char *route, const char *path)
{
    g_autofree char *escaped = g_uri_escape_string(path, NULL, FALSE);
    g_autofree char *rest = g_strconcat(route, "?path=", escaped, NULL);

    return box_path(box, rest);
}

/* "file", "directory", …; NULL: there is nothing. */
static ExitCode
find_type(Remote *remote, Cli *cli, const char *box, const char *path, char **ret_type)
{
    g_autofree char *url = file_path(box, "/files/stat", path);
    g_auto(RemoteReply) reply = {0};
    RemoteCall call = REMOTE_CALL_INIT;

    *ret_type = NULL;
    call.path = url;
    remote_try(remote, &call, &reply);
    /* The file, or the box: the next call tells. */
    if (reply.status == 404)
        return EXIT_CODE_OK;
    if (reply.message != NULL)
        return cli_fail(cli, reply.code, "%s", reply.message);
    *ret_type = g_strdup(json_string_value(json_object_get(reply.body, "type")));
    return EXIT_CODE_OK;
}

static int
open_temporary(const char *folder, GError **error)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        err_errno(error, "make a temporary file in '%s'", folder);
    return fd;
}

static ExitCode
send_file(Remote *remote, const char *method, const char *url, int fd)
{
    RemoteCall call = REMOTE_CALL_INIT;

    call.method = method;
    call.path = url;
    call.body_fd = fd;
    call.answer_ms = 0;
    return remote_run(remote, &call, NULL);
}

/* ---- into a box ---- */

static ExitCode
copy_folder_in(Cli *cli, Remote *remote, const char *from, const Place *to, const char *target)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) body = json_pack("{s:s}", "path", target);
    g_autofree char *mkdir_url = box_path(to->box, "/files/mkdir");
    g_autofree char *url = file_path(to->box, "/archive", target);
    autofd fd = open_temporary(g_get_tmp_dir(), &error);

    if (fd < 0 || !cp_tree_pack(from, fd, &error) || lseek(fd, 0, SEEK_SET) < 0)
        return cli_fail(cli, EXIT_CODE_FAILED, "%s", error != NULL ? error->message : g_strerror(errno));
    ExitCode code = remote_call(remote, "POST", mkdir_url, body, NULL);
    return code == EXIT_CODE_OK ? send_file(remote, "PUT", url, fd) : code;
}

static ExitCode
copy_in(Cli *cli, Remote *remote, const char *from, const Place *to)
{
    struct stat st;
    g_autofree char *type = NULL;
    g_autofree char *name = g_path_get_basename(from);
    autofd fd = open(from, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0)
        return cli_fail(cli, EXIT_CODE_NOT_FOUND, "cannot open '%s': %s", from, g_strerror(errno));
    ExitCode code = find_type(remote, cli, to->box, to->path, &type);
    if (code != EXIT_CODE_OK)
        return code;
    bool into = g_strcmp0(type, "directory") == 0 || g_str_has_suffix(to->path, "/");
    g_autofree char *target = into ? g_build_filename(to->path, name, NULL) : g_strdup(to->path);
    if (S_ISDIR(st.st_mode))
        return copy_folder_in(cli, remote, from, to, target);
    if (!S_ISREG(st.st_mode))
        return cli_fail(cli, EXIT_CODE_USAGE, "'%s' is neither a file nor a folder", from);
    g_autofree char *url = file_path(to->box, "/files", target);
    g_autofree char *with_mode = g_strdup_printf("%s&mode=%04o", url, st.st_mode & 0777);
    return send_file(remote, "PUT", with_mode, fd);
}

/* ---- out of a box ---- */

static bool
write_piece(const guint8 *bytes, size_t n, void *ctx)
{
    return io_write_all(*(int *)ctx, bytes, n);
}

static ExitCode
fetch(Cli *cli, Remote *remote, const char *url, int fd)
{
    RemoteCall call = REMOTE_CALL_INIT;

    call.path = url;
    call.data = write_piece;
    call.ctx = &fd;
    return remote_run(remote, &call, NULL);
}

static ExitCode
copy_folder_out(Cli *cli, Remote *remote, const Place *from, const char *target)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *url = file_path(from->box, "/archive", from->path);
    autofd fd = open_temporary(g_get_tmp_dir(), &error);

    if (fd < 0)
        return cli_fail(cli, EXIT_CODE_FAILED, "%s", error->message);
    ExitCode code = fetch(cli, remote, url, fd);
    if (code == EXIT_CODE_OK && !cp_tree_unpack(fd, target, &error))
        return cli_fail(cli, EXIT_CODE_FAILED, "%s", error->message);
    return code;
}

/* Whole or not at all. */
static ExitCode
copy_file_out(Cli *cli, Remote *remote, const Place *from, const char *target)
{
    g_autofree char *url = file_path(from->box, "/files", from->path);
    g_autofree char *part = g_strconcat(target, ".part", NULL);
    autofd fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

    if (fd < 0)
        return cli_fail(cli, EXIT_CODE_FAILED, "cannot write '%s': %s", part, g_strerror(errno));
    ExitCode code = fetch(cli, remote, url, fd);
    if (code == EXIT_CODE_OK && rename(part, target) < 0)
        code = cli_fail(cli, EXIT_CODE_FAILED, "cannot write '%s': %s", target, g_strerror(errno));
    if (code != EXIT_CODE_OK)
        (void)unlink(part);
    return code;
}

static ExitCode
copy_out(Cli *cli, Remote *remote, const Place *from, const char *to)
{
    g_autofree char *type = NULL;
    g_autofree char *name = g_path_get_basename(from->path);
    ExitCode code = find_type(remote, cli, from->box, from->path, &type);

    if (code != EXIT_CODE_OK)
        return code;
    if (type == NULL)
        return cli_fail(cli, EXIT_CODE_NOT_FOUND, "there is no '%s' in %s", from->path, from->box);
    bool into = g_file_test(to, G_FILE_TEST_IS_DIR) || g_str_has_suffix(to, "/");
    g_autofree char *target = into ? g_build_filename(to, name, NULL) : g_strdup(to);
    if (strcmp(type, "directory") == 0)
        return copy_folder_out(cli, remote, from, target);
    return copy_file_out(cli, remote, from, target);
}

static ExitCode
run(Cli *cli)
{
    g_auto(Place) from = parse_place(cli_args(cli)[0]);
    g_auto(Place) to = parse_place(cli_args(cli)[1]);
    g_autoptr(Remote) remote = NULL;

    if ((from.box == NULL) == (to.box == NULL))
        return cli_fail(cli, EXIT_CODE_USAGE, "one of the two must be BOX:PATH, the other a path here");
    ExitCode code = remote_open(cli, &remote);
    if (code != EXIT_CODE_OK)
        return code;
    return to.box != NULL ? copy_in(cli, remote, from.path, &to) : copy_out(cli, remote, &from, to.path);
}

#define CP_COMMAND                                                                                           \
    {                                                                                                        \
        .name = "cp", .summary = "Copy files or folders into a box or out of it", .args = "FROM TO",         \
        .args_min = 2, .args_max = 2, .settings = CLI_SETTINGS_CLIENT, .run = run,                           \
        .details = "One of the two is BOX:PATH. A folder that is there is copied into.",                     \
    }
const Command sandbox_cp = CP_COMMAND;
const Command command_cp = CP_COMMAND;
