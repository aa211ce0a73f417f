/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/patch.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "forge/batch.h"
#include "forge/contents-parse.h"
#include "forge/records.h"
#include "wire/tar-write.h"

typedef struct Packing {
    GPtrArray *entries; /* TreeEntry, folders before what is in them */
    guint next;         /* the first that is not written */
    TreeEntry *entry;   /* whose bytes come */
    guint64 left;
    GString *target; /* of a link */
    gint64 time_s;
    PatchTake take;
    void *ctx;
    PatchSum sum;
    const char *problem; /* path of what cannot be packed */
    TarWriter tar;
} Packing;

static int
put_tar(void *ctx, const void *bytes, size_t n)
{
    Packing *p = ctx;

    return p->take(bytes, n, p->ctx) ? 0 : ECANCELED;
}

static bool
has_bytes(const TreeEntry *entry)
{
    return entry->size >= 0;
}

/* ---- entries ---- */

static void
write_entry(Packing *p, const TreeEntry *entry, const char *target)
{
    static const mode_t modes[] = {
        [ENTRY_FILE] = S_IFREG | 0644,   [ENTRY_PROGRAM] = S_IFREG | 0755,   [ENTRY_LINK] = S_IFLNK | 0777,
        [ENTRY_FOLDER] = S_IFDIR | 0755, [ENTRY_SUBMODULE] = S_IFDIR | 0755,
    };
    struct stat st = {
        .st_mode = modes[entry->kind],
        .st_size = entry->size,
        .st_mtim.tv_sec = p->time_s,
    };
    g_autofree char *folder = S_ISDIR(st.st_mode) ? g_strconcat(entry->path, "/", NULL) : NULL;

    tar_write_entry(&p->tar, folder != NULL ? folder : entry->path, target, &st);
}

/* Those without bytes that stand before the next one with some. */
static void
write_folders(Packing *p)
{
    while (p->next < p->entries->len && !has_bytes(p->entries->pdata[p->next]))
        write_entry(p, p->entries->pdata[p->next++], "");
}

static bool
end_object(Packing *p)
{
    if (p->entry->kind != ENTRY_LINK) {
        tar_write_padding(&p->tar, (guint64)p->entry->size);
    } else if (strlen(p->target->str) != p->target->len || p->target->len == 0) {
        p->problem = p->entry->path;
    } else {
        write_entry(p, p->entry, p->target->str);
    }
    p->sum.files++;
    p->sum.bytes += (guint64)p->entry->size;
    return p->problem == NULL && p->tar.error == 0;
}

/* ---- objects ---- */

static bool
on_object(size_t index, const char *oid, const char *type, guint64 size, void *ctx)
{
    Packing *p = ctx;

    write_folders(p);
    p->entry = p->entries->pdata[p->next++];
    p->left = size;
    if (oid == NULL || strcmp(type, "blob") != 0 || size != (guint64)p->entry->size ||
        (p->entry->kind == ENTRY_LINK && size >= TAR_PATH_MAX)) {
        p->problem = p->entry->path;
        return false;
    }
    if (p->entry->kind == ENTRY_LINK)
        g_string_truncate(p->target, 0);
    else
        write_entry(p, p->entry, "");
    return p->left > 0 || end_object(p);
}

static bool
on_bytes(size_t index, const guint8 *bytes, size_t n, void *ctx)
{
    Packing *p = ctx;

    if (p->entry->kind == ENTRY_LINK)
        g_string_append_len(p->target, (const char *)bytes, (gssize)n);
    else
        tar_write_data(&p->tar, bytes, n);
    p->left -= n;
    return p->left > 0 ? p->tar.error == 0 : end_object(p);
}

static bool
pack_objects(GitRepo *repo, Packing *p, GError **error)
{
    static const BatchSink sink = {on_object, on_bytes, PATCH_TIMEOUT_MS};
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    for (guint i = 0; i < p->entries->len; i++) {
        TreeEntry *entry = p->entries->pdata[i];

        if (has_bytes(entry))
            g_ptr_array_add(names, entry->oid);
    }
    if (!batch_run(repo, (const char *const *)names->pdata, names->len, &sink, p, error))
        return false;
    if (p->problem != NULL)
        return err_set(error, ERR_INVALID, "'%s' cannot be put into an archive", p->problem);
    write_folders(p);
    tar_write_end(&p->tar);
    return p->tar.error == 0 || err_set(error, ERR_CANCELLED, "nobody takes the archive any more");
}

/* ---- the list ---- */

static bool
list_entries(GitRepo *repo, const char *tree, GPtrArray *entries, GError **error)
{
    RecordsSpec spec = {
        .args = GIT_ARGS("ls-tree", "-r", "-t", "-z", "-l", "--full-tree", tree),
        .separator = '\0',
        .max = PATCH_FILES_MAX,
        .bytes_max = PATCH_PATHS_MAX,
    };
    bool more = false;
    guint64 bytes = 0;
    g_autoptr(GPtrArray) lines = records_read(repo, &spec, &more, error);

    if (lines == NULL)
        return false;
    for (guint i = 0; i < lines->len; i++) {
        TreeEntry *entry = tree_entry_parse(lines->pdata[i], "");

        if (entry == NULL)
            return err_set(error, ERR_INTERNAL, "git listed what is no entry of a tree");
        g_ptr_array_add(entries, entry);
        bytes += has_bytes(entry) ? (guint64)entry->size : 0;
        if (strlen(entry->path) + 1 >= TAR_PATH_MAX || !contents_path_is_valid(entry->path, NULL))
            return err_set(error, ERR_INVALID, "the tree has a path that cannot be put into an archive");
    }
    if (more || bytes > PATCH_BYTES_MAX)
        return err_set(error, ERR_LIMIT, "the tree has more than %d files or %lld bytes", PATCH_FILES_MAX,
                       (long long)PATCH_BYTES_MAX);
    return true;
}

bool
patch_tar(GitRepo *repo, const char *tree, gint64 time_s, PatchTake take, void *ctx, PatchSum *ret_sum,
          GError **error)
{
    g_autofree Packing *p = g_new0(Packing, 1);
    g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func((GDestroyNotify)tree_entry_free);
    g_autoptr(GString) target = g_string_new(NULL);

    if (!git_oid_is_valid(tree))
        return err_set(error, ERR_INVALID, "this is no object's name");
    p->entries = entries;
    p->target = target;
    p->time_s = time_s;
    p->take = take;
    p->ctx = ctx;
    p->tar.put = put_tar;
    p->tar.ctx = p;
    if (!list_entries(repo, tree, entries, error) || !pack_objects(repo, p, error))
        return false;
    if (ret_sum != NULL)
        *ret_sum = p->sum;
    return true;
}
