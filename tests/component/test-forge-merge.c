/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/contents.h"
#include "forge/merge-parse.h"
#include "forge/merge.h"
#include "support/git-story.h"

static const MergePerson coop = {"Coop", "coop@example.com", 1800000000, 60};
static const MergePerson someone = {"Some <One>\n", "some@example.com", 1800000001, -210};

static MergeSpec
spec_of(MergeMethod method, const char *base, const char *head)
{
    return (MergeSpec){
        .method = method,
        .base = base,
        .head = head,
        .author = someone,
        .committer = coop,
        .message = "feat: bring it in\n\nbody\n",
    };
}

/* main and side from one commit: main changes a, side changes b twice. */
static GitWorld *
clean_world(void)
{
    GitWorld *world = git_world_new();
    g_autoptr(GitStory) story = git_story_new();

    git_story_commit(story, "main", NULL, "feat: one");
    git_story_file(story, "a", "a\n");
    git_story_file(story, "b", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    git_story_commit(story, "side", "main", "fix: top\n\nlong\n");
    git_story_file(story, "b", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    git_story_commit(story, "side", NULL, "fix: end");
    git_story_file(story, "b", "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    git_story_commit(story, "main", NULL, "feat: two");
    git_story_file(story, "a", "aa\n");
    git_story_tell(story, world);
    return world;
}

static char *
file_at(const GitWorld *world, const char *commit, const char *path)
{
    g_autoptr(GByteArray) bytes = NULL;
    g_autoptr(GError) error = NULL;

    contents_file(world->repo, commit, path, NULL, &bytes, &error);
    g_assert_no_error(error);
    return g_strndup((const char *)bytes->data, bytes->len);
}

static void
check_fsck(const GitWorld *world)
{
    g_autofree char *said = git_world_text(world, GIT_READ,
                                           GIT_ARGS("fsck", "--strict", "--no-dangling", "--full"));
}

static void
test_merge_commit(void)
{
    g_autoptr(GitWorld) world = clean_world();
    g_autofree char *base = git_world_tip(world, "main");
    g_autofree char *head = git_world_tip(world, "side");
    g_autoptr(GError) error = NULL;
    g_auto(MergeDone) done = {0}, again = {0};
    MergeSpec spec = spec_of(MERGE_COMMIT, base, head);

    g_assert_true(merge_make(world->repo, &spec, &done, &error));
    g_assert_no_error(error);
    g_assert_null(done.conflict);
    g_assert_cmpuint(done.children, ==, 2);
    g_autoptr(GitCommit) commit = commit_read(world->repo, done.oid, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(commit->tree, ==, done.tree);
    g_assert_cmpstr(commit->parents[0], ==, base);
    g_assert_cmpstr(commit->parents[1], ==, head);
    g_assert_cmpstr(commit->author.name, ==, "Some One");
    g_assert_cmpint(commit->author.zone_min, ==, -210);
    g_assert_cmpstr(commit->committer.name, ==, "Coop");
    g_assert_cmpint(commit->committer.time_s, ==, 1800000000);
    g_assert_cmpstr(commit->message, ==, "feat: bring it in\n\nbody\n");
    spec.tree = done.tree;
    g_assert_true(merge_make(world->repo, &spec, &again, &error));
    g_assert_cmpstr(again.oid, ==, done.oid);
    g_assert_cmpuint(again.children, ==, 1);
    check_fsck(world);
    g_autofree char *now = git_world_tip(world, "main");
    g_assert_cmpstr(now, ==, base);
}

static void
test_squash(void)
{
    g_autoptr(GitWorld) world = clean_world();
    g_autofree char *base = git_world_tip(world, "main");
    g_autofree char *head = git_world_tip(world, "side");
    g_autoptr(GError) error = NULL;
    g_auto(MergeDone) done = {0};
    MergeSpec spec = spec_of(MERGE_SQUASH, base, head);

    g_assert_true(merge_make(world->repo, &spec, &done, &error));
    g_autoptr(GitCommit) commit = commit_read(world->repo, done.oid, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(commit->parents[0], ==, base);
    g_assert_null(commit->parents[1]);
    g_autofree char *a = file_at(world, done.oid, "a");
    g_autofree char *b = file_at(world, done.oid, "b");
    g_assert_cmpstr(a, ==, "aa\n");
    g_assert_cmpstr(b, ==, "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}

static void
test_rebase(void)
{
    g_autoptr(GitWorld) world = clean_world();
    g_autofree char *base = git_world_tip(world, "main");
    g_autofree char *head = git_world_tip(world, "side");
    g_autoptr(GError) error = NULL;
    g_auto(MergeDone) done = {0}, again = {0}, onto_own = {0};
    MergeSpec spec = spec_of(MERGE_REBASE, base, head);

    g_assert_true(merge_make(world->repo, &spec, &done, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(done.commits, ==, 2);
    g_assert_cmpuint(done.children, ==, 6);
    g_autoptr(GitCommit) last = commit_read(world->repo, done.oid, &error);
    g_autoptr(GitCommit) first = commit_read(world->repo, last->parents[0], &error);

    g_assert_cmpstr(last->message, ==, "fix: end");
    g_assert_cmpstr(first->message, ==, "fix: top\n\nlong\n");
    g_assert_cmpstr(first->parents[0], ==, base);
    g_assert_cmpstr(first->author.name, ==, "An Author");
    g_assert_cmpstr(first->committer.name, ==, "Coop");
    g_autofree char *b = file_at(world, first->oid, "b");
    g_assert_cmpstr(b, ==, "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    g_assert_true(merge_make(world->repo, &spec, &again, &error));
    g_assert_cmpstr(again.oid, ==, done.oid);
    check_fsck(world);
    /* Where the target has not moved there is nothing to merge. */
    g_autofree char *root = git_world_text(world, GIT_READ, GIT_ARGS("rev-parse", "main~1"));
    spec.base = root;
    g_assert_true(merge_make(world->repo, &spec, &onto_own, &error));
    g_assert_cmpuint(onto_own.children, ==, 3);
    g_assert_cmpuint(onto_own.commits, ==, 2);
}

static void
test_conflict(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autoptr(GitStory) story = git_story_new();
    g_autoptr(GError) error = NULL;

    git_story_commit(story, "main", NULL, "feat: one");
    git_story_file(story, "f", "a\nb\nc\n");
    git_story_file(story, "gone", "x\n");
    git_story_blob(story, "100644", "bin", "\0\1\2", 3);
    git_story_commit(story, "side", "main", "fix: theirs");
    git_story_file(story, "f", "a\ntheirs\nc\n");
    git_story_file(story, "gone", "y\n");
    git_story_blob(story, "100644", "bin", "\0\1\3", 3);
    git_story_commit(story, "main", NULL, "fix: ours");
    git_story_file(story, "f", "a\nours\nc\n");
    git_story_remove(story, "gone");
    git_story_blob(story, "100644", "bin", "\0\1\4", 3);
    git_story_tell(story, world);
    g_autofree char *base = git_world_tip(world, "main");
    g_autofree char *head = git_world_tip(world, "side");

    for (int method = 0; method < MERGE_METHOD_MAX; method++) {
        g_auto(MergeDone) done = {0};
        MergeSpec spec = spec_of((MergeMethod)method, base, head);

        g_assert_true(merge_make(world->repo, &spec, &done, &error));
        g_assert_no_error(error);
        g_assert_nonnull(done.conflict);
        g_assert_cmpstr(done.oid, ==, "");
        g_assert_cmpstr(done.conflict_commit, ==, method == MERGE_REBASE ? head : NULL);
    }
    g_autoptr(MergeResult) result = merge_try(world->repo, base, head, &error);
    MergeIntent ours = {"main", base, "Ours", "why"}, theirs = {"side", head, "Theirs", NULL};
    g_autoptr(Json) bundle = merge_bundle(world->repo, result, &ours, &theirs, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(result->conflicts->len, ==, 3);
    Json *files = json_object_get(bundle, "files");
    Json *bin = json_array_get(files, 0), *f = json_array_get(files, 1), *gone = json_array_get(files, 2);
    g_assert_cmpstr(json_string_value(json_object_get(f, "path")), ==, "f");
    g_assert_cmpstr(json_string_value(json_object_get(json_object_get(f, "base"), "text")), ==, "a\nb\nc\n");
    g_assert_cmpstr(json_string_value(json_object_get(json_object_get(f, "ours"), "text")), ==,
                    "a\nours\nc\n");
    g_assert_cmpstr(json_string_value(json_object_get(json_object_get(f, "theirs"), "text")), ==,
                    "a\ntheirs\nc\n");
    const char *merged = json_string_value(json_object_get(json_object_get(f, "merged"), "text"));
    g_assert_nonnull(strstr(merged, "<<<<<<<"));
    g_assert_nonnull(strstr(merged, "ours\n======="));
    g_assert_true(json_is_null(json_object_get(gone, "ours")));
    g_assert_true(json_is_true(json_object_get(json_object_get(bin, "base"), "binary")));
    g_assert_true(json_is_null(json_object_get(json_object_get(bin, "base"), "text")));
    g_assert_cmpstr(json_string_value(json_object_get(json_object_get(bundle, "ours"), "title")), ==, "Ours");
    g_assert_cmpuint(json_array_size(json_object_get(bundle, "notes")), >=, 3);
    g_autofree char *fork = git_world_text(world, GIT_READ, GIT_ARGS("rev-parse", "main~1"));
    g_assert_cmpstr(json_string_value(json_object_get(bundle, "merge_base")), ==, fork);
}

static void
test_update_branch(void)
{
    g_autoptr(GitWorld) world = clean_world();
    g_autofree char *base = git_world_tip(world, "main");
    g_autofree char *head = git_world_tip(world, "side");
    g_autoptr(GError) error = NULL;
    g_auto(MergeDone) done = {0}, nothing = {0};
    MergeSpec spec = spec_of(MERGE_COMMIT, base, head);

    g_assert_true(merge_update_branch(world->repo, &spec, &done, &error));
    g_autoptr(GitCommit) commit = commit_read(world->repo, done.oid, &error);

    g_assert_cmpstr(commit->parents[0], ==, head);
    g_assert_cmpstr(commit->parents[1], ==, base);
    spec.head = done.oid;
    g_assert_true(merge_update_branch(world->repo, &spec, &nothing, &error));
    g_assert_cmpstr(nothing.oid, ==, done.oid);
    g_assert_cmpuint(nothing.commits, ==, 0);
}

static void
test_unrelated(void)
{
    g_autoptr(GitWorld) world = clean_world();
    g_autofree char *base = git_world_tip(world, "main");
    g_autofree char *orphan = git_world_branch(world, "orphan", "x", "x\n");

    for (int method = 0; method < MERGE_METHOD_MAX; method++) {
        g_auto(MergeDone) done = {0};
        g_autoptr(GError) error = NULL;
        MergeSpec spec = spec_of((MergeMethod)method, base, orphan);

        g_assert_false(merge_make(world->repo, &spec, &done, &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    }
    g_autoptr(GError) error = NULL;

    g_assert_null(merge_try(world->repo, base, "1111111111111111111111111111111111111111", &error));
    g_assert_error(error, ERR_DOMAIN, ERR_NOT_FOUND);
}

/* What a rebase leaves out: what the target has, by its patch or by its result. */
static void
test_rebase_leaves_out(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autoptr(GitStory) story = git_story_new();
    g_autoptr(GError) error = NULL;
    g_auto(MergeDone) done = {0};

    git_story_commit(story, "main", NULL, "feat: one");
    git_story_file(story, "a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    git_story_commit(story, "side", "main", "fix: same patch");
    git_story_file(story, "a", "x\n2\n3\n4\n5\n6\n7\n8\n9\n");
    git_story_commit(story, "side", NULL, "chore: empty from the start");
    git_story_commit(story, "side", NULL, "fix: same result");
    git_story_file(story, "b", "b\n");
    git_story_commit(story, "side", NULL, "fix: own");
    git_story_file(story, "c", "c\n");
    git_story_commit(story, "main", NULL, "fix: same patch, picked");
    git_story_file(story, "a", "x\n2\n3\n4\n5\n6\n7\n8\n9\n");
    git_story_commit(story, "main", NULL, "fix: and changed again");
    git_story_file(story, "a", "z\n2\n3\n4\n5\n6\n7\n8\n9\n");
    git_story_file(story, "b", "b\n");
    git_story_tell(story, world);
    g_autofree char *base = git_world_tip(world, "main");
    g_autofree char *head = git_world_tip(world, "side");
    MergeSpec spec = spec_of(MERGE_REBASE, base, head);

    g_assert_true(merge_make(world->repo, &spec, &done, &error));
    g_assert_no_error(error);
    g_assert_null(done.conflict);
    g_assert_cmpuint(done.commits, ==, 2);
    g_autofree char *a = file_at(world, done.oid, "a");
    g_assert_cmpstr(a, ==, "z\n2\n3\n4\n5\n6\n7\n8\n9\n");
    spec.head = base;
    g_auto(MergeDone) none = {0};
    g_assert_true(merge_make(world->repo, &spec, &none, &error));
    g_assert_cmpstr(none.oid, ==, base);
    g_assert_cmpuint(none.commits, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/merge/commit", test_merge_commit);
    g_test_add_func("/forge/merge/squash", test_squash);
    g_test_add_func("/forge/merge/rebase", test_rebase);
    g_test_add_func("/forge/merge/conflict", test_conflict);
    g_test_add_func("/forge/merge/update-branch", test_update_branch);
    g_test_add_func("/forge/merge/unrelated", test_unrelated);
    g_test_add_func("/forge/merge/rebase-leaves-out", test_rebase_leaves_out);
    return g_test_run();
}
