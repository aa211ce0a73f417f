/* SPDX-License-Identifier: Apache-2.0 */
/* Issues, comments and labels. */
#include <string.h>

#include "forge/comment.h"
#include "forge/label.h"
#include "forge/row.h"
#include "forge/thread-private.h"
#include "support/forge-rows.h"

static gint64
open_issue(RowWorld *w, const char *title, const char *const *labels)
{
    IssueSpec spec = {.actor = "local", .title = title, .body = "why", .labels = labels};
    g_autoptr(Json) issue = ROW_ASK(issue_open, w, &spec);

    return row_int(issue, "number");
}

static void
test_numbers(void)
{
    g_autoptr(RowWorld) w = row_world_new();

    g_assert_cmpint(open_issue(w, "one", NULL), ==, 1);
    g_assert_cmpint(row_world_pull(w, "local", "task-1"), ==, 2);
    g_assert_cmpint(open_issue(w, "three", NULL), ==, 3);
    ROW_FAIL(ERR_INVALID, "title is missing", issue_open, w, &(IssueSpec){.actor = "local", .title = " \n"});
    g_assert_cmpint(open_issue(w, "four", NULL), ==, 4);
    row_world_expect(w, "issue.opened pr.opened issue.opened issue.opened");
}

static void
test_bounds(void)
{
    g_autofree char *long_title = g_strnfill(THREAD_TITLE_MAX + 1, 'x');
    g_autofree char *long_body = g_strnfill(THREAD_BODY_MAX + 1, 'x');
    const struct {
        const char *title, *body, *problem;
    } cases[] = {
        {NULL, NULL, "title is missing"},         {"", NULL, "title is missing"},
        {"\x1b\x07", NULL, "title is missing"},   {"\xff", NULL, "title is not UTF-8"},
        {"fine", "\xc3", "body is not UTF-8"},    {long_title, NULL, "longer than 256"},
        {"fine", long_body, "longer than 65536"},
    };
    g_autoptr(RowWorld) w = row_world_new();

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        ROW_FAIL(ERR_INVALID, cases[i].problem, issue_open, w,
                 &(IssueSpec){.actor = "local", .title = cases[i].title, .body = cases[i].body});
    long_title[THREAD_TITLE_MAX] = '\0';
    long_body[THREAD_BODY_MAX] = '\0';
    g_autoptr(Json) issue = ROW_ASK(issue_open, w,
                                    &(IssueSpec){.actor = "local", .title = long_title, .body = long_body});

    g_assert_cmpstr(row_text(issue, "body"), ==, long_body);
    g_autoptr(Json) clean = ROW_ASK(
        issue_open, w, &(IssueSpec){.actor = "local", .title = " red \x1b[31m\ttext\n", .body = "a\n"});

    g_assert_cmpstr(row_text(clean, "title"), ==, "red  [31m text");
    g_assert_cmpstr(row_text(clean, "body"), ==, "a\n");
}

static void
test_edit(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    gint64 n = open_issue(w, "old", NULL);
    g_autoptr(Json) before = ROW_ASK(thread_get, w, n, NULL);
    ThreadEdit edit = {.actor = "key:1", .number = n, .title = "new", .state = "closed"};
    g_autoptr(Json) after = ROW_ASK(thread_edit, w, &edit);

    g_assert_cmpstr(row_text(after, "title"), ==, "new");
    g_assert_cmpstr(row_text(after, "body"), ==, "why");
    g_assert_cmpstr(row_text(after, "state"), ==, "closed");
    g_assert_cmpstr(row_text(after, "state_reason"), ==, "completed");
    g_assert_cmpint(row_int(after, "closed_us"), >, 0);
    g_assert_cmpint(row_int(after, "updated_us"), >, row_int(before, "updated_us"));
    row_world_expect(w, "issue.opened issue.closed issue.updated");

    edit = (ThreadEdit){.actor = "key:1", .number = n, .state = "open"};
    g_autoptr(Json) again = ROW_ASK(thread_edit, w, &edit);

    g_assert_cmpint(row_int(again, "closed_us"), ==, 0);
    row_world_expect(w, "issue.reopened");
    edit.state = "gone";
    ROW_FAIL(ERR_INVALID, "one of open, closed", thread_edit, w, &edit);
    edit = (ThreadEdit){.actor = "key:1", .number = n, .base = "main"};
    ROW_FAIL(ERR_INVALID, "no base", thread_edit, w, &edit);
    edit = (ThreadEdit){.actor = "key:1", .number = n, .kind = "pull", .title = "x"};
    ROW_FAIL(ERR_NOT_FOUND, NULL, thread_edit, w, &edit);
    edit = (ThreadEdit){.actor = "key:1", .number = 99, .title = "x"};
    ROW_FAIL(ERR_NOT_FOUND, NULL, thread_edit, w, &edit);
    row_world_expect(w, "");
}

static char *
numbers_of(const Json *list)
{
    GString *text = g_string_new(NULL);
    size_t i;
    Json *item;

    json_array_foreach(json_object_get(list, "items"), i, item)
        g_string_append_printf(text, "%s%" G_GINT64_FORMAT, i > 0 ? " " : "", row_int(item, "number"));
    g_string_append_printf(text, " of %" G_GINT64_FORMAT, row_int(list, "total"));
    return g_string_free(text, FALSE);
}

static void
test_list(void)
{
    static const char *const bug[] = {"bug", NULL}, *const both[] = {"BUG", "ui", NULL};
    const struct {
        ThreadFilter filter;
        const char *numbers;
    } cases[] = {
        {{.kind = NULL}, "5 4 3 2 1 of 5"},
        {{.kind = "issue"}, "5 3 2 1 of 4"},
        {{.kind = "pull"}, "4 of 1"},
        {{.state = "open", .kind = "issue"}, "5 3 2 of 3"},
        {{.state = "closed"}, "1 of 1"},
        {{.labels = bug}, "3 2 of 2"},
        {{.labels = both}, "3 of 1"},
        {{.head = "task-1"}, "4 of 1"},
        {{.head = "task-2"}, " of 0"},
        {{.base = "main"}, "4 of 1"},
        {{.author = "local"}, "5 3 2 1 of 4"},
        {{.author = "key:7"}, "4 of 1"},
        {{.author = "stranger"}, " of 0"},
        {{.ascending = true}, "1 2 3 4 5 of 5"},
        {{.sort = THREAD_BY_UPDATED}, "1 5 4 3 2 of 5"},
        {{.sort = THREAD_BY_COMMENTS}, "2 5 4 3 1 of 5"},
        {{.page = {.page = 1, .per_page = 2}}, "5 4 of 5"},
        {{.page = {.page = 3, .per_page = 2}}, "1 of 5"},
        {{.page = {.page = 4, .per_page = 2}}, " of 5"},
    };
    g_autoptr(RowWorld) w = row_world_new();
    gint64 first = open_issue(w, "first", NULL);

    open_issue(w, "second", bug);
    open_issue(w, "third", both);
    row_world_pull(w, "key:7", "task-1");
    open_issue(w, "fifth", NULL);
    json_decref(ROW_ASK(comment_put, w, &(CommentSpec){.actor = "local", .number = 2, .body = "hello"}));
    json_decref(ROW_ASK(thread_label, w, &(ThreadNames){"local", 3, LIST_ADD, both}));
    json_decref(ROW_ASK(thread_label, w, &(ThreadNames){"local", 4, LIST_ADD, NULL}));
    json_decref(ROW_ASK(thread_label, w, &(ThreadNames){"local", 5, LIST_ADD, NULL}));
    json_decref(ROW_ASK(thread_edit, w, &(ThreadEdit){.actor = "local", .number = first, .state = "closed"}));
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) list = ROW_ASK(thread_list, w, &cases[i].filter);
        g_autofree char *numbers = numbers_of(list);

        g_assert_cmpstr(numbers, ==, cases[i].numbers);
    }
}

static void
test_comments(void)
{
    g_autoptr(RowWorld) w = row_world_new();
    gint64 n = open_issue(w, "talk", NULL);
    CommentSpec marked = {.actor = "agent:1", .number = n, .body = "10 %", .marker = "progress"};
    g_autoptr(Json) first = ROW_ASK(comment_put, w, &marked);
    g_autoptr(Json)
        plain = ROW_ASK(comment_put, w, &(CommentSpec){.actor = "local", .number = n, .body = "fine"});

    marked.body = "90 %";
    g_autoptr(Json) second = ROW_ASK(comment_put, w, &marked);
    g_autoptr(Json) same = ROW_ASK(comment_put, w, &marked);

    g_assert_cmpint(row_int(first, "id"), ==, row_int(second, "id"));
    g_assert_cmpstr(row_text(second, "body"), ==, "90 %");
    g_assert_cmpint(row_int(second, "updated_us"), >, row_int(first, "updated_us"));
    g_assert_cmpint(row_int(second, "updated_us"), ==, row_int(same, "updated_us"));
    row_world_expect(w, "issue.opened comment.added comment.added comment.changed");
    marked.actor = "agent:2";
    marked.body = "mine";
    ROW_FAIL(ERR_DENIED, "another's", comment_put, w, &marked);

    g_autoptr(Json) list = ROW_ASK(comment_list, w, &(CommentFilter){.number = n});
    g_assert_cmpint(row_int(list, "total"), ==, 2);
    ROW_FAIL(ERR_DENIED, "another's", comment_edit, w,
             &(CommentEdit){.actor = "agent:1", .id = row_int(plain, "id")});
    json_decref(ROW_ASK(comment_edit, w, &(CommentEdit){.actor = "local", .id = row_int(plain, "id")}));
    ROW_FAIL(ERR_NOT_FOUND, "no such comment", comment_get, w, row_int(plain, "id"));
    g_autoptr(Json)
        next = ROW_ASK(comment_put, w, &(CommentSpec){.actor = "local", .number = n, .body = "again"});

    g_assert_cmpint(row_int(next, "id"), >, row_int(plain, "id")); /* no id comes back */
    ROW_FAIL(ERR_INVALID, "comment is missing", comment_put, w,
             &(CommentSpec){.actor = "local", .number = n, .body = ""});
    ROW_FAIL(ERR_NOT_FOUND, NULL, comment_put, w,
             &(CommentSpec){.actor = "local", .number = 77, .body = "x"});
}

static void
test_labels(void)
{
    static const char *const wanted[] = {"bug", "ui", NULL}, *const other[] = {"new", NULL};
    const struct {
        LabelSpec spec;
        ErrKind kind;
        const char *problem;
    } cases[] = {
        {{.name = "Bug", .color = "#FF0000"}, ERR_CONFLICT, "already"},
        {{.name = ""}, ERR_INVALID, "missing"},
        {{.name = "x", .color = "red"}, ERR_INVALID, "six hex digits"},
        {{.name = "x", .color = "12345g"}, ERR_INVALID, "six hex digits"},
    };
    g_autoptr(RowWorld) w = row_world_new();
    gint64 n = open_issue(w, "labelled", wanted);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        ROW_FAIL(cases[i].kind, cases[i].problem, label_create, w, &cases[i].spec);
    LabelEdit edit = {.actor = "local", .name = "BUG", .new_name = "defect", .color = "00ff00"};
    g_autoptr(Json) renamed = ROW_ASK(label_edit, w, &edit);
    g_autoptr(Json) issue = ROW_ASK(thread_get, w, n, NULL);
    Json *label = json_array_get(json_object_get(issue, "labels"), 0);

    g_assert_cmpstr(row_text(label, "name"), ==, "defect");
    g_assert_cmpstr(row_text(label, "color"), ==, "00ff00");
    edit = (LabelEdit){.actor = "local", .name = "ui", .new_name = "Defect"};
    ROW_FAIL(ERR_CONFLICT, NULL, label_edit, w, &edit);
    edit = (LabelEdit){.actor = "local", .name = "defect", .remove = true};
    json_decref(ROW_ASK(label_edit, w, &edit));
    g_autoptr(Json) left = ROW_ASK(label_list, w, n, (ForgePage){0});
    g_assert_cmpint(row_int(left, "total"), ==, 1);
    ROW_FAIL(ERR_NOT_FOUND, NULL, thread_label, w, &(ThreadNames){"local", n, LIST_REMOVE, other});
    g_autoptr(Json) set = ROW_ASK(thread_label, w, &(ThreadNames){"local", n, LIST_SET, other});
    g_assert_cmpuint(json_array_size(json_object_get(set, "labels")), ==, 1);
    g_autoptr(Json) all = ROW_ASK(label_list, w, 0, (ForgePage){0});
    g_assert_cmpint(row_int(all, "total"), ==, 2);
}

static void
test_people(void)
{
    static const struct {
        const char *actor, *login, *type;
    } cases[] = {
        {"local", "local", "User"},
        {"coop", "coop[bot]", "Bot"},
        {"key:k1", "ci", "User"},
        {"key:k2", "ci-k2", "User"},
        {"key:k3", "my-key-k3", "User"},
        {"key:gone", "key-gone", "User"},
        {"agent:a1", "eliza-dev[bot]", "Bot"},
        {"agent:a9", "a9[bot]", "Bot"},
    };
    g_autoptr(RowWorld) w = row_world_new();

    g_assert_true(store_write_sql(
        w->bench->db,
        "INSERT INTO keys (id, name, hash, prefix, scopes, created_us) VALUES ('k1', 'ci', '1', '', '', 1), "
        "('k2', 'ci', '2', '', '', 2), ('k3', 'My Key', '3', '', '', 3)",
        NULL));
    g_assert_true(store_write_sql(
        w->bench->db,
        "INSERT INTO identities (id, name, email, public_key, secret_key, agent_id, created_us, revoked_us) "
        "VALUES ('i1', 'eliza-dev', '', '', '', 'a1', 1, 0)",
        NULL));
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Json) issue = ROW_ASK(issue_open, w, &(IssueSpec){.actor = cases[i].actor, .title = "x"});
        Json *author = json_object_get(issue, "author");
        ThreadFilter filter = {.author = row_text(author, "login")};

        g_assert_cmpstr(row_text(author, "login"), ==, cases[i].login);
        g_assert_cmpstr(row_text(author, "type"), ==, cases[i].type);
        g_assert_cmpstr(row_text(author, "actor"), ==, cases[i].actor);
        if (strstr(cases[i].actor, ":k") != NULL || strcmp(cases[i].actor, "agent:a1") == 0) {
            g_autoptr(Json) list = ROW_ASK(thread_list, w, &filter);

            g_assert_cmpint(row_int(list, "total"), ==, 1);
        }
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/thread/numbers", test_numbers);
    g_test_add_func("/forge/thread/bounds", test_bounds);
    g_test_add_func("/forge/thread/edit", test_edit);
    g_test_add_func("/forge/thread/list", test_list);
    g_test_add_func("/forge/thread/comments", test_comments);
    g_test_add_func("/forge/thread/labels", test_labels);
    g_test_add_func("/forge/thread/people", test_people);
    return g_test_run();
}
