/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/routes.h"
#include "api/v3/content.h"
#include "base/err.h"
#include "forge/contents-parse.h"
#include "forge/records.h"

enum { TREE_MAX = 10 * 1000 }; /* entries of one answer */

typedef struct ObjectWork {
    V3Work work;
    const char *name;
    bool recursive;
    V3Media media;
} ObjectWork;

/* ---- trees ---- */

static Json *
entry_json(const V3Place *place, const TreeEntry *entry)
{
    static const char *const types[] = {
        [ENTRY_FILE] = "blob",   [ENTRY_PROGRAM] = "blob",     [ENTRY_LINK] = "blob",
        [ENTRY_FOLDER] = "tree", [ENTRY_SUBMODULE] = "commit",
    };
    char mode[8];

    g_snprintf(mode, sizeof mode, "%06o", entry->mode);
    Json *object = json_pack("{s:o, s:s, s:s, s:s}", "path", v3_text(entry->path), "mode", mode, "type",
                             types[entry->kind], "sha", entry->oid);

    if (entry->size >= 0)
        json_object_set_new(object, "size", json_integer(entry->size));
    if (entry->kind != ENTRY_SUBMODULE) {
        g_autofree char *url = g_strdup_printf("%s/git/%s/%s", place->api,
                                               entry->kind == ENTRY_FOLDER ? "trees" : "blobs", entry->oid);

        json_object_set_new(object, "url", json_string(url));
    }
    return object;
}

static Json *
list_tree(GitRepo *git, const V3Place *place, const char *oid, bool recursive, bool *ret_more, GError **error)
{
    const char *const *args = recursive ? GIT_ARGS("ls-tree", "-z", "-l", "-r", "-t", oid)
                                        : GIT_ARGS("ls-tree", "-z", "-l", oid);
    const RecordsSpec spec = {.args = args, .separator = '\0', .max = TREE_MAX};
    g_autoptr(GPtrArray) lines = records_read(git, &spec, ret_more, error);
    g_autoptr(Json) list = json_array();

    for (guint i = 0; lines != NULL && i < lines->len; i++) {
        g_autoptr(TreeEntry) entry = tree_entry_parse(lines->pdata[i], "");

        if (entry == NULL) {
            err_set(error, ERR_INTERNAL, "git listed what is no entry of a tree");
            return NULL;
        }
        json_array_append_new(list, entry_json(place, entry));
    }
    return lines != NULL ? g_steal_pointer(&list) : NULL;
}

Json *
v3_tree(GitRepo *git, const V3Place *place, const char *name, bool recursive, GError **error)
{
    bool more = false;
    g_autoptr(TreeEntry) top = contents_entry(git, name, "", error);
    Json *list = top != NULL ? list_tree(git, place, top->oid, recursive, &more, error) : NULL;

    if (list == NULL)
        return NULL;
    g_autofree char *url = g_strdup_printf("%s/git/trees/%s", place->api, top->oid);

    return json_pack("{s:s, s:s, s:o, s:b}", "sha", top->oid, "url", url, "tree", list, "truncated", more);
}

static bool
tree_work(GitRepo *git, void *data, GError **error)
{
    ObjectWork *w = data;
    g_autofree char *name = git_oid_is_valid(w->name) ? g_strdup(w->name)
                                                      : v3_resolve(git, &w->work.place, w->name, error);

    if (name != NULL)
        w->work.value = v3_tree(git, &w->work.place, name, w->recursive, error);
    return w->work.value != NULL;
}

static void
get_tree(ApiCall *call)
{
    g_autofree char *recursive = NULL;

    if (!v3_query(call, "recursive", &recursive))
        return;
    ObjectWork *w = V3_WORK_NEW(ObjectWork, call);

    if (w == NULL)
        return;
    w->name = call_param(call, "sha");
    w->recursive = recursive != NULL; /* any value means yes */
    v3_work_read(&w->work, "show a tree", tree_work);
}

/* ---- blobs ---- */

static bool
blob_work(GitRepo *git, void *data, GError **error)
{
    ObjectWork *w = data;
    g_autoptr(GByteArray) bytes = NULL;
    g_autoptr(GError) problem = NULL;

    if (!git_oid_is_valid(w->name))
        return err_set(error, ERR_INVALID,
                       "The sha parameter must be exactly 40 characters and contain only "
                       "[0-9a-f].");
    if (!contents_blob(git, w->name, 0, &bytes, &problem)) {
        if (err_kind(problem) == ERR_LIMIT)
            w->work.error_status = 403;
        if (err_kind(problem) == ERR_INVALID)
            return err_set(error, ERR_NOT_FOUND, "there is no blob %s", w->name);
        g_propagate_error(error, g_steal_pointer(&problem));
        return false;
    }
    if (w->media == V3_RAW) {
        w->work.type = "application/vnd.github.raw; charset=utf-8";
        w->work.bytes = g_byte_array_free_to_bytes(g_steal_pointer(&bytes));
        return true;
    }
    g_autofree char *coded = g_base64_encode(bytes->data, bytes->len);
    g_autofree char *url = g_strdup_printf("%s/git/blobs/%s", w->work.place.api, w->name);

    w->work.value = json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "sha", w->name, "node_id", w->name, "url",
                              url, "size", (json_int_t)bytes->len, "encoding", "base64", "content", coded);
    return true;
}

static void
get_blob(ApiCall *call)
{
    ObjectWork *w = V3_WORK_NEW(ObjectWork, call);

    if (w == NULL)
        return;
    w->name = call_param(call, "sha");
    w->media = v3_media(call);
    v3_work_read(&w->work, "show a blob", blob_work);
}

const ApiRoute v3_objects_routes[] = {
    {"GET", V3_REPO "/git/trees/{sha...}", SCOPE_READ, ROUTE_BASIC, get_tree},
    {"GET", V3_REPO "/git/blobs/{sha}", SCOPE_READ, ROUTE_BASIC, get_blob},
    {NULL},
};
