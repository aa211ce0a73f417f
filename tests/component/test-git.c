/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "support/git-world.h"

static void
test_text(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *oid = git_world_branch(world, "main", "a.txt", "one\n");
    g_autofree char *kind = git_world_text(world, GIT_READ, GIT_ARGS("cat-file", "-t", oid));
    g_autofree char *content = git_world_text(world, GIT_READ, GIT_ARGS("cat-file", "blob", "main:a.txt"));

    g_assert_cmpstr(kind, ==, "commit");
    g_assert_cmpstr(content, ==, "one");
}

static void
test_failure(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autoptr(GError) error = NULL;
    int code = 0;

    g_assert_null(git_text(world->repo, GIT_READ, GIT_ARGS("cat-file", "-t", git_oid_zero), &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    g_assert_null(strstr(error->message, world->dir));
    GitCall ask = {.args = GIT_ARGS("show-ref", "--verify", "--quiet", "refs/heads/none")};

    g_assert_true(git_ask(world->repo, &ask, &code, NULL, NULL));
    g_assert_cmpint(code, ==, 1);
}

static void
test_branch_move(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *one = git_world_branch(world, "main", "a.txt", "one\n");
    g_autofree char *two = git_world_commit(world, "a.txt", "two\n", one);
    g_autoptr(GError) error = NULL;

    g_assert_true(git_branch_move(world->repo, "main", one, two, "test", &error));
    g_autofree char *now = git_branch_oid(world->repo, "main", &error);

    g_assert_cmpstr(now, ==, two);
    g_assert_false(git_branch_move(world->repo, "main", one, two, "test", &error));
    g_assert_error(error, ERR_DOMAIN, ERR_CONFLICT);
    g_assert_nonnull(strstr(error->message, one));
    g_assert_nonnull(strstr(error->message, two));
    g_clear_error(&error);
    g_assert_true(git_branch_move(world->repo, "main", two, git_oid_zero, "test", &error));
    g_assert_null(git_branch_oid(world->repo, "main", &error));
    g_assert_error(error, ERR_DOMAIN, ERR_NOT_FOUND);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/git/text", test_text);
    g_test_add_func("/git/failure", test_failure);
    g_test_add_func("/git/branch-move", test_branch_move);
    return g_test_run();
}
