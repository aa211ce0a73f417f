/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/contents.h"

#include <string.h>

#include "base/err.h"
#include "forge/contents-parse.h"
#include "forge/records.h"

void
tree_entry_free(TreeEntry *entry)
{
    if (entry == NULL)
        return;
    g_free(entry->path);
    g_free(entry);
}

bool
contents_path_is_valid(const char *path, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);

    if (strlen(path) > CONTENTS_PATH_MAX)
        return err_set(error, ERR_INVALID, "a path has at most %d bytes", CONTENTS_PATH_MAX);
    for (guint i = 0; path[0] != '\0' && parts[i] != NULL; i++) {
        if (parts[i][0] == '\0' || strcmp(parts[i], ".") == 0 || strcmp(parts[i], "..") == 0)
            return err_set(error, ERR_INVALID, "a path has no empty, '.' or '..' part");
    }
    return true;
}

static bool
is_askable(const char *tree, const char *path, GError **error)
{
    if (!git_oid_is_valid(tree))
        return err_set(error, ERR_INVALID, "this is no object's name");
    return contents_path_is_valid(path, error);
}

static GPtrArray *
parse_entries(const GPtrArray *lines, const char *below, GError **error)
{
    g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func((GDestroyNotify)tree_entry_free);

    for (guint i = 0; i < lines->len; i++) {
        TreeEntry *entry = tree_entry_parse(lines->pdata[i], below);

        if (entry == NULL) {
            err_set(error, ERR_INTERNAL, "git listed what is no entry of a tree");
            return NULL;
        }
        g_ptr_array_add(entries, entry);
    }
    return g_steal_pointer(&entries);
}

/* The top has no entry anywhere: it is what it is asked by. */
static TreeEntry *
top_entry(GitRepo *repo, const char *tree, GError **error)
{
    g_autofree char *name = g_strconcat(tree, "^{tree}", NULL);
    g_autofree char *oid = git_text(repo, GIT_READ, GIT_ARGS("rev-parse", "--verify", "--quiet", name),
                                    error);

    if (oid == NULL || !git_oid_is_valid(oid)) {
        g_clear_error(error);
        err_set(error, ERR_NOT_FOUND, "there is no tree %s", tree);
        return NULL;
    }
    TreeEntry *entry = g_new0(TreeEntry, 1);

    *entry = (TreeEntry){.kind = ENTRY_FOLDER, .mode = TREE_MODE_FOLDER, .size = -1, .path = g_strdup("")};
    g_strlcpy(entry->oid, oid, sizeof entry->oid);
    return entry;
}

TreeEntry *
contents_entry(GitRepo *repo, const char *tree, const char *path, GError **error)
{
    if (!is_askable(tree, path, error))
        return NULL;
    if (path[0] == '\0')
        return top_entry(repo, tree, error);
    RecordsSpec spec = {
        .args = GIT_ARGS("ls-tree", "-z", "-l", "--full-tree", tree, "--", path),
        .separator = '\0',
        .max = 1,
    };
    g_autoptr(GPtrArray) lines = records_read(repo, &spec, NULL, error);
    g_autoptr(GPtrArray) entries = lines != NULL ? parse_entries(lines, "", error) : NULL;

    if (entries == NULL)
        return NULL;
    if (entries->len == 0) {
        err_set(error, ERR_NOT_FOUND, "there is no '%s'", path);
        return NULL;
    }
    return g_ptr_array_steal_index(entries, 0);
}

GPtrArray *
contents_list(GitRepo *repo, const ContentsPage *page, bool *ret_more, GError **error)
{
    g_autoptr(TreeEntry) folder = contents_entry(repo, page->tree, page->path, error);

    if (folder == NULL)
        return NULL;
    if (folder->kind != ENTRY_FOLDER) {
        err_set(error, ERR_INVALID, "'%s' is no folder", page->path);
        return NULL;
    }
    const char *args[] = {"ls-tree", "-z", "-l", folder->oid, NULL, NULL};

    if (page->recursive) {
        args[3] = "-r";
        args[4] = folder->oid;
    }
    RecordsSpec spec = {
        .args = args,
        .separator = '\0',
        .skip = page->skip,
        .max = MIN(page->max, CONTENTS_PAGE_MAX),
    };
    g_autoptr(GPtrArray) lines = records_read(repo, &spec, ret_more, error);

    return lines != NULL ? parse_entries(lines, page->path, error) : NULL;
}

bool
contents_blob(GitRepo *repo, const char *oid, size_t max, GByteArray **ret_bytes, GError **error)
{
    GitCall call = {
        .args = GIT_ARGS("cat-file", "blob", oid),
        .output_max = max > 0 ? max : CONTENTS_BLOB_MAX,
    };

    if (!is_askable(oid, "", error))
        return false;
    return git_run(repo, &call, ret_bytes, error);
}

bool
contents_file(GitRepo *repo, const char *tree, const char *path, TreeEntry **ret_entry,
              GByteArray **ret_bytes, GError **error)
{
    g_autoptr(TreeEntry) entry = contents_entry(repo, tree, path, error);

    if (entry == NULL)
        return false;
    if (entry->size < 0)
        return err_set(error, ERR_INVALID, "'%s' is no file", path);
    if (entry->size > CONTENTS_BLOB_MAX)
        return err_set(error, ERR_LIMIT, "'%s' has %" G_GINT64_FORMAT " bytes, more than %d", path,
                       entry->size, CONTENTS_BLOB_MAX);
    if (!contents_blob(repo, entry->oid, 0, ret_bytes, error))
        return false;
    if (ret_entry != NULL)
        *ret_entry = g_steal_pointer(&entry);
    return true;
}

bool
contents_stream(GitRepo *repo, const char *oid, bool (*take)(const guint8 *bytes, size_t n, void *ctx),
                void *ctx, GError **error)
{
    GitCall call = {.args = GIT_ARGS("cat-file", "blob", oid), .take = take, .ctx = ctx};

    return is_askable(oid, "", error) && git_run(repo, &call, NULL, error);
}
