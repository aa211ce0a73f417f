/* SPDX-License-Identifier: Apache-2.0 */
#include "support/git-world.h"

#include <string.h>

static void
remove_tree(const char *path)
{
    const char *argv[] = {"rm", "-rf", "--", path, NULL};

    g_spawn_sync(NULL, (char **)(guintptr)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                 NULL);
}

GitWorld *
git_world_new(void)
{
    GitWorld *world = g_new0(GitWorld, 1);
    GitHostSpec host = {.launcher = g_getenv("COOP_GIT")};
    g_autoptr(GError) error = NULL;

    g_assert_nonnull(host.launcher);
    world->dir = g_dir_make_tmp("coop-git-XXXXXX", &error);
    g_assert_no_error(error);
    world->path = g_build_filename(world->dir, "repo.git", NULL);
    const char *argv[] = {
        "git", "init", "-q", "--bare", "--template=", "-b", "main", "--", world->path, NULL};
    int status = -1;

    g_spawn_sync(NULL, (char **)(guintptr)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, &status,
                 &error);
    g_assert_no_error(error);
    g_assert_cmpint(status, ==, 0);
    world->repo = git_repo_new(&host, "11111111-2222-4333-8444-555555555555", world->path);
    return world;
}

void
git_world_free(GitWorld *world)
{
    if (world == NULL)
        return;
    git_repo_unref(world->repo);
    remove_tree(world->dir);
    g_free(world->path);
    g_free(world->dir);
    g_free(world);
}

char *
git_world_file(const GitWorld *world, const char *name)
{
    return g_build_filename(world->dir, name, NULL);
}

void
git_world_write(const GitWorld *world, const char *name, const char *text)
{
    g_autofree char *path = git_world_file(world, name);
    g_autofree char *folder = g_path_get_dirname(path);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(g_mkdir_with_parents(folder, 0755), ==, 0);
    g_file_set_contents(path, text, -1, &error);
    g_assert_no_error(error);
}

char *
git_world_text(const GitWorld *world, GitAccess access, const char *const *args)
{
    g_autoptr(GError) error = NULL;
    char *text = git_text(world->repo, access, args, &error);

    g_assert_no_error(error);
    return text;
}

static char *
write_object(const GitWorld *world, const char *const *args, const char *input)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GByteArray) out = NULL;
    GitCall call = {.access = GIT_WRITE, .args = args, .input = input, .input_len = strlen(input)};

    git_run(world->repo, &call, &out, &error);
    g_assert_no_error(error);
    return g_strndup((const char *)out->data, GIT_OID_LEN);
}

char *
git_world_blob(const GitWorld *world, const char *text)
{
    return write_object(world, GIT_ARGS("hash-object", "-w", "--stdin"), text);
}

char *
git_world_commit(const GitWorld *world, const char *file, const char *text, const char *parent)
{
    g_autofree char *blob = git_world_blob(world, text);
    g_autofree char *entry = g_strdup_printf("100644 blob %s\t%s\n", blob, file);
    g_autofree char *tree = write_object(world, GIT_ARGS("mktree"), entry);

    return parent != NULL ? git_world_text(world, GIT_WRITE,
                                           GIT_ARGS("commit-tree", "-m", "a change", "-p", parent, tree))
                          : git_world_text(world, GIT_WRITE, GIT_ARGS("commit-tree", "-m", "a start", tree));
}

char *
git_world_branch(const GitWorld *world, const char *branch, const char *file, const char *text)
{
    g_autofree char *oid = git_world_commit(world, file, text, NULL);
    g_autoptr(GError) error = NULL;

    git_branch_move(world->repo, branch, git_oid_zero, oid, "test", &error);
    g_assert_no_error(error);
    return g_steal_pointer(&oid);
}
