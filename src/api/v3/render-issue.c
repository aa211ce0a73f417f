/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "api/v3/scene.h"

Json *
v3_format(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    return json_string(text);
}

Json *
v3_maybe(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

Json *
v3_each(const V3Scene *scene, const Json *rows, V3Render render)
{
    Json *list = json_array();
    size_t i;
    Json *row;

    json_array_foreach(rows, i, row)
    {
        json_array_append_new(list, render(scene, row));
    }
    return list;
}

Json *
v3_label(const V3Scene *scene, const Json *label)
{
    const char *name = row_text(label, "name");
    g_autofree char *encoded = g_uri_escape_string(name, NULL, FALSE);
    gint64 id = row_int(label, "id");

    return json_pack("{s:I, s:o, s:o, s:s, s:s, s:b, s:o}", "id", (json_int_t)id, "node_id",
                     v3_format("Label-%" G_GINT64_FORMAT, id), "url",
                     v3_format("%s/labels/%s", scene->place->api, encoded), "name", name, "color",
                     row_text(label, "color"), "default", false, "description",
                     v3_maybe(row_text(label, "description")));
}

/* What tells a pull request from an issue, in lists that have both. */
static Json *
pull_part(const V3Scene *scene, const Json *thread)
{
    gint64 number = row_int(thread, "number");
    const char *api = scene->place->api;

    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "url", v3_format("%s/pulls/%" G_GINT64_FORMAT, api, number),
                     "html_url", v3_format("%s/pull/%" G_GINT64_FORMAT, scene->place->html, number),
                     "diff_url", v3_format("%s/pulls/%" G_GINT64_FORMAT ".diff", api, number), "patch_url",
                     v3_format("%s/pulls/%" G_GINT64_FORMAT ".patch", api, number), "merged_at",
                     v3_time(row_int(thread, "merged_us")));
}

static void
add_links(Json *issue, const V3Scene *scene, gint64 number, bool is_pull)
{
    static const struct {
        const char *name, *rest;
    } links[] = {
        {"url", ""},
        {"labels_url", "/labels{/name}"},
        {"comments_url", "/comments"},
        {"events_url", "/events"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(links); i++)
        json_object_set_new(
            issue, links[i].name,
            v3_format("%s/issues/%" G_GINT64_FORMAT "%s", scene->place->api, number, links[i].rest));
    json_object_set_new(issue, "repository_url", json_string(scene->place->api));
    json_object_set_new(
        issue, "html_url",
        v3_format("%s/%s/%" G_GINT64_FORMAT, scene->place->html, is_pull ? "pull" : "issues", number));
}

/* Members that GitHub has and a thread here never uses. */
static void
add_unused(Json *issue)
{
    json_object_set_new(issue, "assignee", json_null());
    json_object_set_new(issue, "assignees", json_array());
    json_object_set_new(issue, "milestone", json_null());
    json_object_set_new(issue, "locked", json_false());
    json_object_set_new(issue, "active_lock_reason", json_null());
    json_object_set_new(issue, "author_association", json_string("MEMBER"));
    json_object_set_new(issue, "performed_via_github_app", json_null());
}

Json *
v3_issue(const V3Scene *scene, const Json *thread)
{
    gint64 id = row_int(thread, "id"), number = row_int(thread, "number");
    bool is_pull = strcmp(row_text(thread, "kind"), "pull") == 0;
    Json *issue = json_pack("{s:I, s:o, s:I, s:s, s:o, s:s, s:o, s:o, s:o, s:I}", "id", (json_int_t)id,
                            "node_id", v3_format("Issue-%" G_GINT64_FORMAT, id), "number", (json_int_t)number,
                            "title", row_text(thread, "title"), "user",
                            v3_user(scene->place, json_object_get(thread, "author")), "state",
                            row_text(thread, "state"), "state_reason",
                            v3_maybe(is_pull ? NULL : row_text(thread, "state_reason")), "body",
                            v3_maybe(row_text(thread, "body")), "labels",
                            v3_each(scene, json_object_get(thread, "labels"), v3_label), "comments",
                            (json_int_t)row_int(thread, "comments"));

    json_object_set_new(issue, "created_at", v3_time(row_int(thread, "created_us")));
    json_object_set_new(issue, "updated_at", v3_time(row_int(thread, "updated_us")));
    json_object_set_new(issue, "closed_at", v3_time(row_int(thread, "closed_us")));
    add_links(issue, scene, number, is_pull);
    add_unused(issue);
    if (is_pull) {
        json_object_set_new(issue, "draft", json_boolean(row_is(thread, "draft")));
        json_object_set_new(issue, "pull_request", pull_part(scene, thread));
    }
    return issue;
}

Json *
v3_issue_comment(const V3Scene *scene, const Json *comment)
{
    gint64 id = row_int(comment, "id"), number = row_int(comment, "number");
    const char *kind = g_strcmp0(row_text(comment, "kind"), "pull") == 0 ? "pull" : "issues";
    Json *object = json_pack(
        "{s:I, s:o, s:s, s:o, s:s}", "id", (json_int_t)id, "node_id",
        v3_format("IssueComment-%" G_GINT64_FORMAT, id), "body", row_text(comment, "body"), "user",
        v3_user(scene->place, json_object_get(comment, "author")), "author_association", "MEMBER");

    json_object_set_new(object, "url",
                        v3_format("%s/issues/comments/%" G_GINT64_FORMAT, scene->place->api, id));
    json_object_set_new(object, "issue_url",
                        v3_format("%s/issues/%" G_GINT64_FORMAT, scene->place->api, number));
    json_object_set_new(object, "html_url",
                        v3_format("%s/%s/%" G_GINT64_FORMAT "#issuecomment-%" G_GINT64_FORMAT,
                                  scene->place->html, kind, number, id));
    json_object_set_new(object, "created_at", v3_time(row_int(comment, "created_us")));
    json_object_set_new(object, "updated_at", v3_time(row_int(comment, "updated_us")));
    json_object_set_new(object, "performed_via_github_app", json_null());
    return object;
}
