/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the forge as GitHub's objects: what decides a word in them. */
#include <glib.h>
#include <string.h>

#include "api/v3/scene.h"

static char server[] = "http://s", root[] = "http://s/api/v3", api[] = "http://s/api/v3/repos/acme/widget",
            html[] = "http://s/acme/widget", branch[] = "main";
static const V3Place place = {server, root, api, html, branch};
static const RepoInfo info = {.id = "id",
                              .owner = "acme",
                              .name = "widget",
                              .default_branch = "main",
                              .description = "",
                              .state = "ready",
                              .number = 1};
static const V3Scene scene = {&place, &info};

/* JSON with ' in the place of ". */
static Json *
decode(const char *text)
{
    g_autofree char *copy = g_strdelimit(g_strdup(text), "'", '"');
    g_autoptr(GError) error = NULL;
    Json *value = json_decode(copy, strlen(copy), &error);

    g_assert_no_error(error);
    return value;
}

/* A row and what `more` says otherwise. */
static Json *
row_with(const char *row, const char *more)
{
    Json *value = decode(row);
    g_autoptr(Json) change = decode(more);

    json_object_update(value, change);
    return value;
}

static const char person[] = "{'actor': 'key:1', 'login': 'ann', 'id': 7, 'type': 'User'}";

static Json *
pull_row(const char *more)
{
    static const char row[] =
        "{'id': 3, 'number': 5, 'kind': 'pull', 'state': 'open', 'title': 'T', 'body': '', 'reviewers': [], "
        "'labels': [], 'head': 'h', 'base': 'b', 'head_oid': 'a', 'base_oid': 'b', 'compared_head': 'a', "
        "'compared_base': 'b', 'conflicts': false, 'draft': false, 'merged': false, 'merge_oid': null, "
        "'created_us': 1000000, 'updated_us': 2000000, 'closed_us': 0, 'merged_us': 0, 'comments': 1, "
        "'review_comments': 2, 'commits': 4, 'changed_files': 5, 'additions': 6, 'deletions': 7, "
        "'merge': {'state': 'clean', 'reasons': []}}";
    Json *pull = row_with(row, more);

    json_object_set_new(pull, "author", decode(person));
    return pull;
}

#define REASON(rule) "'merge': {'reasons': [{'rule': '" rule "', 'text': 'x'}]}"
#define TWO_REASONS                                                                                          \
    "'merge': {'reasons': [{'rule': 'approvals', 'text': 'x'}, {'rule': 'behind', 'text': 'y'}]}"

static void
test_mergeable(void)
{
    static const struct {
        const char *more, *state;
        int mergeable; /* -1: null */
    } cases[] = {
        {"{}", "clean", 1},
        {"{" REASON("checks_missing") "}", "blocked", 1},
        {"{" REASON("behind") "}", "behind", 1},
        {"{" TWO_REASONS "}", "behind", 1},
        {"{'draft': true, " REASON("draft") "}", "draft", 1},
        {"{'conflicts': true, 'draft': true}", "dirty", 0},
        {"{'compared_head': 'z'}", "unknown", -1},
        {"{'compared_base': null, 'conflicts': true}", "unknown", -1},
        {"{'state': 'closed'}", "unknown", -1},
        {"{'merge': null}", "blocked", 1},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) row = pull_row(cases[i].more);
        g_autoptr(Json) pull = v3_pull_whole(&scene, row);
        const Json *mergeable = json_object_get(pull, "mergeable");

        g_test_message("%s", cases[i].more);
        g_assert_cmpstr(row_text(pull, "mergeable_state"), ==, cases[i].state);
        g_assert_cmpint(json_is_null(mergeable) ? -1 : json_is_true(mergeable), ==, cases[i].mergeable);
    }
}

static void
test_counts(void)
{
    static const struct {
        const char *more;
        bool known;
    } cases[] = {{"{}", true},
                 {"{'compared_base': 'z'}", true}, /* the base has gone on: the changes are the same */
                 {"{'compared_head': 'z'}", false},
                 {"{'changed_files': -1}", false}};
    static const char *const names[] = {"commits", "changed_files", "additions", "deletions"};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) row = pull_row(cases[i].more);
        g_autoptr(Json) pull = v3_pull_whole(&scene, row);

        for (size_t n = 0; n < G_N_ELEMENTS(names); n++) {
            Json *count = json_object_get(pull, names[n]);

            g_assert_true(json_is_integer(count) == cases[i].known);
            g_assert_cmpint(json_integer_value(count), ==, cases[i].known ? 4 + (gint64)n : 0);
        }
    }
}

static void
test_pull(void)
{
    g_autoptr(Json)
        row = pull_row("{'merged': true, 'state': 'closed', 'merge_oid': 'm', 'merged_us': 3000000, "
                       "'body': 'text', 'labels': [{'id': 1, 'name': 'a/b ü', 'color': 'ff0000', "
                       "'description': ''}]}");

    json_object_set_new(row, "merged_by", decode(person));
    g_autoptr(Json) pull = v3_pull_whole(&scene, row);
    const Json *head = json_object_get(pull, "head");
    const Json *label = json_array_get(json_object_get(pull, "labels"), 0);
    const Json *self = json_object_get(json_object_get(pull, "_links"), "self");

    g_assert_cmpstr(row_text(pull, "merged_at"), ==, "1970-01-01T00:00:03Z");
    g_assert_cmpstr(row_text(pull, "merge_commit_sha"), ==, "m");
    g_assert_cmpstr(row_text(json_object_get(pull, "merged_by"), "login"), ==, "ann");
    g_assert_cmpstr(row_text(head, "label"), ==, "acme:h");
    g_assert_cmpstr(row_text(self, "href"), ==, row_text(pull, "url"));
    g_assert_cmpstr(row_text(pull, "diff_url"), ==, "http://s/api/v3/repos/acme/widget/pulls/5.diff");
    g_assert_cmpstr(row_text(label, "url"), ==, "http://s/api/v3/repos/acme/widget/labels/a%2Fb%20%C3%BC");
    g_assert_true(json_is_null(json_object_get(label, "description")));
    g_autoptr(Json) brief = v3_pull(&scene, row);

    g_assert_null(json_object_get(brief, "mergeable"));
    g_assert_null(json_object_get(brief, "additions"));
}

static void
test_issue(void)
{
    g_autoptr(Json) pull_as_row = pull_row("{'state_reason': 'branch_removed'}");
    g_autoptr(Json) issue_row = pull_row("{'kind': 'issue', 'state': 'closed', 'state_reason': 'completed', "
                                         "'closed_us': 5000000}");
    g_autoptr(Json) pull = v3_issue(&scene, pull_as_row);
    g_autoptr(Json) issue = v3_issue(&scene, issue_row);

    g_assert_nonnull(json_object_get(pull, "pull_request"));
    /* GitHub has no such word. */
    g_assert_true(json_is_null(json_object_get(pull, "state_reason")));
    g_assert_cmpstr(row_text(pull, "html_url"), ==, "http://s/acme/widget/pull/5");
    g_assert_null(json_object_get(issue, "pull_request"));
    g_assert_cmpstr(row_text(issue, "state_reason"), ==, "completed");
    g_assert_cmpstr(row_text(issue, "closed_at"), ==, "1970-01-01T00:00:05Z");
    g_assert_cmpstr(row_text(issue, "html_url"), ==, "http://s/acme/widget/issues/5");
    g_assert_true(json_is_null(json_object_get(issue, "body")));
}

static void
test_line_comment(void)
{
    static const char row[] =
        "{'id': 9, 'number': 5, 'review_id': 2, 'in_reply_to': null, 'author': null, 'body': "
        "'b', 'path': 'p', 'side': 'LEFT', 'line': 4, 'start_line': null, 'commit_oid': "
        "'c', 'original_oid': 'o', 'created_us': 1000000, 'updated_us': 1000000}";
    g_autoptr(Json) one_row = row_with(row, "{}");
    g_autoptr(Json) many_row = row_with(row, "{'start_line': 2, 'in_reply_to': 8}");
    g_autoptr(Json) one = v3_line_comment(&scene, one_row);
    g_autoptr(Json) many = v3_line_comment(&scene, many_row);

    g_assert_true(json_is_null(json_object_get(one, "start_line")));
    g_assert_true(json_is_null(json_object_get(one, "start_side")));
    g_assert_null(json_object_get(one, "in_reply_to_id"));
    g_assert_true(json_is_null(json_object_get(one, "user")));
    g_assert_cmpint(row_int(many, "start_line"), ==, 2);
    g_assert_cmpstr(row_text(many, "start_side"), ==, "LEFT");
    g_assert_cmpint(row_int(many, "in_reply_to_id"), ==, 8);
}

static void
test_delivery(void)
{
    static const char row[] =
        "{'id': 4, 'hook_id': 2, 'seq': 7, 'guid': 'g', 'event': 'push', 'action': null, "
        "'state': 'done', 'status': 200, 'tries': 1, 'next_us': 0, 'problem': null, "
        "'created_us': 1000000, 'ended_us': 2500000, 'body': '{}'}";
    static const struct {
        const char *more, *status;
        bool again;
    } cases[] = {
        {"{}", "OK", false},
        {"{'state': 'waiting', 'ended_us': 0}", "pending", false},
        {"{'state': 'waiting', 'problem': 'it was answered with 500'}", "it was answered with 500", false},
        {"{'seq': null}", "OK", true},
        {"{'seq': null, 'event': 'ping'}", "OK", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) delivery = row_with(row, cases[i].more);
        g_autoptr(Json) shown = v3_delivery_whole(&scene, delivery);

        g_assert_cmpstr(row_text(shown, "status"), ==, cases[i].status);
        g_assert_true(row_is(shown, "redelivery") == cases[i].again);
        g_assert_true(json_is_object(json_object_get(json_object_get(shown, "request"), "payload")));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api/v3/render/mergeable", test_mergeable);
    g_test_add_func("/api/v3/render/counts", test_counts);
    g_test_add_func("/api/v3/render/pull", test_pull);
    g_test_add_func("/api/v3/render/issue", test_issue);
    g_test_add_func("/api/v3/render/line-comment", test_line_comment);
    g_test_add_func("/api/v3/render/delivery", test_delivery);
    return g_test_run();
}
