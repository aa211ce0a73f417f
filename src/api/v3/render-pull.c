/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/v3/scene.h"

#define NUMBER "%" G_GINT64_FORMAT

/* ---- whether it can be merged ---- */

static bool
is_open(const Json *thread)
{
    return strcmp(row_text(thread, "state"), "open") == 0;
}

/* What git was asked is of these two tips. */
static bool
is_compared(const Json *thread)
{
    return g_strcmp0(row_text(thread, "compared_head"), row_text(thread, "head_oid")) == 0 &&
           g_strcmp0(row_text(thread, "compared_base"), row_text(thread, "base_oid")) == 0;
}

static bool
has_reason(const Json *reasons, const char *rule)
{
    size_t i;
    Json *reason;

    json_array_foreach(reasons, i, reason)
    {
        if (strcmp(row_text(reason, "rule"), rule) == 0)
            return true;
    }
    return false;
}

const char *
v3_mergeable_state(const Json *thread)
{
    const Json *reasons = json_object_get(json_object_get(thread, "merge"), "reasons");

    if (!is_open(thread) || !is_compared(thread))
        return "unknown";
    if (row_is(thread, "conflicts"))
        return "dirty";
    if (row_is(thread, "draft"))
        return "draft";
    /* Before the other rules: it is what the caller can put right himself. */
    if (has_reason(reasons, "behind"))
        return "behind";
    return reasons == NULL || json_array_size(reasons) > 0 ? "blocked" : "clean";
}

static Json *
mergeable(const Json *thread)
{
    return is_open(thread) && is_compared(thread) ? json_boolean(!row_is(thread, "conflicts")) : json_null();
}

/* ---- its parts ---- */

static Json *
side(const V3Scene *scene, const Json *thread, const char *branch, const char *oid)
{
    const char *name = row_text(thread, branch);

    return json_pack("{s:o, s:s, s:s?, s:o, s:o}", "label", v3_format("%s:%s", scene->info->owner, name),
                     "ref", name, "sha", row_text(thread, oid), "user",
                     v3_owner(scene->place, scene->info->owner), "repo",
                     v3_repository(scene->place, scene->info));
}

/* Addresses, and under which name `_links` has them. */
static void
add_links(Json *pull, const V3Scene *scene, const Json *thread)
{
    const char *api = scene->place->api, *html = scene->place->html;
    gint64 number = row_int(thread, "number");
    const struct {
        const char *name, *link;
        Json *url;
    } rows[] = {
        {"url", "self", v3_format("%s/pulls/" NUMBER, api, number)},
        {"html_url", "html", v3_format("%s/pull/" NUMBER, html, number)},
        {"diff_url", NULL, v3_format("%s/pulls/" NUMBER ".diff", api, number)},
        {"patch_url", NULL, v3_format("%s/pulls/" NUMBER ".patch", api, number)},
        {"issue_url", "issue", v3_format("%s/issues/" NUMBER, api, number)},
        {"comments_url", "comments", v3_format("%s/issues/" NUMBER "/comments", api, number)},
        {"review_comments_url", "review_comments", v3_format("%s/pulls/" NUMBER "/comments", api, number)},
        {"review_comment_url", "review_comment", v3_format("%s/pulls/comments{/number}", api)},
        {"commits_url", "commits", v3_format("%s/pulls/" NUMBER "/commits", api, number)},
        {"statuses_url", "statuses", v3_format("%s/statuses/%s", api, row_text(thread, "head_oid"))},
    };
    Json *links = json_object();

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].link != NULL)
            json_object_set_new(links, rows[i].link, json_pack("{s:O}", "href", rows[i].url));
        json_object_set_new(pull, rows[i].name, rows[i].url);
    }
    json_object_set_new(pull, "_links", links);
}

static void
add_times(Json *pull, const Json *thread)
{
    json_object_set_new(pull, "created_at", v3_time(row_int(thread, "created_us")));
    json_object_set_new(pull, "updated_at", v3_time(row_int(thread, "updated_us")));
    json_object_set_new(pull, "closed_at", v3_time(row_int(thread, "closed_us")));
    json_object_set_new(pull, "merged_at", v3_time(row_int(thread, "merged_us")));
}

static Json *
reviewer(const V3Scene *scene, const Json *person)
{
    return v3_user(scene->place, person);
}

static void
add_people(Json *pull, const V3Scene *scene, const Json *thread)
{
    json_object_set_new(pull, "user", v3_user(scene->place, json_object_get(thread, "author")));
    json_object_set_new(pull, "requested_reviewers",
                        v3_each(scene, json_object_get(thread, "reviewers"), reviewer));
    json_object_set_new(pull, "requested_teams", json_array());
    json_object_set_new(pull, "assignee", json_null());
    json_object_set_new(pull, "assignees", json_array());
    json_object_set_new(pull, "author_association", json_string("MEMBER"));
}

Json *
v3_pull(const V3Scene *scene, const Json *thread)
{
    gint64 id = row_int(thread, "id");
    Json *pull = json_pack("{s:I, s:o, s:I, s:s, s:b, s:s, s:o, s:b, s:n, s:n, s:n}", "id", (json_int_t)id,
                           "node_id", v3_format("PullRequest-" NUMBER, id), "number",
                           (json_int_t)row_int(thread, "number"), "state", row_text(thread, "state"),
                           "locked", false, "title", row_text(thread, "title"), "body",
                           v3_maybe(row_text(thread, "body")), "draft", row_is(thread, "draft"), "milestone",
                           "auto_merge", "active_lock_reason");

    add_people(pull, scene, thread);
    add_times(pull, thread);
    add_links(pull, scene, thread);
    json_object_set_new(pull, "labels", v3_each(scene, json_object_get(thread, "labels"), v3_label));
    json_object_set_new(pull, "merge_commit_sha", v3_maybe(row_text(thread, "merge_oid")));
    json_object_set_new(pull, "head", side(scene, thread, "head", "head_oid"));
    json_object_set_new(pull, "base", side(scene, thread, "base", "base_oid"));
    return pull;
}

/* ---- one alone ---- */

static Json *
count(const Json *thread, const char *name)
{
    bool known = row_int(thread, "changed_files") >= 0 &&
                 g_strcmp0(row_text(thread, "compared_head"), row_text(thread, "head_oid")) == 0;

    return known ? json_integer(row_int(thread, name)) : json_null();
}

/* What is Coop's own, where others find nothing in their way. */
static Json *
own_part(const Json *thread)
{
    return json_pack("{s:O?, s:O?, s:O?}", "merge", json_object_get(thread, "merge"), "task_id",
                     json_object_get(thread, "task_id"), "receipt", json_object_get(thread, "receipt"));
}

Json *
v3_pull_whole(const V3Scene *scene, const Json *thread)
{
    Json *pull = v3_pull(scene, thread);

    json_object_set_new(pull, "merged", json_boolean(row_is(thread, "merged")));
    json_object_set_new(pull, "merged_by", v3_user(scene->place, json_object_get(thread, "merged_by")));
    json_object_set_new(pull, "mergeable", mergeable(thread));
    json_object_set_new(pull, "rebaseable", mergeable(thread));
    json_object_set_new(pull, "mergeable_state", json_string(v3_mergeable_state(thread)));
    json_object_set_new(pull, "maintainer_can_modify", json_false());
    json_object_set_new(pull, "comments", json_integer(row_int(thread, "comments")));
    json_object_set_new(pull, "review_comments", json_integer(row_int(thread, "review_comments")));
    json_object_set_new(pull, "commits", count(thread, "commits"));
    json_object_set_new(pull, "additions", count(thread, "additions"));
    json_object_set_new(pull, "deletions", count(thread, "deletions"));
    json_object_set_new(pull, "changed_files", count(thread, "changed_files"));
    json_object_set_new(pull, "coop", own_part(thread));
    return pull;
}
