/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/merge.h"
#include "support/git-story.h"

/* Random histories, merged and rebased here and by git itself in a checkout: the same trees, or both in
 * conflict.  --seed chooses another run. */

enum { WORLDS = 12, FILES = 6, LINES = 30, SIDE_MAX = 4 };

typedef struct Draft {
    char *files[FILES]; /* NULL: not there */
} Draft;

static void
draft_clear(Draft *d)
{
    for (int i = 0; i < FILES; i++)
        g_clear_pointer(&d->files[i], g_free);
}

static void
draft_copy(const Draft *from, Draft *to)
{
    draft_clear(to);
    for (int i = 0; i < FILES; i++)
        to->files[i] = g_strdup(from->files[i]);
}

static char *
name_of(int i)
{
    return g_strdup_printf(i % 2 != 0 ? "dir/f%d" : "f%d", i);
}

static void
edit_lines(char **text)
{
    g_auto(GStrv) lines = g_strsplit(*text, "\n", -1);
    guint n = g_strv_length(lines);
    guint at = (guint)g_test_rand_int_range(0, (int)MAX(n - 1, 1));

    g_free(lines[at]);
    lines[at] = g_strdup_printf("edit %d", g_test_rand_int_range(0, 1000));
    g_free(*text);
    *text = g_strjoinv("\n", lines);
}

/* One commit's worth of it. */
static void
change(GitStory *story, Draft *d)
{
    int i = g_test_rand_int_range(0, FILES);
    int what = g_test_rand_int_range(0, 10);
    g_autofree char *name = name_of(i);

    if (d->files[i] == NULL) {
        d->files[i] = g_strdup_printf("made %d\n", g_test_rand_int_range(0, 3));
    } else if (what == 0) {
        g_clear_pointer(&d->files[i], g_free);
        git_story_remove(story, name);
        return;
    } else {
        edit_lines(&d->files[i]);
    }
    git_story_file(story, name, d->files[i]);
}

static void
begin(GitStory *story, Draft *d)
{
    git_story_commit(story, "main", NULL, "feat: begin");
    for (int i = 0; i < FILES; i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        g_autofree char *name = name_of(i);

        for (int line = 0; line < LINES; line++)
            g_string_append_printf(text, "file %d line %d\n", i, line);
        d->files[i] = g_strdup(text->str);
        git_story_file(story, name, text->str);
    }
}

static void
go_on(GitStory *story, const char *branch, const char *from, Draft *d)
{
    int n = g_test_rand_int_range(1, SIDE_MAX + 1);

    for (int i = 0; i < n; i++) {
        g_autofree char *message = g_strdup_printf("fix: %s %d", branch, i);

        git_story_commit(story, branch, i == 0 ? from : NULL, message);
        change(story, d);
    }
}

/* git itself, in a checkout of the test's own; its exit code. */
static int
run_git(const char *dir, const char *const *args, char **ret_out)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    g_autofree char *out = NULL, *said = NULL;
    int status = -1;

    g_ptr_array_add(argv, g_strdup("git"));
    for (guint i = 0; args[i] != NULL; i++)
        g_ptr_array_add(argv, g_strdup(args[i]));
    g_ptr_array_add(argv, NULL);
    g_spawn_sync(dir, (char **)argv->pdata, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, &said, &status,
                 &error);
    g_assert_no_error(error);
    if (ret_out != NULL)
        *ret_out = g_strdup(g_strstrip(out));
    return status;
}

static char *
tree_in(const char *dir, const char *rev)
{
    g_autofree char *name = g_strconcat(rev, "^{tree}", NULL);
    char *tree = NULL;

    g_assert_cmpint(run_git(dir, GIT_ARGS("rev-parse", name), &tree), ==, 0);
    return tree;
}

/* What git makes of it; NULL: a conflict. */
static char *
by_git(const char *dir, MergeMethod method, const char *base, const char *head)
{
    g_assert_cmpint(run_git(dir, GIT_ARGS("checkout", "-q", "--force", "--detach", base), NULL), ==, 0);
    if (method != MERGE_REBASE) {
        if (run_git(dir, GIT_ARGS("merge", "-q", "--no-ff", "-m", "m", head), NULL) == 0)
            return tree_in(dir, "HEAD");
        run_git(dir, GIT_ARGS("merge", "--abort"), NULL);
        return NULL;
    }
    if (run_git(dir, GIT_ARGS("rebase", "-q", base, head), NULL) == 0)
        return tree_in(dir, "HEAD");
    run_git(dir, GIT_ARGS("rebase", "--abort"), NULL);
    return NULL;
}

static guint
count_commits(const char *dir, const char *from)
{
    g_autofree char *range = g_strconcat(from, "..HEAD", NULL);
    g_autofree char *n = NULL;

    g_assert_cmpint(run_git(dir, GIT_ARGS("rev-list", "--count", range), &n), ==, 0);
    return (guint)g_ascii_strtoull(n, NULL, 10);
}

static void
compare(const GitWorld *world, const char *dir, MergeMethod method, guint *conflicts)
{
    g_autofree char *base = git_world_tip(world, "main");
    g_autofree char *head = git_world_tip(world, "side");
    g_autofree char *tree = by_git(dir, method, base, head);
    g_autoptr(GError) error = NULL;
    g_auto(MergeDone) done = {0};
    MergeSpec spec = {
        .method = method,
        .base = base,
        .head = head,
        .author = {"A", "a@example.com", 1, 0},
        .committer = {"C", "c@example.com", 1, 0},
        .message = "m",
    };

    g_assert_true(merge_make(world->repo, &spec, &done, &error));
    g_assert_no_error(error);
    *conflicts += tree == NULL;
    g_assert_true((done.conflict != NULL) == (tree == NULL));
    if (tree == NULL)
        return;
    g_assert_cmpstr(done.tree, ==, tree);
    if (method == MERGE_REBASE)
        g_assert_cmpuint(done.commits, ==, count_commits(dir, base));
}

static void
test_random(void)
{
    guint conflicts = 0;

    for (int n = 0; n < WORLDS; n++) {
        g_autoptr(GitWorld) world = git_world_new();
        g_autoptr(GitStory) story = git_story_new();
        g_autofree char *dir = git_world_file(world, "checkout");
        Draft ours = {{NULL}}, theirs = {{NULL}};

        begin(story, &ours);
        draft_copy(&ours, &theirs);
        go_on(story, "side", "main", &theirs);
        go_on(story, "main", NULL, &ours);
        git_story_tell(story, world);
        g_assert_cmpint(run_git(world->dir, GIT_ARGS("clone", "-q", "repo.git", dir), NULL), ==, 0);
        for (int method = 0; method < MERGE_METHOD_MAX; method++)
            compare(world, dir, (MergeMethod)method, &conflicts);
        draft_clear(&ours);
        draft_clear(&theirs);
    }
    g_test_message("%u of %d were in conflict", conflicts, WORLDS * MERGE_METHOD_MAX);
}

int
main(int argc, char **argv)
{
    g_setenv("GIT_CONFIG_GLOBAL", "/dev/null", TRUE);
    g_setenv("GIT_CONFIG_NOSYSTEM", "1", TRUE);
    g_setenv("GIT_AUTHOR_NAME", "T", TRUE);
    g_setenv("GIT_AUTHOR_EMAIL", "t@example.com", TRUE);
    g_setenv("GIT_COMMITTER_NAME", "T", TRUE);
    g_setenv("GIT_COMMITTER_EMAIL", "t@example.com", TRUE);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/merge/random", test_random);
    return g_test_run();
}
