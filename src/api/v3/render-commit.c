/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/render.h"
#include "http/url.h"

Json *
v3_text(const char *bytes)
{
    g_autofree char *valid = g_utf8_make_valid(bytes, -1);

    return json_string(valid);
}

static Json *
person_json(const GitPerson *person)
{
    /* A commit may say any number; times beyond what can be written are shown as the nearest. */
    gint64 s = CLAMP(person->time_s, G_MININT64 / G_USEC_PER_SEC, G_MAXINT64 / G_USEC_PER_SEC);

    return json_pack("{s:s, s:s, s:o}", "name", person->name, "email", person->email, "date",
                     s == 0 ? json_string("1970-01-01T00:00:00Z") : v3_time(s * G_USEC_PER_SEC));
}

static Json *
link_json(const char *api, const char *html, const char *kind, const char *oid)
{
    g_autofree char *url = g_strdup_printf("%s/%s/%s", api, kind, oid);
    Json *object = json_pack("{s:s, s:s}", "sha", oid, "url", url);

    if (html != NULL) {
        g_autofree char *page = g_strdup_printf("%s/commit/%s", html, oid);

        json_object_set_new(object, "html_url", json_string(page));
    }
    return object;
}

static Json *
parents_json(const V3Place *place, const GitCommit *commit, const char *kind)
{
    Json *list = json_array();

    for (char **p = commit->parents; *p != NULL; p++)
        json_array_append_new(list, link_json(place->api, place->html, kind, *p));
    return list;
}

/* Nobody here says whose key a signature is from. */
static Json *
verification_json(const GitCommit *commit)
{
    return json_pack("{s:b, s:s, s:n, s:n, s:n}", "verified", false, "reason",
                     commit->is_signed ? "unknown_signature_type" : "unsigned", "signature", "payload",
                     "verified_at");
}

static void
add_body(Json *object, const V3Place *place, const GitCommit *commit)
{
    json_object_set_new(object, "author", person_json(&commit->author));
    json_object_set_new(object, "committer", person_json(&commit->committer));
    g_autofree char *message = g_strchomp(g_strdup(commit->message));

    json_object_set_new(object, "message", json_string(message));
    json_object_set_new(object, "tree", link_json(place->api, NULL, "git/trees", commit->tree));
    json_object_set_new(object, "verification", verification_json(commit));
}

Json *
v3_git_commit(const V3Place *place, const GitCommit *commit)
{
    Json *object = link_json(place->api, place->html, "git/commits", commit->oid);

    json_object_set_new(object, "node_id", json_string(commit->oid));
    add_body(object, place, commit);
    json_object_set_new(object, "parents", parents_json(place, commit, "git/commits"));
    return object;
}

Json *
v3_commit(const V3Place *place, const GitCommit *commit)
{
    Json *object = link_json(place->api, place->html, "commits", commit->oid);
    g_autofree char *url = g_strdup_printf("%s/git/commits/%s", place->api, commit->oid);
    g_autofree char *comments = g_strdup_printf("%s/commits/%s/comments", place->api, commit->oid);
    Json *inner = json_pack("{s:s, s:i}", "url", url, "comment_count", 0);

    add_body(inner, place, commit);
    json_object_set_new(object, "node_id", json_string(commit->oid));
    json_object_set_new(object, "comments_url", json_string(comments));
    json_object_set_new(object, "commit", inner);
    json_object_set_new(object, "author", json_null());
    json_object_set_new(object, "committer", json_null());
    json_object_set_new(object, "parents", parents_json(place, commit, "commits"));
    return object;
}

static void
add_file_links(Json *object, const V3Place *place, const char *path, const char *head)
{
    g_autofree char *name = url_encode_path(path);
    g_autofree char *blob = g_strdup_printf("%s/blob/%s/%s", place->html, head, name);
    g_autofree char *raw = g_strdup_printf("%s/raw/%s/%s", place->html, head, name);
    g_autofree char *contents = g_strdup_printf("%s/contents/%s?ref=%s", place->api, name, head);

    json_object_set_new(object, "blob_url", json_string(blob));
    json_object_set_new(object, "raw_url", json_string(raw));
    json_object_set_new(object, "contents_url", json_string(contents));
}

Json *
v3_file(const V3Place *place, const DiffFile *file, const char *head)
{
    const char *oid = file->status == DIFF_REMOVED ? file->old_oid : file->new_oid;
    Json *object = json_pack("{s:s, s:o, s:s, s:i, s:i, s:i}", "sha", oid, "filename", v3_text(file->path),
                             "status", diff_status_name(file->status), "additions", (int)file->additions,
                             "deletions", (int)file->deletions, "changes",
                             (int)(file->additions + file->deletions));

    add_file_links(object, place, file->path, head);
    if (file->old_path != NULL)
        json_object_set_new(object, "previous_filename", v3_text(file->old_path));
    if (file->patch != NULL) {
        /* Its last line does not end. */
        bool ended = file->patch->len > 0 && file->patch->str[file->patch->len - 1] == '\n';
        g_autofree char *patch = g_strndup(file->patch->str, file->patch->len - ended);

        json_object_set_new(object, "patch", v3_text(patch));
    }
    return object;
}
