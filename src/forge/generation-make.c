/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/tree.h"
#include "forge/generation-private.h"

enum {
    REPACK_TIMEOUT_MS = 30 * 60 * 1000,
    FILES_MAX = 100000, /* in one folder */
};

/* Whoever made the packs may have closed them to others; boxes read as nobody.  The folders above them
 * are the server's alone. */
static const mode_t file_mode = 0444;
static const mode_t folder_mode = 0755;

static bool
read_tips(GitRepo *git, GHashTable *tips, GError **error)
{
    g_autofree char *text = git_text(
        git, GIT_READ,
        GIT_ARGS("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags"), error);

    if (text == NULL)
        return false;
    for (char *line = text, *next; *line != '\0'; line = next) {
        next = line + strcspn(line, "\n");
        if (*next != '\0')
            *next++ = '\0';
        if (strlen(line) <= GIT_OID_LEN + 1 || line[GIT_OID_LEN] != ' ')
            continue;
        if (g_hash_table_size(tips) == GENERATION_REFS_MAX)
            return err_set(error, ERR_LIMIT, "the repository has more than %d branches and tags",
                           GENERATION_REFS_MAX);
        g_hash_table_insert(tips, g_strdup(line + GIT_OID_LEN + 1), g_strndup(line, GIT_OID_LEN));
    }
    return true;
}

static bool
pack_loose(GitRepo *git, GError **error)
{
    GitCall call = {
        .access = GIT_WRITE, .args = GIT_ARGS("repack", "-d", "-q"), .timeout_ms = REPACK_TIMEOUT_MS};

    return git_run(git, &call, NULL, error);
}

static int
make_folder(int parent_fd, const char *name, GError **error)
{
    int fd = -1;

    if (mkdirat(parent_fd, name, folder_mode) == 0)
        fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* Not by mkdir alone: the server's umask closes what it makes. */
    if (fd < 0 || fchmod(fd, folder_mode) < 0)
        err_errno(error, "make folder '%s' of a generation", name);
    return fd;
}

static bool
link_file(int from_fd, const char *name, int to_fd, guint64 *bytes, GError **error)
{
    struct stat st;

    if (fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT || err_errno(error, "look at '%s' of a repository", name);
    if (!S_ISREG(st.st_mode))
        return true;
    if (linkat(from_fd, name, to_fd, name, 0) < 0)
        return errno == ENOENT || err_errno(error, "link '%s' into a generation", name);
    *bytes += (guint64)st.st_size;
    return (st.st_mode & 0777) == file_mode || fchmodat(to_fd, name, file_mode, 0) == 0 ||
           err_errno(error, "open '%s' of a generation to its boxes", name);
}

/* What git is in the middle of writing has a name that begins with "tmp_" or ".". */
static bool
is_wanted(const char *name)
{
    return (g_str_has_prefix(name, "pack-") && !g_str_has_suffix(name, ".keep")) ||
           g_str_has_prefix(name, "multi-pack-index") || g_str_has_prefix(name, "graph-") ||
           strcmp(name, "commit-graph-chain") == 0;
}

static bool
link_entries(DIR *dir, int to_fd, guint64 *bytes, GError **error)
{
    const struct dirent *entry;
    guint n = 0;

    while ((entry = readdir(dir)) != NULL) {
        if (!is_wanted(entry->d_name))
            continue;
        if (++n > FILES_MAX)
            return err_set(error, ERR_LIMIT, "the repository has more than %d packs", FILES_MAX);
        if (!link_file(dirfd(dir), entry->d_name, to_fd, bytes, error))
            return false;
    }
    return true;
}

/* `path` below `from_fd` becomes `name` below `to_fd`; one that is not there is left out. */
static bool
link_folder(int from_fd, const char *path, int to_fd, const char *name, guint64 *bytes, GError **error)
{
    int fd = openat(from_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT || err_errno(error, "open '%s' of a repository", path);
    DIR *dir = fdopendir(fd);

    if (dir == NULL) {
        close(fd);
        return err_errno(error, "read '%s' of a repository", path);
    }
    autofd to = make_folder(to_fd, name, error);
    bool ok = to >= 0 && link_entries(dir, to, bytes, error);

    closedir(dir);
    return ok;
}

static bool
link_objects(GitRepo *git, int new_fd, guint64 *bytes, GError **error)
{
    g_autofree char *path = g_build_filename(git_repo_path(git), "objects", NULL);
    autofd from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (from < 0)
        return err_errno(error, "open the objects of a repository");
    autofd to = make_folder(new_fd, "objects", error);
    autofd info = to >= 0 ? make_folder(to, "info", error) : -1;
    autofd from_info = info >= 0 ? openat(from, "info", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (info < 0 || !link_folder(from, "pack", to, "pack", bytes, error))
        return false;
    return from_info < 0 || (link_file(from_info, "commit-graph", info, bytes, error) &&
                             link_folder(from_info, "commit-graphs", info, "commit-graphs", bytes, error));
}

static bool
make_whole(GitRepo *git, int folder_fd, const char *name, guint64 *bytes, GError **error)
{
    autofd fd = make_folder(folder_fd, name, error);

    if (fd < 0 || !link_objects(git, fd, bytes, error))
        return false;
    FAILPOINT("generation-linked");
    return true;
}

/* The tips are read first: what they need is there then, and packed by the next step. */
bool
generation_make(GitRepo *git, const char *folder, Generation *ret, GError **error)
{
    g_autofree char *draft = g_strconcat(ret->id, ".new", NULL);
    autofd fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_errno(error, "open the folder of generations");
    if (!read_tips(git, ret->tips, error) || !pack_loose(git, error))
        return false;
    if (make_whole(git, fd, draft, &ret->bytes, error) &&
        (renameat(fd, draft, fd, ret->id) == 0 || err_errno(error, "name a generation")))
        return true;
    (void)tree_remove(fd, draft, NULL); /* else by the next start */
    return false;
}
