/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/render.h"
#include "forge/people.h"
#include "forge/row.h"

/* A row's member as it is; null where there is none. */
static Json *
member(const Json *row, const char *name)
{
    Json *value = json_object_get(row, name);

    return value != NULL ? json_incref(value) : json_null();
}

Json *
v3_status(const V3Place *place, const Json *row)
{
    g_autofree char *url = g_strdup_printf("%s/statuses/%s", place->api, row_text(row, "oid"));
    g_autofree char *node = g_strdup_printf("status-%" G_GINT64_FORMAT, row_int(row, "id"));
    gint64 at = row_int(row, "created_us");

    return json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "url", url, "avatar_url", "",
                     "id", member(row, "id"), "node_id", node, "state", member(row, "state"), "description",
                     member(row, "description"), "target_url", member(row, "target_url"), "context",
                     member(row, "context"), "created_at", v3_time(at), "updated_at", v3_time(at), "creator",
                     v3_user(place, json_object_get(row, "author")));
}

/* Whoever reported it, in the place of GitHub's apps. */
static Json *
app_json(const V3Place *place, const Json *row)
{
    const Json *author = json_object_get(row, "author");

    return json_pack("{s:I, s:s, s:s, s:o}", "id", (json_int_t)row_int(author, "id"), "slug",
                     row_text(author, "login"), "name", row_text(author, "login"), "owner",
                     v3_user(place, author));
}

static Json *
suite_json(const Json *row)
{
    const char *suite = row_text(row, "suite");

    return suite != NULL ? json_pack("{s:I, s:s}", "id", (json_int_t)person_id(suite), "node_id", suite)
                         : json_null();
}

Json *
v3_check_run(const V3Place *place, const Json *row)
{
    g_autofree char *url = g_strdup_printf("%s/check-runs/%" G_GINT64_FORMAT, place->api, row_int(row, "id"));
    g_autofree char *html = g_strdup_printf("%s/runs/%" G_GINT64_FORMAT, place->html, row_int(row, "id"));
    g_autofree char *notes = g_strconcat(url, "/annotations", NULL);
    g_autofree char *node = g_strdup_printf("check-run-%" G_GINT64_FORMAT, row_int(row, "id"));
    Json *output = json_pack("{s:o, s:o, s:o, s:i, s:s}", "title", member(row, "title"), "summary",
                             member(row, "summary"), "text", member(row, "output"), "annotations_count", 0,
                             "annotations_url", notes);
    Json *object = json_pack("{s:o, s:o, s:s, s:o, s:o, s:s, s:s, s:o}", "id", member(row, "id"), "head_sha",
                             member(row, "head_oid"), "node_id", node, "external_id",
                             member(row, "external_id"), "name", member(row, "name"), "url", url, "html_url",
                             html, "details_url", member(row, "details_url"));

    json_object_set_new(object, "status", member(row, "status"));
    json_object_set_new(object, "conclusion", member(row, "conclusion"));
    json_object_set_new(object, "started_at", v3_time(row_int(row, "started_us")));
    json_object_set_new(object, "completed_at", v3_time(row_int(row, "completed_us")));
    json_object_set_new(object, "output", output);
    json_object_set_new(object, "check_suite", suite_json(row));
    json_object_set_new(object, "app", app_json(place, row));
    json_object_set_new(object, "pull_requests", json_array());
    json_object_set_new(object, "seen_by", member(row, "seen_by"));
    return object;
}
