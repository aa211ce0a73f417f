/* SPDX-License-Identifier: Apache-2.0 */
/* A commit that writes or removes one file. */
#include <string.h>

#include "api/routes.h"
#include "api/v3/content.h"
#include "api/v3/push.h"
#include "base/err.h"
#include "forge/object-write.h"
#include "forge/repo.h"
#include "forge/tree-edit.h"

enum { MODE_FILE = 0100644 };

typedef struct WriteWork {
    V3Push push;
    const char *path, *branch, *message, *sha;
    const char *bytes; /* NULL: it is removed */
    gsize n_bytes;
    Json *author, *committer; /* of the body */
} WriteWork;

/* What the file has to be before: nothing, or the blob that the caller knows. */
static bool
check_known(WriteWork *w, const TreeEntry *old, GError **error)
{
    if (old != NULL && old->kind == ENTRY_FOLDER)
        return err_set(error, ERR_INVALID, "'%s' is a folder", w->path);
    if (old != NULL && w->bytes != NULL && old->kind == ENTRY_SUBMODULE)
        return err_set(error, ERR_INVALID, "'%s' is a submodule", w->path);
    if (old != NULL && w->sha == NULL)
        return err_set(error, ERR_INVALID, "Invalid request. \"sha\" wasn't supplied.");
    if (w->sha == NULL || (old != NULL && strcmp(old->oid, w->sha) == 0))
        return true;
    return err_set(error, ERR_CONFLICT, "%s does not match %s", w->path, w->sha);
}

/* NULL in `*ret`: it is not there. */
static bool
find_old(GitRepo *git, const char *tip, const char *path, TreeEntry **ret, GError **error)
{
    g_autoptr(GError) problem = NULL;

    *ret = tip != NULL ? contents_entry(git, tip, path, &problem) : NULL;
    if (problem == NULL || err_kind(problem) == ERR_NOT_FOUND)
        return true;
    g_propagate_error(error, g_steal_pointer(&problem));
    return false;
}

static bool
edit_tree(GitRepo *git, WriteWork *w, const char *tip, const TreeEntry *old, GPtrArray *objects,
          char ret_tree[GIT_OID_LEN + 1], GError **error)
{
    g_autoptr(TreeEditor) editor = tree_editor_new(git, tip);

    if (w->bytes != NULL) {
        GString *bytes = g_string_new_len(w->bytes, (gssize)w->n_bytes);
        NewObject *blob = new_object_make(OBJECT_BLOB, bytes);

        g_ptr_array_add(objects, blob);
        if (!tree_editor_put(editor, w->path, old != NULL ? old->mode : MODE_FILE, blob->oid, error))
            return false;
    } else if (!tree_editor_remove(editor, w->path, error)) {
        return false;
    }
    return tree_editor_end(editor, objects, ret_tree, error);
}

static NewObject *
make_commit(WriteWork *w, const char *tree, const char *tip, GError **error)
{
    const char *const parents[] = {tip, NULL};
    MergePerson author, committer;

    if (!v3_person_read(&w->push.work, w->committer, &committer, error) ||
        !v3_person_read(&w->push.work, w->author != NULL ? w->author : w->committer, &author, error))
        return NULL;
    return new_object_make(OBJECT_COMMIT, commit_text_new(tree, parents, &author, &committer, w->message));
}

static bool
render(GitRepo *git, WriteWork *w, const char *commit_oid, GError **error)
{
    const V3Place *place = &w->push.work.place;
    g_autoptr(GitCommit) commit = commit_read(git, commit_oid, error);
    Json *content = json_null();

    if (commit == NULL)
        return false;
    if (w->bytes != NULL) {
        g_autoptr(TreeEntry) entry = contents_entry(git, commit_oid, w->path, error);

        if (entry == NULL)
            return false;
        content = v3_content(place, entry, w->branch);
    }
    w->push.work.value = json_pack("{s:o, s:o}", "content", content, "commit", v3_git_commit(place, commit));
    return true;
}

/* NULL in `*ret`: the branch is not there, which only the first commit of all may find. */
static bool
find_tip(GitRepo *git, WriteWork *w, char **ret, GError **error)
{
    g_autoptr(GError) problem = NULL;
    bool first = strcmp(w->branch, w->push.work.place.branch) == 0 && w->bytes != NULL;

    *ret = git_branch_oid(git, w->branch, &problem);
    if (*ret != NULL || (first && err_kind(problem) == ERR_NOT_FOUND))
        return true;
    if (err_kind(problem) == ERR_NOT_FOUND)
        return err_set(error, ERR_NOT_FOUND, "Branch %s not found", w->branch);
    g_propagate_error(error, g_steal_pointer(&problem));
    return false;
}

static bool
write_work(GitRepo *git, void *data, GError **error)
{
    WriteWork *w = data;
    g_autoptr(GPtrArray) objects = g_ptr_array_new_with_free_func((GDestroyNotify)new_object_free);
    g_autoptr(TreeEntry) old = NULL;
    g_autofree char *tip = NULL;
    char tree[GIT_OID_LEN + 1];

    if (!find_tip(git, w, &tip, error) || !find_old(git, tip, w->path, &old, error))
        return false;
    if (old == NULL && w->bytes == NULL)
        return err_set(error, ERR_NOT_FOUND, "there is no '%s'", w->path);
    if (!check_known(w, old, error) || !edit_tree(git, w, tip, old, objects, tree, error))
        return false;
    NewObject *commit = make_commit(w, tree, tip, error);

    if (commit == NULL)
        return false;
    g_ptr_array_add(objects, commit);
    const V3Move move = {.old = tip != NULL ? tip : git_oid_zero, .new = commit->oid};

    if (!objects_write(git, objects, error) || !v3_push_move(git, &w->push, &move, error))
        return false;
    w->push.work.status = old != NULL ? 200 : 201;
    return render(git, w, commit->oid, error);
}

/* ---- asking ---- */

bool
v3_is_base64(const char *text)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n";

    return strspn(text, alphabet) == strlen(text);
}

/* False: answered. */
static bool
is_base64(ApiCall *call, const char *content)
{
    if (v3_is_base64(content))
        return true;
    v3_respond_invalid(call, &(V3Invalid){"Content", "content", "invalid", "content is not valid Base64"});
    return false;
}

/* `content` NULL: it is to be removed. */
static void
begin(ApiCall *call, Json *body, WriteWork *asked, const char *content)
{
    if (content != NULL && !is_base64(call, content))
        return;
    WriteWork *w = V3_WORK_NEW(WriteWork, call);

    if (w == NULL)
        return;
    asked->push.work = w->push.work;
    *w = *asked;
    V3Work *work = &w->push.work;

    work->body = json_incref(body);
    w->path = call_param(call, "path");
    if (w->branch == NULL)
        w->branch = work->place.branch;
    g_autofree char *ref = g_strconcat("refs/heads/", w->branch, NULL);

    w->push.ref = g_string_chunk_insert(work->texts, ref);
    if (content != NULL) {
        g_autofree guchar *bytes = g_base64_decode(content, &w->n_bytes);

        w->bytes = g_string_chunk_insert_len(work->texts, (const char *)bytes, (gssize)w->n_bytes);
    }
    v3_push_begin(&w->push, content != NULL ? "write a file" : "remove a file", write_work);
}

static void
put(ApiCall *call, Json *body, void *data)
{
    WriteWork asked = {0};
    const char *content = NULL;
    const JsonField fields[] = {
        {"message", JSON_KIND_STRING, &asked.message, true, 1, COMMIT_MESSAGE_MAX},
        {"content", JSON_KIND_STRING, &content, true, 0, CONTENTS_BLOB_MAX},
        {"branch", JSON_KIND_STRING, &asked.branch, false, 1, REPO_BRANCH_NAME_MAX},
        {"sha", JSON_KIND_STRING, &asked.sha, false, 1, GIT_OID_LEN},
        {"author", JSON_KIND_OBJECT, &asked.author},
        {"committer", JSON_KIND_OBJECT, &asked.committer},
        {NULL},
    };

    if (v3_read_fields(call, body, fields, "Content"))
        begin(call, body, &asked, content);
}

static void
put_contents(ApiCall *call)
{
    call_read_json(call, put, NULL);
}

static void
remove_file(ApiCall *call, Json *body, void *data)
{
    WriteWork asked = {0};
    const JsonField fields[] = {
        {"message", JSON_KIND_STRING, &asked.message, true, 1, COMMIT_MESSAGE_MAX},
        {"sha", JSON_KIND_STRING, &asked.sha, true, 1, GIT_OID_LEN},
        {"branch", JSON_KIND_STRING, &asked.branch, false, 1, REPO_BRANCH_NAME_MAX},
        {"author", JSON_KIND_OBJECT, &asked.author},
        {"committer", JSON_KIND_OBJECT, &asked.committer},
        {NULL},
    };

    if (v3_read_fields(call, body, fields, "Content"))
        begin(call, body, &asked, NULL);
}

static void
delete_contents(ApiCall *call)
{
    call_read_json(call, remove_file, NULL);
}

const ApiRoute v3_contents_write_routes[] = {
    {"PUT", V3_REPO "/contents/{path...}", SCOPE_BOX, ROUTE_BASIC, put_contents},
    {"DELETE", V3_REPO "/contents/{path...}", SCOPE_BOX, ROUTE_BASIC, delete_contents},
    {NULL},
};
