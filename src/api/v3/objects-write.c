/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that no ref names yet: a client makes blobs, trees and a commit one by one, and then moves a branch
 * to it, under the rules of pushes. */
#include <string.h>

#include "api/routes.h"
#include "api/v3/content.h"
#include "api/v3/push.h"
#include "api/v3/scene.h"
#include "base/err.h"
#include "forge/object-write.h"
#include "forge/tree-edit.h"

enum {
    ENTRIES_MAX = 10 * 1000, /* of one call */
    TEXTS_MAX = 1000,        /* files among them that are given by their text */
    MODE_LEN = 6,
};

typedef struct MakeWork {
    V3Work work;
    const char *bytes; /* of a blob */
    gsize n_bytes;
    const char *base_tree; /* NULL: none */
    Json *entries;         /* of a tree */
    const char *message, *tree, *tag, *object, *type;
    Json *parents, *author, *committer;
} MakeWork;

static GPtrArray *
new_objects(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)new_object_free);
}

/* What git will not have, because it names nothing or is no such thing, is the caller's mistake. */
static bool
write_one(GitRepo *git, NewObject *object, GError **error)
{
    g_autoptr(GPtrArray) objects = new_objects();

    g_ptr_array_add(objects, object);
    return objects_write(git, objects, error);
}

/* `asked` has the fields that the body gave; takes nothing.  No ref names what is made, so it needs no place
 * among the writes of its repository, and holds none of them up. */
static void
begin(ApiCall *call, Json *body, MakeWork *asked, const char *what, V3WorkFunc func)
{
    MakeWork *w = V3_WORK_NEW(MakeWork, call);

    if (w == NULL)
        return;
    asked->work = w->work;
    *w = *asked;
    w->work.body = json_incref(body);
    w->work.is_rowed = true;
    w->work.status = 201;
    v3_work_read(&w->work, what, func);
}

/* ---- blobs ---- */

static bool
blob_work(GitRepo *git, void *data, GError **error)
{
    MakeWork *w = data;
    const char *text = w->bytes;
    g_autofree guchar *decoded = w->type != NULL ? g_base64_decode(text, &w->n_bytes) : NULL;
    GString *bytes = g_string_new_len(decoded != NULL ? (const char *)decoded : text,
                                      (gssize)(decoded != NULL ? w->n_bytes : strlen(text)));
    NewObject *blob = new_object_make(OBJECT_BLOB, bytes);
    g_autofree char *oid = g_strdup(blob->oid);

    if (!write_one(git, blob, error))
        return false;
    w->work.value = json_pack("{s:s, s:o}", "sha", oid, "url",
                              v3_format("%s/git/blobs/%s", w->work.place.api, oid));
    return true;
}

static void
make_blob(ApiCall *call, Json *body, void *data)
{
    const char *encoding = "utf-8";
    MakeWork asked = {0};
    const JsonField fields[] = {
        {"content", JSON_KIND_STRING, &asked.bytes, true, 0, CONTENTS_BLOB_MAX},
        {"encoding", JSON_KIND_STRING, &encoding, false, 1, 16},
        {NULL},
    };

    if (!v3_read_fields(call, body, fields, "Blob"))
        return;
    bool coded = g_ascii_strcasecmp(encoding, "base64") == 0;

    if (!coded && g_ascii_strcasecmp(encoding, "utf-8") != 0) {
        v3_respond_invalid(call, &(V3Invalid){"Blob", "encoding", "invalid", NULL});
        return;
    }
    if (coded && !v3_is_base64(asked.bytes)) {
        v3_respond_invalid(call, &(V3Invalid){"Blob", "content", "invalid", "content is not valid Base64"});
        return;
    }
    asked.type = coded ? encoding : NULL;
    begin(call, body, &asked, "make a blob", blob_work);
}

static void
post_blob(ApiCall *call)
{
    call_read_json(call, make_blob, NULL);
}

/* ---- trees ---- */

static bool
read_mode(const char *text, const char *type, guint *ret_mode, GError **error)
{
    static const struct {
        const char *mode, *type;
        guint value;
    } modes[] = {{"100644", "blob", 0100644},
                 {"100755", "blob", 0100755},
                 {"120000", "blob", 0120000},
                 {"040000", "tree", 040000},
                 {"160000", "commit", 0160000}};

    for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
        if (g_strcmp0(text, modes[i].mode) != 0)
            continue;
        *ret_mode = modes[i].value;
        return type == NULL || strcmp(type, modes[i].type) == 0 ||
               err_set(error, ERR_INVALID, "tree.mode %s is no %s", text, type);
    }
    return err_set(error, ERR_INVALID, "tree.mode must be one of 100644, 100755, 040000, 160000, and 120000");
}

/* `sha` null: it goes; `content`: a file of that text. */
static bool
put_entry(TreeEditor *editor, const Json *entry, GPtrArray *objects, GError **error)
{
    const char *path = json_string_value(json_object_get(entry, "path"));
    const char *sha = json_string_value(json_object_get(entry, "sha"));
    const char *content = json_string_value(json_object_get(entry, "content"));
    guint mode = 0;

    if (path == NULL)
        return err_set(error, ERR_INVALID, "tree.path is missing");
    if (json_is_null(json_object_get(entry, "sha")))
        return tree_editor_remove(editor, path, error);
    if (!read_mode(json_string_value(json_object_get(entry, "mode")),
                   json_string_value(json_object_get(entry, "type")), &mode, error))
        return false;
    if ((sha == NULL) == (content == NULL))
        return err_set(error, ERR_INVALID, "'%s' needs either sha or content", path);
    if (sha != NULL)
        return (git_oid_is_valid(sha) || err_set(error, ERR_INVALID, "tree.sha is no object's name")) &&
               tree_editor_put(editor, path, mode, sha, error);
    if (objects->len == TEXTS_MAX)
        return err_set(error, ERR_INVALID, "at most %d files can be given by their content: make blobs first",
                       TEXTS_MAX);
    NewObject *blob = new_object_make(OBJECT_BLOB, g_string_new(content));

    g_ptr_array_add(objects, blob);
    return tree_editor_put(editor, path, mode, blob->oid, error);
}

static void
read_ahead(TreeEditor *editor, const Json *entries)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new();
    size_t i;
    Json *entry;

    json_array_foreach(entries, i, entry)
    {
        const char *path = json_string_value(json_object_get(entry, "path"));

        if (path != NULL)
            g_ptr_array_add(paths, (gpointer)(guintptr)path);
    }
    tree_editor_read_ahead(editor, paths);
}

static bool
tree_work(GitRepo *git, void *data, GError **error)
{
    MakeWork *w = data;
    g_autoptr(TreeEditor) editor = tree_editor_new(git, w->base_tree);
    g_autoptr(GPtrArray) objects = new_objects();
    g_autoptr(GError) problem = NULL;
    char oid[GIT_OID_LEN + 1];
    size_t i;
    Json *entry;

    read_ahead(editor, w->entries);
    json_array_foreach(w->entries, i, entry)
    {
        if (!put_entry(editor, entry, objects, &problem))
            break;
    }
    if (problem == NULL && tree_editor_end(editor, objects, oid, &problem) &&
        objects_write(git, objects, &problem)) {
        w->work.value = v3_tree(git, &w->work.place, oid, false, error);
        return w->work.value != NULL;
    }
    /* A base, or a file to be removed, that is not there. */
    if (err_kind(problem) == ERR_NOT_FOUND)
        w->work.error_status = 422;
    g_propagate_error(error, g_steal_pointer(&problem));
    return false;
}

static void
make_tree(ApiCall *call, Json *body, void *data)
{
    MakeWork asked = {0};
    const JsonField fields[] = {
        {"tree", JSON_KIND_ARRAY, &asked.entries, true},
        {"base_tree", JSON_KIND_STRING, &asked.base_tree, false, GIT_OID_LEN, GIT_OID_LEN},
        {NULL},
    };

    if (!v3_read_fields(call, body, fields, "Tree"))
        return;
    if (json_array_size(asked.entries) == 0 || json_array_size(asked.entries) > ENTRIES_MAX)
        v3_respond_invalid(call, &(V3Invalid){"Tree", "tree", "invalid", "it has 1 to 10,000 entries"});
    else if (asked.base_tree != NULL && !git_oid_is_valid(asked.base_tree))
        v3_respond_invalid(call, &(V3Invalid){"Tree", "base_tree", "invalid", NULL});
    else
        begin(call, body, &asked, "make a tree", tree_work);
}

static void
post_tree(ApiCall *call)
{
    call_read_json(call, make_tree, NULL);
}

/* ---- commits ---- */

static bool
read_parents(const MakeWork *w, GPtrArray *ret_parents, GError **error)
{
    size_t i;
    Json *parent;

    if (json_array_size(w->parents) > COMMIT_PARENTS_MAX)
        return err_set(error, ERR_INVALID, "a commit has at most %d parents", COMMIT_PARENTS_MAX);
    json_array_foreach(w->parents, i, parent)
    {
        const char *oid = json_string_value(parent);

        if (oid == NULL || !git_oid_is_valid(oid))
            return err_set(error, ERR_INVALID, "a parent is named by 40 hex digits");
        g_ptr_array_add(ret_parents, (gpointer)(guintptr)oid);
    }
    g_ptr_array_add(ret_parents, NULL);
    return true;
}

static bool
commit_work(GitRepo *git, void *data, GError **error)
{
    MakeWork *w = data;
    g_autoptr(GPtrArray) parents = g_ptr_array_new();
    MergePerson author, committer;

    if (!git_oid_is_valid(w->tree))
        return err_set(error, ERR_INVALID, "tree is no object's name");
    if (!read_parents(w, parents, error) || !v3_person_read(&w->work, w->author, &author, error) ||
        !v3_person_read(&w->work, w->committer != NULL ? w->committer : w->author, &committer, error))
        return false;
    GString *text = commit_text_new(w->tree, (const char *const *)parents->pdata, &author, &committer,
                                    w->message);
    NewObject *object = new_object_make(OBJECT_COMMIT, text);
    g_autofree char *oid = g_strdup(object->oid);
    g_autoptr(GitCommit) commit = write_one(git, object, error) ? commit_read(git, oid, error) : NULL;

    if (commit == NULL)
        return false;
    w->work.value = v3_git_commit(&w->work.place, commit);
    return true;
}

static void
make_commit(ApiCall *call, Json *body, void *data)
{
    MakeWork asked = {0};
    const JsonField fields[] = {
        {"message", JSON_KIND_STRING, &asked.message, true, 1, COMMIT_MESSAGE_MAX},
        {"tree", JSON_KIND_STRING, &asked.tree, true, 1, GIT_OID_LEN},
        {"parents", JSON_KIND_ARRAY, &asked.parents},
        {"author", JSON_KIND_OBJECT, &asked.author},
        {"committer", JSON_KIND_OBJECT, &asked.committer},
        {NULL},
    };

    if (!v3_read_fields(call, body, fields, "Commit"))
        return;
    if (json_object_get(body, "signature") != NULL)
        v3_respond_invalid(call, &(V3Invalid){"Commit", "signature", "unprocessable", NULL});
    else
        begin(call, body, &asked, "make a commit", commit_work);
}

static void
post_commit(ApiCall *call)
{
    call_read_json(call, make_commit, NULL);
}

/* ---- tags ---- */

static bool
tag_work(GitRepo *git, void *data, GError **error)
{
    MakeWork *w = data;
    MergePerson tagger;

    if (!git_branch_is_valid(w->tag, error) || !v3_person_read(&w->work, w->author, &tagger, error))
        return false;
    if (!git_oid_is_valid(w->object))
        return err_set(error, ERR_INVALID, "object is no object's name");
    GString *text = tag_text_new(w->object, w->type, w->tag, &tagger, w->message);
    NewObject *tag = new_object_make(OBJECT_TAG, text);
    g_autofree char *oid = g_strdup(tag->oid);

    if (!write_one(git, tag, error))
        return false;
    w->work.value = v3_tag(git, &w->work.place, oid, error);
    return w->work.value != NULL;
}

static void
make_tag(ApiCall *call, Json *body, void *data)
{
    static const char *const types[] = {"commit", "tree", "blob", NULL};
    MakeWork asked = {0};
    const JsonField fields[] = {
        {"tag", JSON_KIND_STRING, &asked.tag, true, 1, COMMIT_NAME_MAX},
        {"message", JSON_KIND_STRING, &asked.message, true, 0, COMMIT_MESSAGE_MAX},
        {"object", JSON_KIND_STRING, &asked.object, true, 1, GIT_OID_LEN},
        {"type", JSON_KIND_STRING, &asked.type, true, 1, 8},
        {"tagger", JSON_KIND_OBJECT, &asked.author},
        {NULL},
    };

    if (!v3_read_fields(call, body, fields, "Tag"))
        return;
    if (!g_strv_contains(types, asked.type))
        v3_respond_invalid(call, &(V3Invalid){"Tag", "type", "invalid", NULL});
    else
        begin(call, body, &asked, "make a tag", tag_work);
}

static void
post_tag(ApiCall *call)
{
    call_read_json(call, make_tag, NULL);
}

const ApiRoute v3_objects_write_routes[] = {
    {"POST", V3_REPO "/git/blobs", SCOPE_BOX, ROUTE_BASIC, post_blob},
    {"POST", V3_REPO "/git/trees", SCOPE_BOX, ROUTE_BASIC, post_tree},
    {"POST", V3_REPO "/git/commits", SCOPE_BOX, ROUTE_BASIC, post_commit},
    {"POST", V3_REPO "/git/tags", SCOPE_BOX, ROUTE_BASIC, post_tag},
    {NULL},
};
