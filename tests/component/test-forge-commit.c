/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/commit.h"
#include "forge/compare.h"
#include "support/git-story.h"

/* main: one, two, three; side leaves at one and has two more. */
static GitWorld *
small_world(void)
{
    GitWorld *world = git_world_new();
    g_autoptr(GitStory) story = git_story_new();

    git_story_commit(story, "main", NULL, "feat: one\n\nwith a body\n");
    git_story_file(story, "a.txt", "one\n");
    git_story_commit(story, "side", "main", "fix: left");
    git_story_file(story, "b.txt", "b\n");
    git_story_commit(story, "side", NULL, "fix: right");
    git_story_file(story, "b.txt", "bb\n");
    git_story_commit(story, "main", NULL, "feat: two");
    git_story_file(story, "a.txt", "two\n");
    git_story_commit(story, "main", NULL, "docs: three");
    git_story_file(story, "doc/c.txt", "three\n");
    git_story_tell(story, world);
    return world;
}

static void
test_read(void)
{
    g_autoptr(GitWorld) world = small_world();
    g_autoptr(GError) error = NULL;
    g_autofree char *tip = git_world_text(world, GIT_READ, GIT_ARGS("rev-parse", "side~1"));
    g_autoptr(GitCommit) commit = commit_read(world->repo, tip, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(commit->oid, ==, tip);
    g_assert_cmpstr(commit->message, ==, "fix: left");
    g_assert_cmpstr(commit->author.name, ==, "An Author");
    g_assert_cmpstr(commit->author.email, ==, "author@example.com");
    g_assert_cmpint(commit->author.zone_min, ==, 90);
    g_assert_cmpint(commit->committer.zone_min, ==, -480);
    g_assert_cmpint(commit->author.time_s, ==, 1700000060);
    g_assert_cmpuint(g_strv_length(commit->parents), ==, 1);
    g_assert_false(commit->is_signed);
    g_assert_null(commit_read(world->repo, commit->tree, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_NOT_FOUND);
}

static void
test_resolve(void)
{
    g_autoptr(GitWorld) world = small_world();
    g_autofree char *side = git_world_tip(world, "side");
    g_autofree char *main_tip = git_world_tip(world, "main");
    g_autofree char *made = git_world_text(world, GIT_WRITE,
                                           GIT_ARGS("update-ref", "refs/heads/--upload-pack=x", main_tip));
    g_autofree char *tag = git_world_text(world, GIT_WRITE, GIT_ARGS("tag", "-a", "-m", "t", "v1", side));
    g_autofree char *twin = git_world_text(world, GIT_WRITE, GIT_ARGS("tag", "main", side));
    g_autofree char *tree = git_world_text(world, GIT_READ, GIT_ARGS("rev-parse", "main^{tree}"));
    g_autofree char *low = g_ascii_strup(side, -1);
    const struct {
        const char *name, *oid;
        ErrKind kind;
    } cases[] = {
        {"main", main_tip, 0},
        {"side", side, 0},
        {"refs/heads/side", side, 0},
        {"v1", side, 0},
        {"refs/tags/v1", side, 0},
        {"refs/tags/main", side, 0},
        {side, side, 0},
        {"none", NULL, ERR_NOT_FOUND},
        {git_oid_zero, NULL, ERR_NOT_FOUND},
        {tree, NULL, ERR_NOT_FOUND},
        {"refs/heads", NULL, ERR_NOT_FOUND},
        {"HEAD", NULL, ERR_NOT_FOUND},
        {low, NULL, ERR_NOT_FOUND},
        {"--upload-pack=x", NULL, ERR_INVALID},
        {"", NULL, ERR_INVALID},
        {"@", NULL, ERR_INVALID},
        {"main~1", NULL, ERR_INVALID},
        {"main^", NULL, ERR_INVALID},
        {"main@{0}", NULL, ERR_INVALID},
        {"main:a.txt", NULL, ERR_INVALID},
        {":/feat", NULL, ERR_INVALID},
        {"main..side", NULL, ERR_INVALID},
        {"main\nside", NULL, ERR_INVALID},
        {"../x", NULL, ERR_INVALID},
        {"a//b", NULL, ERR_INVALID},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *oid = commit_resolve(world->repo, cases[i].name, &error);

        g_test_message("'%s'", cases[i].name);
        g_assert_cmpstr(oid, ==, cases[i].oid);
        if (cases[i].oid == NULL)
            g_assert_error(error, ERR_DOMAIN, (int)cases[i].kind);
    }
}

static char *
subjects(const GPtrArray *commits)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < commits->len; i++) {
        const GitCommit *commit = commits->pdata[i];

        g_string_append_printf(text, "%s%.*s", i > 0 ? "|" : "", (int)strcspn(commit->message, "\n"),
                               commit->message);
    }
    return g_string_free(text, FALSE);
}

static void
test_list(void)
{
    g_autoptr(GitWorld) world = small_world();
    g_autofree char *main_tip = git_world_tip(world, "main");
    g_autofree char *side = git_world_tip(world, "side");
    const struct {
        CommitRange range;
        const char *subjects;
        bool more;
    } cases[] = {
        {{.head = main_tip, .max = 10}, "docs: three|feat: two|feat: one", false},
        {{.head = main_tip, .max = 2}, "docs: three|feat: two", true},
        {{.head = main_tip, .max = 2, .skip = 2}, "feat: one", false},
        {{.head = main_tip, .max = 3}, "docs: three|feat: two|feat: one", false},
        {{.head = main_tip, .max = 2, .oldest_first = true}, "feat: one|feat: two", true},
        {{.head = main_tip, .max = 9, .without = side}, "docs: three|feat: two", false},
        {{.head = side, .max = 9, .without = main_tip, .oldest_first = true}, "fix: left|fix: right", false},
        {{.head = main_tip, .max = 9, .path = "doc"}, "docs: three", false},
        {{.head = main_tip, .max = 9, .path = "a.txt"}, "feat: two|feat: one", false},
        {{.head = main_tip, .max = 9, .path = "*"}, "", false},
        {{.head = side, .max = 9, .without = side}, "", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        bool more = !cases[i].more;
        g_autoptr(GPtrArray) commits = commit_list(world->repo, &cases[i].range, &more, &error);

        g_assert_no_error(error);
        g_autofree char *got = subjects(commits);
        g_assert_cmpstr(got, ==, cases[i].subjects);
        g_assert_true(more == cases[i].more);
    }
}

static void
test_relations(void)
{
    g_autoptr(GitWorld) world = small_world();
    g_autofree char *main_tip = git_world_tip(world, "main");
    g_autofree char *side = git_world_tip(world, "side");
    g_autofree char *one = git_world_text(world, GIT_READ, GIT_ARGS("rev-parse", "main~2"));
    g_autofree char *orphan = git_world_branch(world, "orphan", "x", "x");
    const struct {
        const char *base, *head, *merge_base, *status;
        guint ahead, behind;
    } cases[] = {
        {main_tip, side, one, "diverged", 2, 2},    {one, side, one, "ahead", 2, 0},
        {side, one, one, "behind", 0, 2},           {side, side, side, "identical", 0, 0},
        {main_tip, orphan, NULL, "diverged", 1, 3},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(Comparison) c = {0};
        bool is = false;

        g_assert_true(compare_commits(world->repo, cases[i].base, cases[i].head, &c, &error));
        g_assert_cmpstr(c.merge_base, ==, cases[i].merge_base);
        g_assert_cmpstr(c.status, ==, cases[i].status);
        g_assert_cmpuint(c.ahead, ==, cases[i].ahead);
        g_assert_cmpuint(c.behind, ==, cases[i].behind);
        g_assert_true(commit_is_ancestor(world->repo, cases[i].base, cases[i].head, &is, &error));
        g_assert_true(is == (cases[i].behind == 0));
    }
    guint n = 0;

    g_assert_true(commit_count(world->repo, main_tip, NULL, 0, &n, NULL));
    g_assert_cmpuint(n, ==, 3);
    g_assert_true(commit_count(world->repo, main_tip, side, 0, &n, NULL));
    g_assert_cmpuint(n, ==, 2);
    g_assert_true(commit_count(world->repo, main_tip, NULL, 2, &n, NULL));
    g_assert_cmpuint(n, ==, 2);
}

static void
test_branches(void)
{
    g_autoptr(GitWorld) world = small_world();
    g_autofree char *side = git_world_tip(world, "side");
    g_autofree char *tag = git_world_text(world, GIT_WRITE, GIT_ARGS("tag", "-a", "-m", "t", "v1", side));
    g_autoptr(GError) error = NULL;
    bool more = true;
    g_autoptr(GPtrArray) all = branch_list(world->repo, &(BranchPage){.max = 10}, &more, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(all->len, ==, 2);
    g_assert_false(more);
    g_assert_cmpstr(((BranchTip *)all->pdata[1])->name, ==, "side");
    g_assert_cmpstr(((BranchTip *)all->pdata[1])->oid, ==, side);
    g_autoptr(GPtrArray) page = branch_list(world->repo, &(BranchPage){.max = 1}, &more, &error);
    g_assert_cmpuint(page->len, ==, 1);
    g_assert_true(more);
    g_autoptr(GPtrArray)
        some = branch_list(world->repo, &(BranchPage){.max = 5, .prefix = "si"}, NULL, &error);
    g_assert_cmpuint(some->len, ==, 1);
    g_autoptr(GPtrArray) tags = branch_list(world->repo, &(BranchPage){.max = 5, .tags = true}, NULL, &error);
    g_assert_cmpuint(tags->len, ==, 1);
    g_assert_cmpstr(((BranchTip *)tags->pdata[0])->oid, ==, side);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/commit/read", test_read);
    g_test_add_func("/forge/commit/resolve", test_resolve);
    g_test_add_func("/forge/commit/list", test_list);
    g_test_add_func("/forge/commit/relations", test_relations);
    g_test_add_func("/forge/commit/branches", test_branches);
    return g_test_run();
}
