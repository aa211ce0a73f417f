/* SPDX-License-Identifier: Apache-2.0 */
/* What a repository brings is never run, and git reaches nothing beside it. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/landlock.h"
#include "support/git-world.h"

static bool
needs_landlock(void)
{
    if (landlock_abi() >= LANDLOCK_ABI_REFER)
        return false;
    g_test_skip("this kernel has no Landlock");
    return true;
}

/* A program that would leave a mark inside the repository, where it could. */
static char *
trap_new(const GitWorld *world)
{
    g_autofree char *text = g_strdup_printf("#!/bin/sh\necho run > %s/trap\ncat\n", world->path);
    char *path = git_world_file(world, "repo.git/trap.sh");

    git_world_write(world, "repo.git/trap.sh", text);
    g_assert_cmpint(chmod(path, 0755), ==, 0);
    return path;
}

static void
assert_not_sprung(const GitWorld *world)
{
    g_autofree char *path = git_world_file(world, "repo.git/trap");

    g_assert_cmpint(access(path, F_OK), !=, 0);
}

static void
append_config(const GitWorld *world, const char *more)
{
    g_autofree char *path = git_world_file(world, "repo.git/config");
    g_autofree char *old = NULL;

    g_assert_true(g_file_get_contents(path, &old, NULL, NULL));
    g_autofree char *text = g_strconcat(old, more, NULL);

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static const char *const settings[] = {
    "[core]\n\tfsmonitor = %s\n",
    "[core]\n\thooksPath = %s\n",
    "[core]\n\tsshCommand = %s\n",
    "[core]\n\tgitProxy = %s\n",
    "[core]\n\tpager = %s\n",
    "[core]\n\teditor = %s\n",
    "[core]\n\taskPass = %s\n",
    "[core]\n\talternateRefsCommand = %s\n",
    "[core]\n\tworktree = /\n",
    "[core]\n\tattributesFile = /etc/hostname\n",
    "[CORE] FsMonitor = %s\n",
    "[core]\n\tbare = true \\\n\tfsmonitor = %s\n",
    "[core \"x\"]\n\tfsmonitor = %s\n",
    "[diff]\n\texternal = %s\n",
    "[diff \"x\"]\n\ttextconv = %s\n",
    "[diff \"x\"]\n\tcommand = %s\n",
    "[diff.x]\n\ttextconv = %s\n",
    "[filter \"x\"]\n\tclean = %s\n\tsmudge = %s\n",
    "[filter \"x\"]\n\tprocess = %s\n",
    "[merge \"x\"]\n\tdriver = %s\n",
    "[credential]\n\thelper = %s\n",
    "[gpg]\n\tprogram = %s\n",
    "[include]\n\tpath = /etc/passwd\n",
    "[includeIf \"gitdir:/\"]\n\tpath = /etc/passwd\n",
    "[uploadpack]\n\tpackObjectsHook = %s\n",
    "[remote \"o\"]\n\tuploadpack = %s\n",
    "[remote \"o\"]\n\tvcs = ext\n",
    "[remote \"o\"]\n\tproxy = http://localhost\n",
    "[url \"ext::%s \"]\n\tinsteadOf = https\n",
    "[protocol]\n\tallow = always\n",
    "[extensions]\n\tworktreeConfig = true\n",
    "[extensions]\n\tpartialClone = o\n",
    "[alias]\n\tlog = !%s\n",
    "[interactive]\n\tdiffFilter = %s\n",
    "[trailer \"x\"]\n\tcommand = %s\n",
    "[safe]\n\tdirectory = *\n",
    "[http]\n\tproxy = http://localhost\n",
    "[receive]\n\tprocReceiveRefs = refs\n",
    "[broken\n",
    "key = 1\n",
};

/* Ours are not touched; those of others are read, and what they name is not run. */
static void
test_settings(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(settings); i++) {
        g_autoptr(GitWorld) world = git_world_new();
        g_autofree char *oid = git_world_branch(world, "main", "a.txt", "one\n");
        g_autofree char *trap = trap_new(world);
        g_auto(GStrv) parts = g_strsplit(settings[i], "%s", -1);
        g_autofree char *text = g_strjoinv(trap, parts);
        g_autoptr(GError) error = NULL;

        g_test_message("%s", settings[i]);
        append_config(world, text);
        g_assert_null(git_text(world->repo, GIT_READ, GIT_ARGS("rev-parse", "HEAD"), &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
        g_assert_null(strstr(error->message, world->dir));
        assert_not_sprung(world);
    }
}

static const char *const strangers[] = {"commondir", "gitdir", "config.worktree", "objects/info/alternates"};

static void
test_elsewhere(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(strangers); i++) {
        g_autoptr(GitWorld) world = git_world_new();
        g_autofree char *name = g_strconcat("repo.git/", strangers[i], NULL);
        g_autoptr(GError) error = NULL;

        git_world_write(world, name, world->dir);
        g_assert_null(git_text(world->repo, GIT_READ, GIT_ARGS("count-objects"), &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    }
}

static GitRepo *
foreign_new(const GitWorld *world)
{
    GitHostSpec host = {.launcher = g_getenv("COOP_GIT"), .foreign = true};

    return git_repo_new(&host, "foreign", world->path);
}

/* Attributes that name the trap as filter, text conversion and diff program. */
static void
test_foreign(void)
{
    if (needs_landlock())
        return;
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *one = git_world_branch(world, "main", "a.txt", "one\n");
    g_autofree char *two = git_world_commit(world, "a.txt", "two\n", one);
    g_autofree char *trap = trap_new(world);
    g_autofree char *text = g_strdup_printf(
        "[diff \"x\"]\n\ttextconv = %s\n\tcommand = %s\n[core]\n\tfsmonitor = "
        "%s\n\tpager = %s\n[diff]\n\texternal = %s\n",
        trap, trap, trap, trap, trap);
    g_autoptr(GitRepo) foreign = foreign_new(world);

    append_config(world, text);
    git_world_write(world, "repo.git/info/attributes", "* diff=x filter=x\n");
    GitCall diff = {.args = GIT_ARGS("diff", "--textconv", "--ext-diff", one, two)};
    GitCall show = {.args = GIT_ARGS("cat-file", "--textconv", "main:a.txt")};
    GitCall bundle = {.args = GIT_ARGS("bundle", "create", "-", "main")};

    (void)git_run(foreign, &diff, NULL, NULL);
    (void)git_run(foreign, &show, NULL, NULL);
    assert_not_sprung(world);
    g_assert_true(git_run(foreign, &bundle, NULL, NULL));
    GitCall write = {.access = GIT_WRITE, .args = GIT_ARGS("pack-refs", "--all")};

    g_assert_false(git_run(foreign, &write, NULL, NULL));
}

static void
test_hooks(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *oid = git_world_commit(world, "a.txt", "one\n", NULL);
    g_autofree char *trap = trap_new(world);
    static const char *const names[] = {"reference-transaction", "pre-receive", "post-update", "pre-auto-gc"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *name = g_strconcat("repo.git/hooks/", names[i], NULL);
        g_autofree char *path = git_world_file(world, name);

        git_world_write(world, name, "");
        g_assert_cmpint(unlink(path), ==, 0);
        g_assert_cmpint(link(trap, path), ==, 0);
    }
    g_assert_true(git_branch_move(world->repo, "main", git_oid_zero, oid, "test", NULL));
    assert_not_sprung(world);
}

/* Each would be something outside, or written where nothing may be. */
static void
test_files(void)
{
    if (needs_landlock())
        return;
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *secret = git_world_file(world, "secret");
    g_autofree char *beside = git_world_file(world, "beside");
    g_autofree char *in_tmp = git_world_file(world, "repo.git/tmp/x");
    g_autofree char *oid = git_world_branch(world, "main", "a.txt", "one\n");

    git_world_write(world, "secret", "the secret\n");
    GitCall read = {.args = GIT_ARGS("hash-object", "--no-filters", "--", secret)};
    GitCall passwd = {.args = GIT_ARGS("hash-object", "--no-filters", "--", "/etc/passwd")};
    GitCall proc = {.args = GIT_ARGS("hash-object", "--no-filters", "--", "/proc/self/status")};
    GitCall copy = {.access = GIT_WRITE, .args = GIT_ARGS("bundle", "create", beside, "main")};
    GitCall change = {.args = GIT_ARGS("bundle", "create", "here.bundle", "main")};
    GitCall scratch = {.args = GIT_ARGS("bundle", "create", in_tmp, "main")};

    g_assert_false(git_run(world->repo, &read, NULL, NULL));
    g_assert_false(git_run(world->repo, &passwd, NULL, NULL));
    g_assert_false(git_run(world->repo, &proc, NULL, NULL));
    g_assert_false(git_run(world->repo, &copy, NULL, NULL));
    g_assert_cmpint(access(beside, F_OK), !=, 0);
    g_assert_false(git_run(world->repo, &change, NULL, NULL));
    g_assert_true(git_run(world->repo, &scratch, NULL, NULL));
    change.access = GIT_WRITE;
    g_assert_true(git_run(world->repo, &change, NULL, NULL));
}

/* Links that lead out. */
static void
test_links(void)
{
    if (needs_landlock())
        return;
    g_autoptr(GitWorld) world = git_world_new();
    g_autofree char *ref = git_world_file(world, "repo.git/refs/heads/out");
    g_autofree char *secret = git_world_file(world, "secret");

    git_world_write(world, "secret", "0123456789abcdef0123456789abcdef01234567\n");
    g_assert_cmpint(symlink(secret, ref), ==, 0);
    GitCall call = {.args = GIT_ARGS("rev-parse", "--verify", "refs/heads/out")};

    g_assert_false(git_run(world->repo, &call, NULL, NULL));
}

static const char *const urls[] = {
    "ext::sh -c touch% %s",
    "ext::%s",
    "fd::0",
    "file:///etc",
    "/etc",
    "../other.git",
    "ssh://localhost/x",
    "git@localhost:x",
    "git://localhost/x",
    "ftp://localhost/x",
    "https://localhost/x",
    "http://localhost/x",
    "--upload-pack=%s",
    "-u%s",
};

static void
test_protocols(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(urls); i++) {
        g_autoptr(GitWorld) world = git_world_new();
        g_autofree char *trap = trap_new(world);
        g_auto(GStrv) parts = g_strsplit(urls[i], "%s", -1);
        g_autofree char *url = g_strjoinv(trap, parts);
        bool web = g_str_has_prefix(url, "http");
        GitCall call = {.access = GIT_WRITE, .args = GIT_ARGS("fetch", "--", url, "+refs/heads/*:refs/x/*")};

        g_test_message("%s", urls[i]);
        g_assert_false(git_run(world->repo, &call, NULL, NULL));
        call.access = GIT_REMOTE;
        if (!web)
            g_assert_false(git_run(world->repo, &call, NULL, NULL));
        assert_not_sprung(world);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/git/hostile/settings", test_settings);
    g_test_add_func("/git/hostile/elsewhere", test_elsewhere);
    g_test_add_func("/git/hostile/foreign", test_foreign);
    g_test_add_func("/git/hostile/hooks", test_hooks);
    g_test_add_func("/git/hostile/files", test_files);
    g_test_add_func("/git/hostile/links", test_links);
    g_test_add_func("/git/hostile/protocols", test_protocols);
    return g_test_run();
}
