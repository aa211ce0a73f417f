/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/hook-push.h"

#include <string.h>

static Json *
person(const GitPerson *person)
{
    return json_pack("{s:s, s:s}", "name", person->name, "email", person->email);
}

/* Moved files are one that is gone and one that is new, as GitHub counts them here. */
static void
add_changes(Json *object, const DiffPage *changes)
{
    Json *added = json_array(), *removed = json_array(), *modified = json_array();

    for (guint i = 0; i < changes->files->len; i++) {
        const DiffFile *file = changes->files->pdata[i];
        bool is_new = file->status == DIFF_ADDED || file->status == DIFF_RENAMED;

        if (file->status == DIFF_RENAMED)
            json_array_append_new(removed, v3_text(file->old_path));
        json_array_append_new(is_new                         ? added
                              : file->status == DIFF_REMOVED ? removed
                                                             : modified,
                              v3_text(file->path));
    }
    json_object_set_new(object, "added", added);
    json_object_set_new(object, "removed", removed);
    json_object_set_new(object, "modified", modified);
}

static Json *
commit_json(const V3Scene *scene, const GitCommit *commit, const DiffPage *changes)
{
    g_autofree char *message = g_strchomp(g_strdup(commit->message));
    Json *object = json_pack("{s:s, s:s, s:b, s:s, s:o, s:o, s:o, s:o}", "id", commit->oid, "tree_id",
                             commit->tree, "distinct", true, "message", message, "timestamp",
                             v3_time(MAX(commit->committer.time_s, 1) * G_USEC_PER_SEC), "url",
                             v3_format("%s/commit/%s", scene->place->html, commit->oid), "author",
                             person(&commit->author), "committer", person(&commit->committer));

    if (changes != NULL)
        add_changes(object, changes);
    return object;
}

static const DiffPage *
changes_of_head(const HookPush *push)
{
    for (guint i = 0; i < push->commits->len; i++) {
        const HookCommit *c = push->commits->pdata[i];

        if (strcmp(c->commit->oid, push->head->oid) == 0)
            return c->changes;
    }
    return NULL;
}

static void
add_commits(const V3Scene *scene, const HookPush *push, Json *body)
{
    Json *commits = json_array();

    for (guint i = 0; push != NULL && i < push->commits->len; i++) {
        const HookCommit *c = push->commits->pdata[i];

        json_array_append_new(commits, commit_json(scene, c->commit, c->changes));
    }
    json_object_set_new(body, "commits", commits);
    json_object_set_new(body, "head_commit",
                        push != NULL && push->head != NULL
                            ? commit_json(scene, push->head, changes_of_head(push))
                            : json_null());
    json_object_set_new(body, "forced", json_boolean(push != NULL && push->forced));
}

void
v3_hook_push(const V3Scene *scene, const HookEvent *event, Json *body)
{
    const char *before = row_text(event->data, "before"), *after = row_text(event->data, "after");

    json_object_set(body, "ref", json_object_get(event->data, "ref"));
    json_object_set_new(body, "before", json_string(before));
    json_object_set_new(body, "after", json_string(after));
    json_object_set_new(body, "created", json_boolean(strcmp(before, git_oid_zero) == 0));
    json_object_set_new(body, "deleted", json_boolean(strcmp(after, git_oid_zero) == 0));
    json_object_set_new(body, "base_ref", json_null());
    json_object_set_new(body, "compare",
                        v3_format("%s/compare/%.12s...%.12s", scene->place->html, before, after));
    add_commits(scene, event->push, body);
    json_object_set_new(body, "pusher",
                        json_pack("{s:O?, s:n}", "name", json_object_get(event->sender, "login"), "email"));
}
