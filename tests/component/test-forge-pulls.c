/* SPDX-License-Identifier: Apache-2.0 */
/* Pull requests over a real repository: opening asks git, and pushes are followed. */
#include <string.h>

#include "forge/pull.h"
#include "forge/push.h"
#include "forge/repo.h"
#include "forge/row.h"
#include "support/forge-world.h"

/* Once git was asked about its tips of now. */
static Json *
wait_compared(ForgeWorld *w, gint64 number, const char *head_oid, const char *base_oid)
{
    for (;;) {
        Json *pull = ROW_ASK(thread_get, w, number, "pull");

        if (g_strcmp0(row_text(pull, "compared_head"), head_oid) == 0 &&
            g_strcmp0(row_text(pull, "compared_base"), base_oid) == 0)
            return pull;
        json_decref(pull);
    }
}

static void
test_open(void)
{
    static const struct {
        const char *head, *base;
        ErrKind kind;
        const char *problem;
    } cases[] = {
        {"nowhere", "main", ERR_INVALID, "no branch 'nowhere'"},
        {"task-1", "nowhere", ERR_INVALID, "no branch 'nowhere'"},
        {"main", "main", ERR_INVALID, "same branch"},
        {"same", "main", ERR_INVALID, "no commit between"},
        {"--upload-pack=x", "main", ERR_INVALID, NULL},
        {"refs/../main", "main", ERR_INVALID, NULL},
    };
    g_autoptr(ForgeWorld) w = forge_world_new(NULL, NULL);
    g_autofree char *tip = forge_world_push(w, "task-1", "a", "one\n2\nthree\nfour\nfive\n", w->root);
    ForgePush same = {.actor = "local", .ref = "refs/heads/same", .old = git_oid_zero, .new = w->root};

    g_assert_true(git_branch_move(w->git.repo, "same", git_oid_zero, w->root, "test", NULL));
    forge_pushed(w->forge, w->repo, &same);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        ROW_FAIL(cases[i].kind, cases[i].problem, pull_open, w,
                 &(PullSpec){.actor = "local", .head = cases[i].head, .base = cases[i].base, .title = "x"});
    gint64 n = forge_world_pull(w, "task-1");
    g_autoptr(Json) pull = ROW_ASK(thread_get, w, n, "pull");

    g_assert_cmpstr(row_text(pull, "head_oid"), ==, tip);
    g_assert_cmpstr(row_text(pull, "compared_base"), ==, w->root);
    g_assert_cmpint(row_int(pull, "ahead"), ==, 1);
    g_assert_cmpint(row_int(pull, "behind"), ==, 0);
    ROW_FAIL(ERR_CONFLICT, "open already", pull_open, w,
             &(PullSpec){.actor = "local", .head = "task-1", .base = "main", .title = "x"});
}

static void
test_follows(void)
{
    g_autoptr(ForgeWorld) w = forge_world_new(NULL, NULL);
    g_autofree char *first = forge_world_push(w, "task-1", "a", "one\n2\nthree\nfour\nfive\n", w->root);
    g_autofree char *other = forge_world_push(w, "task-2", "a", "one\ntwo\nthree\nfour\n5\n", w->root);
    gint64 n = forge_world_pull(w, "task-1"), m = forge_world_pull(w, "task-2");
    g_autofree char *second = forge_world_push(w, "task-1", "a", "one\n22\nthree\nfour\nfive\n", first);
    g_autoptr(Json) moved = wait_compared(w, n, second, w->root);

    g_assert_cmpint(row_int(moved, "ahead"), ==, 2);
    g_assert_false(row_is(moved, "conflicts"));
    /* The base changes the line that the first changes: the second still merges. */
    g_autofree char *base = forge_world_push(w, "main", "a", "one\nZWEI\nthree\nfour\nfive\n", w->root);
    g_autoptr(Json) against = wait_compared(w, n, second, base);
    g_autoptr(Json) beside = wait_compared(w, m, other, base);

    g_assert_true(row_is(against, "conflicts"));
    g_assert_cmpint(row_int(against, "behind"), ==, 1);
    g_assert_false(row_is(beside, "conflicts"));
    g_assert_cmpint(row_int(beside, "behind"), ==, 1);
}

static void
expect_totals(const Json *pull, const char *from, gint64 commits, gint64 files, gint64 additions,
              gint64 deletions)
{
    g_assert_cmpstr(row_text(pull, "from_oid"), ==, from);
    g_assert_cmpint(row_int(pull, "commits"), ==, commits);
    g_assert_cmpint(row_int(pull, "changed_files"), ==, files);
    g_assert_cmpint(row_int(pull, "additions"), ==, additions);
    g_assert_cmpint(row_int(pull, "deletions"), ==, deletions);
}

/* What changes lie between is known when one is opened, follows its head, is not what the base has
 * changed, and stays when the base has all of it. */
static void
test_totals(void)
{
    g_autoptr(ForgeWorld) w = forge_world_new(NULL, NULL);
    g_autofree char *first = forge_world_push(w, "task-1", "a", "one\n2\nthree\nfour\nfive\n", w->root);
    gint64 n = forge_world_pull(w, "task-1");
    g_autoptr(Json) opened = ROW_ASK(pull_get, w, n);

    expect_totals(opened, w->root, 1, 1, 1, 1);
    g_assert_cmpstr(row_text(json_object_get(opened, "merge"), "state"), ==, "blocked");
    g_autofree char *second = forge_world_push(w, "task-1", "b", "new\nfile\n", first);
    g_autoptr(Json) moved = wait_compared(w, n, second, w->root);

    expect_totals(moved, w->root, 2, 2, 2, 5);
    g_autofree char *beside = forge_world_push(w, "main", "c", "other\n", w->root);
    g_autoptr(Json) behind = wait_compared(w, n, second, beside);

    expect_totals(behind, w->root, 2, 2, 2, 5);
    ForgePush merged = {.actor = "local", .ref = "refs/heads/main", .old = beside, .new = second};

    g_assert_true(git_branch_move(w->git.repo, "main", beside, second, "test", NULL));
    forge_pushed(w->forge, w->repo, &merged);
    g_autoptr(Json) landed = wait_compared(w, n, second, second);

    g_assert_cmpint(row_int(landed, "ahead"), ==, 0);
    expect_totals(landed, w->root, 2, 2, 2, 5);
}

/* What a push left to be looked up is looked up after a start, too. */
static void
test_starts_again(void)
{
    g_autoptr(ForgeWorld) w = forge_world_new(NULL, NULL);
    g_autofree char *tip = forge_world_push(w, "task-1", "a", "one\n2\nthree\nfour\nfive\n", w->root);
    gint64 n = forge_world_pull(w, "task-1");
    g_autoptr(GError) error = NULL;

    forge_world_stop(w);
    store_write_sql(w->bench->db, "UPDATE threads SET compared_head = NULL, ahead = 0", &error);
    g_assert_no_error(error);
    forge_world_load(w);
    g_autoptr(Json) pull = wait_compared(w, n, tip, w->root);

    g_assert_cmpint(row_int(pull, "ahead"), ==, 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/pulls/open", test_open);
    g_test_add_func("/forge/pulls/follows", test_follows);
    g_test_add_func("/forge/pulls/totals", test_totals);
    g_test_add_func("/forge/pulls/starts-again", test_starts_again);
    return g_test_run();
}
