/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/routes.h"
#include "api/v3/content.h"
#include "base/err.h"
#include "http/url.h"

static const char raw_type[] = "application/vnd.github.raw; charset=utf-8";

typedef struct ContentsWork {
    V3Work work;
    const char *path, *ref;
    V3Media media;
} ContentsWork;

static const char *
type_name(EntryKind kind)
{
    static const char *const names[] = {
        [ENTRY_FILE] = "file",  [ENTRY_PROGRAM] = "file",        [ENTRY_LINK] = "symlink",
        [ENTRY_FOLDER] = "dir", [ENTRY_SUBMODULE] = "submodule",
    };

    return names[kind];
}

Json *
v3_content(const V3Place *place, const TreeEntry *entry, const char *ref)
{
    const char *slash = strrchr(entry->path, '/');
    g_autofree char *path = url_encode_path(entry->path);
    g_autofree char *at = url_encode_path(ref);
    g_autofree char *url = g_strdup_printf("%s/contents/%s?ref=%s", place->api, path, at);
    g_autofree char *html = g_strdup_printf("%s/%s/%s/%s", place->html,
                                            entry->kind == ENTRY_FOLDER ? "tree" : "blob", at, path);
    g_autofree char *git = g_strdup_printf("%s/git/%s/%s", place->api,
                                           entry->kind == ENTRY_FOLDER ? "trees" : "blobs", entry->oid);

    return json_pack("{s:s, s:o, s:o, s:s, s:I, s:s, s:s, s:s, s:n, s:{s:s, s:s, s:s}}", "type",
                     type_name(entry->kind), "name", v3_text(slash != NULL ? slash + 1 : entry->path), "path",
                     v3_text(entry->path), "sha", entry->oid, "size", (json_int_t)MAX(entry->size, 0), "url",
                     url, "html_url", html, "git_url", git, "download_url", "_links", "self", url, "html",
                     html, "git", git);
}

/* What is too large is said to be there, without its bytes. */
static bool
add_bytes(GitRepo *git, Json *content, const TreeEntry *entry, GError **error)
{
    g_autoptr(GByteArray) bytes = NULL;

    if (entry->kind == ENTRY_SUBMODULE || entry->size > CONTENTS_BLOB_MAX) {
        json_object_set_new(content, "encoding", json_string("none"));
        json_object_set_new(content, "content", json_string(""));
        return true;
    }
    if (!contents_blob(git, entry->oid, 0, &bytes, error))
        return false;
    g_autofree char *coded = g_base64_encode(bytes->data, bytes->len);

    json_object_set_new(content, "encoding", json_string("base64"));
    json_object_set_new(content, "content", json_string(coded));
    if (entry->kind == ENTRY_LINK)
        json_object_set_new(content, "target", v3_text((const char *)bytes->data));
    return true;
}

static bool
list_folder(GitRepo *git, ContentsWork *w, const char *commit, const char *ref, GError **error)
{
    const ContentsPage page = {.tree = commit, .path = w->path, .max = CONTENTS_PAGE_MAX};
    g_autoptr(GPtrArray) entries = contents_list(git, &page, NULL, error);
    Json *list = json_array();

    w->work.value = list;
    for (guint i = 0; entries != NULL && i < entries->len; i++)
        json_array_append_new(list, v3_content(&w->work.place, entries->pdata[i], ref));
    return entries != NULL;
}

static bool
get_work(GitRepo *git, void *data, GError **error)
{
    ContentsWork *w = data;
    const char *ref = w->ref != NULL ? w->ref : w->work.place.branch;
    g_autofree char *commit = v3_resolve(git, &w->work.place, w->ref, error);
    g_autoptr(TreeEntry) entry = commit != NULL ? contents_entry(git, commit, w->path, error) : NULL;

    if (entry == NULL)
        return false;
    if (entry->kind == ENTRY_FOLDER)
        return list_folder(git, w, commit, ref, error);
    if (w->media == V3_RAW && entry->size >= 0) {
        g_autoptr(GByteArray) bytes = NULL;

        w->work.error_status = entry->size > CONTENTS_BLOB_MAX ? 403 : 0;
        if (!contents_file(git, commit, w->path, NULL, &bytes, error))
            return false;
        w->work.type = raw_type;
        w->work.bytes = g_byte_array_free_to_bytes(g_steal_pointer(&bytes));
        return true;
    }
    w->work.value = v3_content(&w->work.place, entry, ref);
    return add_bytes(git, w->work.value, entry, error);
}

static void
get_contents(ApiCall *call)
{
    const char *path = call_param(call, "path");
    g_autofree char *ref = NULL;

    if (!v3_query(call, "ref", &ref))
        return;
    ContentsWork *w = V3_WORK_NEW(ContentsWork, call);

    if (w == NULL)
        return;
    w->path = path != NULL ? path : "";
    w->ref = v3_work_text(&w->work, ref);
    w->media = v3_media(call);
    v3_work_read(&w->work, "show contents", get_work);
}

const ApiRoute v3_contents_routes[] = {
    {"GET", V3_REPO "/contents", SCOPE_READ, ROUTE_BASIC, get_contents},
    {"GET", V3_REPO "/contents/{path...}", SCOPE_READ, ROUTE_BASIC, get_contents},
    {NULL},
};
