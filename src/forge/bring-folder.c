/* SPDX-License-Identifier: Apache-2.0 */
/* From a folder: git reads there, confined to that folder and to reading, and writes one pack; a
 * second git, confined to ours, checks every object of it.  Nothing of the source is run, and none
 * of its settings or hooks come along. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "forge/bring.h"

typedef struct PackOut {
    Bring *bring;
    int fd;
    guint64 bytes;
    int problem; /* errno; 0: none; EFBIG: more than may come */
} PackOut;

static bool
take_pack(const guint8 *bytes, size_t n, void *ctx)
{
    PackOut *out = ctx;

    out->bytes += n;
    if (out->bring->size_max > 0 && out->bytes > out->bring->size_max)
        out->problem = EFBIG;
    else if (!io_write_all(out->fd, bytes, n))
        out->problem = errno;
    return out->problem == 0;
}

static void
on_line(const char *line, void *ctx)
{
    bring_progress(line, ((PackOut *)ctx)->bring);
}

static bool
write_pack(GitRepo *from, Bring *b, const char *path, GString *tips, GError **error)
{
    autofd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    PackOut out = {.bring = b, .fd = fd};
    GitCall call = {
        .access = GIT_READ,
        .args = GIT_ARGS("pack-objects", "--revs", "--stdout", "--progress", "--delta-base-offset"),
        .input = tips->str,
        .input_len = tips->len,
        .timeout_ms = BRING_TIMEOUT_MS,
        .take = take_pack,
        .progress = on_line,
        .ctx = &out,
        .cancel = b->cancel,
        .heavy = true};

    if (fd < 0)
        return err_errno(error, "make a pack");
    if (!git_run(from, &call, NULL, error))
        return false;
    if (out.problem == EFBIG)
        return bring_too_big(b, error);
    errno = out.problem;
    return errno == 0 || err_errno(error, "write a pack");
}

static bool
index_pack(GitRepo *git, Bring *b, const char *path, GError **error)
{
    g_autofree char *strict = g_strconcat("--strict=", bring_fsck, NULL);
    g_autofree char *index = g_strndup(path, strlen(path) - strlen(".pack"));
    g_autofree char *index_file = g_strconcat(index, ".idx", NULL);
    g_autoptr(GByteArray) hash = NULL;
    GitCall call = {.access = GIT_WRITE,
                    .args = GIT_ARGS("index-pack", "-v", strict, "-o", index_file, path),
                    .timeout_ms = BRING_TIMEOUT_MS,
                    .progress = bring_progress,
                    .ctx = b,
                    .cancel = b->cancel,
                    .heavy = true};

    if (!git_run(git, &call, &hash, error))
        return false;
    const char *name = g_strchomp((char *)hash->data);

    if (g_str_has_prefix(name, "pack\t"))
        name += strlen("pack\t");
    if (!git_oid_is_valid(name))
        return err_set(error, ERR_INTERNAL, "git named the pack in an unknown way");
    g_autofree char *to_pack = g_strdup_printf("%s/objects/pack/pack-%s.pack", git_repo_path(git), name);
    g_autofree char *to_index = g_strdup_printf("%s/objects/pack/pack-%s.idx", git_repo_path(git), name);

    /* The index last: only with it the pack is there. */
    return (rename(path, to_pack) == 0 && rename(index_file, to_index) == 0) ||
           err_errno(error, "put the pack in its place");
}

/* Branches and tags only; what a name must not be here stays behind. */
static void
gather(GHashTable *refs, Bring *b, GString *tips, GString *updates)
{
    GHashTableIter iter;
    gpointer name, oid;

    g_hash_table_iter_init(&iter, refs);
    while (g_hash_table_iter_next(&iter, &name, &oid)) {
        const char *branch = g_str_has_prefix(name, "refs/heads/") ? (char *)name + strlen("refs/heads/")
                                                                   : (char *)name + strlen("refs/tags/");

        if (!git_branch_is_valid(branch, NULL)) {
            b->left_out++;
            continue;
        }
        g_string_append_printf(tips, "%s\n", (char *)oid);
        g_string_append_printf(updates, "update %s %s\n", (char *)name, (char *)oid);
        b->moved++;
    }
}

static bool
list_source(GitRepo *from, Bring *b, GString *tips, GString *updates, GError **error)
{
    static const char *const kinds[] = {"refs/heads/", "refs/tags/"};

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(GHashTable) refs = NULL;

        if (!bring_list_refs(from, kinds[i], b->cancel, &refs, error))
            return false;
        gather(refs, b, tips, updates);
    }
    return true;
}

static bool
check_format(GitRepo *from, GError **error)
{
    g_autofree char *format = git_text(from, GIT_READ, GIT_ARGS("rev-parse", "--show-object-format"), error);

    if (format == NULL)
        return false;
    return strcmp(format, "sha1") == 0 ||
           err_set(error, ERR_INVALID, "its objects are named by %s; only sha1 can be had here", format);
}

static bool
copy_objects(GitRepo *git, GitRepo *from, Bring *b, GString *tips, GError **error)
{
    g_autofree char *path = g_build_filename(git_repo_path(git), "tmp", "import.pack", NULL);

    if (write_pack(from, b, path, tips, error) && index_pack(git, b, path, error))
        return true;
    (void)unlink(path);
    return false;
}

bool
bring_from_folder(GitRepo *git, Bring *bring, const GitHostSpec *host, GError **error)
{
    g_autoptr(GitRepo) from = git_repo_new(
        &(GitHostSpec){.launcher = host->launcher, .foreign = true, .holder = host->holder}, "import",
        bring->source);
    g_autoptr(GString) tips = g_string_new(NULL), updates = g_string_new(NULL);

    if (!check_format(from, error) || !list_source(from, bring, tips, updates, error))
        return false;
    g_autofree char *head = git_text(from, GIT_READ, GIT_ARGS("symbolic-ref", "--short", "HEAD"), NULL);
    GitCall update = {.access = GIT_WRITE,
                      .args = GIT_ARGS("update-ref", "--stdin"),
                      .input = updates->str,
                      .input_len = updates->len,
                      .cancel = bring->cancel};

    if (tips->len > 0 &&
        (!copy_objects(git, from, bring, tips, error) || !git_run(git, &update, NULL, error)))
        return false;
    return bring_set_head(git, bring, head, error);
}
