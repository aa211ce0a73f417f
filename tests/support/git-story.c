/* SPDX-License-Identifier: Apache-2.0 */
#include "support/git-story.h"

#include <string.h>

enum { FIRST_S = 1700000000, STEP_S = 60 };

struct GitStory {
    GString *text;
    GHashTable *here; /* branches of this part of it */
    GHashTable *told; /* branches of the parts before */
    gint64 time_s;
};

GitStory *
git_story_new(void)
{
    GitStory *story = g_new0(GitStory, 1);

    story->text = g_string_new(NULL);
    story->here = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    story->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    story->time_s = FIRST_S;
    return story;
}

void
git_story_free(GitStory *story)
{
    if (story == NULL)
        return;
    g_string_free(story->text, TRUE);
    g_hash_table_unref(story->here);
    g_hash_table_unref(story->told);
    g_free(story);
}

static char *
quoted(const char *path)
{
    GString *text = g_string_new("\"");

    for (const char *p = path; *p != '\0'; p++) {
        if (*p == '\n')
            g_string_append(text, "\\n");
        else if (*p == '"' || *p == '\\')
            g_string_append_printf(text, "\\%c", *p);
        else
            g_string_append_c(text, *p);
    }
    g_string_append_c(text, '"');
    return g_string_free(text, FALSE);
}

void
git_story_commit(GitStory *story, const char *branch, const char *from, const char *message)
{
    GString *text = story->text;

    g_string_append_printf(text, "commit refs/heads/%s\n", branch);
    g_string_append_printf(text, "author An Author <author@example.com> %" G_GINT64_FORMAT " +0130\n",
                           story->time_s);
    g_string_append_printf(text, "committer A Committer <committer@example.com> %" G_GINT64_FORMAT " -0800\n",
                           story->time_s);
    g_string_append_printf(text, "data %zu\n%s\n", strlen(message), message);
    /* fast-import itself knows only what it has made. */
    if (from != NULL)
        g_string_append_printf(text, "from refs/heads/%s\n", from);
    else if (!g_hash_table_contains(story->here, branch) && g_hash_table_contains(story->told, branch))
        g_string_append_printf(text, "from refs/heads/%s^0\n", branch);
    g_hash_table_add(story->here, g_strdup(branch));
    story->time_s += STEP_S;
}

void
git_story_merges(GitStory *story, const char *branch)
{
    g_string_append_printf(story->text, "merge refs/heads/%s\n", branch);
}

void
git_story_blob(GitStory *story, const char *mode, const char *path, const void *bytes, size_t n)
{
    g_autofree char *name = quoted(path);

    g_string_append_printf(story->text, "M %s inline %s\ndata %zu\n", mode, name, n);
    g_string_append_len(story->text, bytes, (gssize)n);
    g_string_append_c(story->text, '\n');
}

void
git_story_file(GitStory *story, const char *path, const char *text)
{
    git_story_blob(story, "100644", path, text, strlen(text));
}

void
git_story_submodule(GitStory *story, const char *path, const char *oid)
{
    g_string_append_printf(story->text, "M 160000 %s %s\n", oid, path);
}

void
git_story_remove(GitStory *story, const char *path)
{
    g_string_append_printf(story->text, "D %s\n", path);
}

void
git_story_rename(GitStory *story, const char *old, const char *new)
{
    g_string_append_printf(story->text, "R %s %s\n", old, new);
}

void
git_story_tell(GitStory *story, const GitWorld *world)
{
    g_autoptr(GError) error = NULL;
    GitCall call = {
        .access = GIT_WRITE,
        .args = GIT_ARGS("fast-import", "--quiet", "--force"),
        .input = story->text->str,
        .input_len = story->text->len,
    };

    git_run(world->repo, &call, NULL, &error);
    g_assert_no_error(error);
    g_string_truncate(story->text, 0);
    GHashTableIter iter;
    void *branch;

    g_hash_table_iter_init(&iter, story->here);
    while (g_hash_table_iter_next(&iter, &branch, NULL)) {
        g_hash_table_add(story->told, branch);
        g_hash_table_iter_steal(&iter);
    }
}

char *
git_world_tip(const GitWorld *world, const char *branch)
{
    g_autoptr(GError) error = NULL;
    char *oid = git_branch_oid(world->repo, branch, &error);

    g_assert_no_error(error);
    return oid;
}
