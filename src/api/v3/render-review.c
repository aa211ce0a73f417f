/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/scene.h"

#define NUMBER "%" G_GINT64_FORMAT

static Json *
links(const V3Scene *scene, Json *self, Json *html, gint64 number)
{
    Json *object = json_pack("{s:{s:O}, s:{s:o}}", "html", "href", html, "pull_request", "href",
                             v3_format("%s/pulls/" NUMBER, scene->place->api, number));

    if (self != NULL)
        json_object_set_new(object, "self", json_pack("{s:O}", "href", self));
    return object;
}

Json *
v3_review(const V3Scene *scene, const Json *review)
{
    gint64 id = row_int(review, "id"), number = row_int(review, "number");
    Json *html = v3_format("%s/pull/" NUMBER "#pullrequestreview-" NUMBER, scene->place->html, number, id);
    Json *object = json_pack("{s:I, s:o, s:o, s:s, s:s, s:s, s:s}", "id", (json_int_t)id, "node_id",
                             v3_format("Review-" NUMBER, id), "user",
                             v3_user(scene->place, json_object_get(review, "author")), "body",
                             row_text(review, "body"), "state", row_text(review, "state"), "commit_id",
                             row_text(review, "commit_oid"), "author_association", "MEMBER");
    gint64 submitted_us = row_int(review, "submitted_us");

    json_object_set_new(object, "pull_request_url", v3_format("%s/pulls/" NUMBER, scene->place->api, number));
    json_object_set_new(object, "_links", links(scene, NULL, html, number));
    json_object_set_new(object, "html_url", html);
    if (submitted_us != 0)
        json_object_set_new(object, "submitted_at", v3_time(submitted_us));
    return object;
}

static void
add_place(Json *object, const Json *comment)
{
    gint64 first = row_int(comment, "start_line");
    Json *line = json_object_get(comment, "line"), *side = json_object_get(comment, "side");
    Json *start = first > 0 ? json_integer(first) : json_null();

    json_object_set(object, "path", json_object_get(comment, "path"));
    json_object_set(object, "line", line);
    json_object_set(object, "original_line", line);
    json_object_set(object, "side", side);
    json_object_set(object, "start_line", start);
    json_object_set_new(object, "original_start_line", start);
    json_object_set_new(object, "start_side", first > 0 ? json_incref(side) : json_null());
    json_object_set_new(object, "subject_type", json_string("line"));
    /* Counted in a diff that nobody has kept. */
    json_object_set_new(object, "position", json_null());
    json_object_set_new(object, "original_position", json_null());
    json_object_set(object, "diff_hunk", json_object_get(comment, "diff_hunk"));
}

Json *
v3_line_comment(const V3Scene *scene, const Json *comment)
{
    gint64 id = row_int(comment, "id"), number = row_int(comment, "number");
    Json *url = v3_format("%s/pulls/comments/" NUMBER, scene->place->api, id);
    Json *html = v3_format("%s/pull/" NUMBER "#discussion_r" NUMBER, scene->place->html, number, id);
    Json *object = json_pack("{s:I, s:o, s:O, s:O, s:s, s:o, s:s, s:s, s:s}", "id", (json_int_t)id, "node_id",
                             v3_format("ReviewComment-" NUMBER, id), "pull_request_review_id",
                             json_object_get(comment, "review_id"), "url", url, "body",
                             row_text(comment, "body"), "user",
                             v3_user(scene->place, json_object_get(comment, "author")), "commit_id",
                             row_text(comment, "commit_oid"), "original_commit_id",
                             row_text(comment, "original_oid"), "author_association", "MEMBER");

    add_place(object, comment);
    json_object_set_new(object, "_links", links(scene, url, html, number));
    json_decref(url);
    json_object_set_new(object, "html_url", html);
    json_object_set_new(object, "pull_request_url", v3_format("%s/pulls/" NUMBER, scene->place->api, number));
    json_object_set_new(object, "created_at", v3_time(row_int(comment, "created_us")));
    json_object_set_new(object, "updated_at", v3_time(row_int(comment, "updated_us")));
    json_object_set_new(object, "coop", json_pack("{s:O}", "resolved", json_object_get(comment, "resolved")));
    if (row_int(comment, "in_reply_to") > 0)
        json_object_set(object, "in_reply_to_id", json_object_get(comment, "in_reply_to"));
    return object;
}
