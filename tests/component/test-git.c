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

/* Alike but for the case, below another, above another. */
static void
test_branch_names(void)
{
    static const struct {
        const char *name;
        ErrKind kind;
    } refused[] = {{"Main", ERR_CONFLICT},  {"MAIN", ERR_CONFLICT},    {"a", ERR_INVALID},
                   {"main/x", ERR_INVALID}, {"--mirror", ERR_INVALID}, {"x.lock", ERR_INVALID}};
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *oid = git_world_branch(world, "main", "a.txt", "one\n");

    g_assert_true(git_branch_move(world->repo, "a/b", git_oid_zero, oid, "test", NULL));
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_false(git_branch_move(world->repo, refused[i].name, git_oid_zero, oid, "test", &error));
        g_assert_error(error, ERR_DOMAIN, (int)refused[i].kind);
    }
    g_assert_null(git_branch_oid(world->repo, "a", NULL));
    g_autofree char *refs = git_world_text(world, GIT_READ, GIT_ARGS("for-each-ref", "--format=%(refname)"));

    g_assert_cmpstr(refs, ==, "refs/heads/a/b\nrefs/heads/main");
}

/* A branch that is a symbolic ref (G5) is moved itself, not what it points to. */
static void
test_branch_symbolic(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *one = git_world_branch(world, "main", "a.txt", "one\n");
    g_autofree char *two = git_world_commit(world, "a.txt", "two\n", one);

    git_world_write(world, "repo.git/refs/heads/task", "ref: refs/heads/main\n");
    g_assert_true(git_branch_move(world->repo, "task", one, two, "test", NULL));
    g_autofree char *main_oid = git_branch_oid(world->repo, "main", NULL);
    g_autofree char *task_oid = git_branch_oid(world->repo, "task", NULL);

    g_assert_cmpstr(main_oid, ==, one);
    g_assert_cmpstr(task_oid, ==, two);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/git/text", test_text);
    g_test_add_func("/git/failure", test_failure);
    g_test_add_func("/git/branch-move", test_branch_move);
    g_test_add_func("/git/branch-names", test_branch_names);
    g_test_add_func("/git/branch-symbolic", test_branch_symbolic);
    return g_test_run();
}
