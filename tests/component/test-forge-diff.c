/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "forge/diff.h"
#include "forge/git-private.h"
#include "support/git-story.h"

enum { MANY = 10000 };

static char *
numbers(int from, int to)
{
    GString *text = g_string_new(NULL);

    for (int i = from; i <= to; i++)
        g_string_append_printf(text, "%d\n", i);
    return g_string_free(text, FALSE);
}

/* Every kind of change once. */
static GitWorld *
all_kinds(void)
{
    GitWorld *world = git_world_new();
    g_autoptr(GitStory) story = git_story_new();
    g_autofree char *hundred = numbers(1, 100), *longer = numbers(1, 102);

    git_story_commit(story, "old", NULL, "feat: old");
    git_story_file(story, ".gitattributes", "*.bin diff=evil\n*.txt -diff\n");
    git_story_file(story, "edited.txt", "1\n2\n3\n");
    git_story_file(story, "gone", "bye\n");
    git_story_file(story, "moved/from", hundred);
    git_story_blob(story, "120000", "turned", "edited.txt", 10);
    git_story_file(story, "mode", "x\n");
    git_story_blob(story, "100644", "data.bin", "\0\1", 2);
    git_story_submodule(story, "sub", "1111111111111111111111111111111111111111");
    git_story_file(story, "spoof", "a\n");
    git_story_commit(story, "new", "old", "feat: new");
    git_story_file(story, "edited.txt", "1\ntwo\n3");
    git_story_remove(story, "gone");
    git_story_remove(story, "moved/from");
    git_story_file(story, "moved/to", longer);
    git_story_file(story, "turned", "a file\n");
    git_story_blob(story, "100755", "mode", "x\n", 2);
    git_story_blob(story, "100644", "data.bin", "\0\2", 2);
    git_story_submodule(story, "sub", "2222222222222222222222222222222222222222");
    git_story_file(story, "spoof", "a\ndiff --git a/x b/x\n@@ -1,9 +1,9 @@\nBinary files a and b differ\n");
    git_story_file(story, "we\"ird\nname", "new\n");
    git_story_tell(story, world);
    return world;
}

static DiffPage *
page_of(const GitWorld *world, const DiffSpec *spec)
{
    g_autoptr(GError) error = NULL;
    DiffPage *page = diff_files(world->repo, spec, &error);

    g_assert_no_error(error);
    return page;
}

static const DiffFile *
find(const DiffPage *page, const char *path)
{
    for (guint i = 0; i < page->files->len; i++) {
        const DiffFile *file = page->files->pdata[i];

        if (strcmp(file->path, path) == 0)
            return file;
    }
    g_assert_not_reached();
}

static void
test_kinds(void)
{
    g_autoptr(GitWorld) world = all_kinds();
    g_autofree char *old = git_world_tip(world, "old");
    g_autofree char *new = git_world_tip(world, "new");
    g_autoptr(DiffPage) page = page_of(world, &(DiffSpec){.old = old, .new = new});
    const struct {
        const char *path;
        DiffStatus status;
        guint additions, deletions, old_mode, new_mode;
        bool binary;
    } cases[] = {
        {"data.bin", DIFF_MODIFIED, 0, 0, 0100644, 0100644, true},
        {"edited.txt", DIFF_MODIFIED, 2, 2, 0100644, 0100644, false},
        {"gone", DIFF_REMOVED, 0, 1, 0100644, 0, false},
        {"mode", DIFF_MODIFIED, 0, 0, 0100644, 0100755, false},
        {"moved/to", DIFF_RENAMED, 2, 0, 0100644, 0100644, false},
        {"spoof", DIFF_MODIFIED, 3, 0, 0100644, 0100644, false},
        {"sub", DIFF_MODIFIED, 1, 1, 0160000, 0160000, false},
        {"turned", DIFF_TYPE_CHANGED, 1, 1, 0120000, 0100644, false},
        {"we\"ird\nname", DIFF_ADDED, 1, 0, 0, 0100644, false},
    };

    g_assert_cmpuint(page->files->len, ==, G_N_ELEMENTS(cases));
    g_assert_null(page->next);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const DiffFile *file = page->files->pdata[i];

        g_test_message("%s", cases[i].path);
        g_assert_cmpstr(file->path, ==, cases[i].path);
        g_assert_cmpint(file->status, ==, cases[i].status);
        g_assert_cmpuint(file->additions, ==, cases[i].additions);
        g_assert_cmpuint(file->deletions, ==, cases[i].deletions);
        g_assert_cmpuint(file->old_mode, ==, cases[i].old_mode);
        g_assert_cmpuint(file->new_mode, ==, cases[i].new_mode);
        g_assert_true(file->binary == cases[i].binary);
        g_assert_true(file->counted);
        g_assert_false(file->too_large);
    }
    g_assert_cmpstr(find(page, "edited.txt")->patch->str, ==,
                    "@@ -1,3 +1,3 @@\n 1\n-2\n-3\n+two\n+3\n\\ No newline at end of file\n");
    g_assert_cmpstr(find(page, "moved/to")->old_path, ==, "moved/from");
    g_assert_cmpuint(find(page, "moved/to")->similarity, >, 90);
    g_assert_null(find(page, "mode")->patch);
    g_assert_nonnull(strstr(find(page, "sub")->patch->str, "+Subproject commit 2222"));
}

/* Whatever the pages, together they are the whole. */
static void
test_pages(void)
{
    g_autoptr(GitWorld) world = all_kinds();
    g_autofree char *old = git_world_tip(world, "old");
    g_autofree char *new = git_world_tip(world, "new");
    g_autoptr(DiffPage) whole = page_of(world, &(DiffSpec){.old = old, .new = new});

    for (guint max = 1; max <= 4; max++) {
        g_autofree char *from = NULL;
        guint seen = 0;

        do {
            g_autoptr(DiffPage)
                page = page_of(world, &(DiffSpec){.old = old, .new = new, .from = from, .max = max});
            g_autoptr(DiffPage)
                same = page_of(world, &(DiffSpec){.old = old, .new = new, .skip = seen, .max = max});

            g_assert_cmpuint(page->files->len, ==, same->files->len);
            g_assert_cmpstr(page->next, ==, same->next);
            for (guint i = 0; i < page->files->len; i++, seen++) {
                const DiffFile *a = page->files->pdata[i], *b = whole->files->pdata[seen],
                               *c = same->files->pdata[i];

                g_assert_cmpstr(a->path, ==, b->path);
                g_assert_cmpstr(a->path, ==, c->path);
                g_assert_cmpuint(a->additions, ==, b->additions);
                g_assert_true(a->counted);
                g_assert_true((a->patch == NULL) == (b->patch == NULL));
                g_assert_true(a->patch == NULL || g_string_equal(a->patch, b->patch));
            }
            g_free(from);
            from = g_steal_pointer(&page->next);
        } while (from != NULL);
        g_assert_cmpuint(seen, ==, whole->files->len);
    }
    g_autoptr(DiffPage) none = page_of(world, &(DiffSpec){.old = old, .new = new, .skip = 100});
    g_assert_cmpuint(none->files->len, ==, 0);
    g_autoptr(DiffPage)
        names = page_of(world, &(DiffSpec){.old = old, .new = new, .names_only = true, .max = 2});
    g_assert_cmpuint(names->files->len, ==, 2);
    g_assert_false(((DiffFile *)names->files->pdata[0])->counted);
    g_autoptr(DiffPage) folder = page_of(world, &(DiffSpec){.old = old, .new = new, .path = "moved"});
    g_assert_cmpuint(folder->files->len, ==, 1);
}

static void
test_refused(void)
{
    g_autoptr(GitWorld) world = all_kinds();
    g_autofree char *new = git_world_tip(world, "new");
    const DiffSpec cases[] = {
        {.old = "--output=/tmp/x", .new = new},   {.old = new, .new = "new"},
        {.old = new, .new = new, .path = "../x"}, {.new = new, .from = "none"},
        {.old = git_oid_zero, .new = new},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(diff_files(world->repo, &cases[i], &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    }
}

static bool
take_all(const guint8 *bytes, size_t n, void *ctx)
{
    g_string_append_len(ctx, (const char *)bytes, (gssize)n);
    return true;
}

static void
test_whole(void)
{
    g_autoptr(GitWorld) world = all_kinds();
    g_autofree char *old = git_world_tip(world, "old");
    g_autofree char *new = git_world_tip(world, "new");
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    DiffTotals totals;
    bool cut = true;

    g_assert_true(
        diff_stream(world->repo, &(DiffSpec){.old = old, .new = new}, take_all, text, &cut, &error));
    g_assert_false(cut);
    g_assert_nonnull(strstr(text->str, "rename from moved/from\n"));
    g_assert_true(diff_totals(world->repo, old, new, &totals, &error));
    g_assert_cmpuint(totals.files, ==, 9);
    g_assert_cmpuint(totals.additions, ==, 10);
    g_assert_cmpuint(totals.deletions, ==, 5);
    g_assert_true(diff_totals(world->repo, new, new, &totals, &error));
    g_assert_cmpuint(totals.files, ==, 0);
    g_autoptr(DiffPage) root = page_of(world, &(DiffSpec){.new = old});
    g_assert_cmpuint(root->files->len, ==, 9);
}

/* Two commits stay as they are, so the repository is not asked again; others make room. */
static void
test_totals_are_kept(void)
{
    g_autoptr(GitWorld) world = all_kinds();
    g_autofree char *old = git_world_tip(world, "old");
    g_autofree char *new = git_world_tip(world, "new");
    g_autofree char *away = g_strconcat(git_repo_path(world->repo), ".away", NULL);
    DiffTotals first, totals = {0};

    g_assert_true(diff_totals(world->repo, old, new, &first, NULL));
    g_assert_cmpint(rename(git_repo_path(world->repo), away), ==, 0);
    g_assert_true(diff_totals(world->repo, old, new, &totals, NULL));
    g_assert_cmpuint(totals.files, ==, first.files);
    g_assert_cmpuint(totals.additions, ==, first.additions);
    g_assert_cmpuint(totals.deletions, ==, first.deletions);
    g_assert_false(diff_totals(world->repo, new, old, &totals, NULL));
    for (guint i = 0; i < GIT_FACTS_MAX; i++) {
        GitFact other = {.values = {i}};

        g_snprintf(other.old, sizeof other.old, "%040u", i);
        git_fact_keep(world->repo, &other);
        g_assert_true(git_fact_find(world->repo, &other));
    }
    g_assert_false(diff_totals(world->repo, old, new, &totals, NULL));
    g_assert_cmpint(rename(away, git_repo_path(world->repo)), ==, 0);
}

/* A patch that is too long, one with too long a line, and what more there is. */
static void
test_bounds(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autoptr(GitStory) story = git_story_new();
    g_autofree char *many_lines = numbers(1, 100000);
    g_autofree char *long_line = g_strnfill(DIFF_LINE_MAX + 10, 'x');
    g_autofree char *huge = g_strnfill((DIFF_BLOB_MAX_MIB << 20) + 1, 'y');

    git_story_commit(story, "main", NULL, "feat: x");
    git_story_file(story, "a-many", many_lines);
    git_story_file(story, "b-long", long_line);
    git_story_file(story, "c-huge", huge);
    git_story_file(story, "d-small", "x\n");
    git_story_tell(story, world);
    g_autofree char *new = git_world_tip(world, "main");
    g_autoptr(DiffPage) page = page_of(world, &(DiffSpec){.new = new});

    g_assert_cmpuint(page->files->len, ==, 4);
    g_assert_true(find(page, "a-many")->too_large);
    g_assert_null(find(page, "a-many")->patch);
    g_assert_cmpuint(find(page, "a-many")->additions, ==, 100000);
    g_assert_true(find(page, "b-long")->too_large);
    g_assert_cmpuint(find(page, "b-long")->additions, ==, 1);
    g_assert_true(find(page, "c-huge")->binary);
    g_assert_cmpstr(find(page, "d-small")->patch->str, ==, "@@ -0,0 +1 @@\n+x\n");
}

/* Many files that all moved and changed: no rename is looked for, and it is served page by page. */
static void
test_many(void)
{
    g_autoptr(GitWorld) world = git_world_new();
    g_autoptr(GitStory) story = git_story_new();

    git_story_commit(story, "old", NULL, "feat: old");
    for (int i = 0; i < MANY / 2; i++) {
        g_autofree char *name = g_strdup_printf("old/%05d", i), *text = numbers(i, i + 9);

        git_story_file(story, name, text);
    }
    git_story_commit(story, "new", "old", "feat: new");
    for (int i = 0; i < MANY / 2; i++) {
        g_autofree char *name = g_strdup_printf("new/n%05d", i), *text = numbers(i, i + 10);
        g_autofree char *gone = g_strdup_printf("old/%05d", i);

        git_story_remove(story, gone);
        git_story_file(story, name, text);
    }
    git_story_tell(story, world);
    g_autofree char *old = git_world_tip(world, "old");
    g_autofree char *new = git_world_tip(world, "new");
    g_autofree char *from = NULL;

    for (int pages = 0; pages < 3; pages++) {
        g_autoptr(DiffPage) page = page_of(world, &(DiffSpec){.old = old, .new = new, .from = from});

        g_assert_cmpuint(page->files->len, ==, DIFF_PAGE_MAX);
        for (guint i = 0; i < page->files->len; i++) {
            const DiffFile *file = page->files->pdata[i];

            g_assert_true(file->counted && file->patch != NULL && file->status == DIFF_ADDED);
            g_assert_cmpuint(file->additions, ==, 11);
        }
        g_free(from);
        from = g_steal_pointer(&page->next);
    }
    g_autoptr(DiffPage) last = page_of(world, &(DiffSpec){.old = old, .new = new, .skip = MANY - 1});
    g_assert_cmpuint(last->files->len, ==, 1);
    g_assert_null(last->next);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/diff/kinds", test_kinds);
    g_test_add_func("/forge/diff/pages", test_pages);
    g_test_add_func("/forge/diff/refused", test_refused);
    g_test_add_func("/forge/diff/whole", test_whole);
    g_test_add_func("/forge/diff/totals", test_totals_are_kept);
    g_test_add_func("/forge/diff/bounds", test_bounds);
    g_test_add_func("/forge/diff/many", test_many);
    return g_test_run();
}
