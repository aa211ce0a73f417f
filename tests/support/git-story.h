/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "support/git-world.h"

/* Commits for a test, told in order and made by one `git fast-import`.  Each is the next one of its
 * branch; whoever did it is the same, and time goes on by a minute. */
typedef struct GitStory GitStory;

GitStory *git_story_new(void);
void git_story_free(GitStory *story);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GitStory, git_story_free)

/* `from` is the branch that a new one begins at; NULL: it goes on, or begins with nothing. */
void git_story_commit(GitStory *story, const char *branch, const char *from, const char *message);
/* What the commit does. */
void git_story_merges(GitStory *story, const char *branch); /* first of these */
void git_story_file(GitStory *story, const char *path, const char *text);
void git_story_blob(GitStory *story, const char *mode, const char *path, const void *bytes, size_t n);
void git_story_submodule(GitStory *story, const char *path, const char *oid);
void git_story_remove(GitStory *story, const char *path);
void git_story_rename(GitStory *story, const char *old, const char *new);

/* Makes all of it; it may go on afterwards. */
void git_story_tell(GitStory *story, const GitWorld *world);
char *git_world_tip(const GitWorld *world, const char *branch);
