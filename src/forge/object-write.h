/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "forge/commit.h"
#include "forge/git.h"
#include "forge/merge.h"

/* Objects that are made here: text first, so that their names are known before git has them, and then all of
 * them by one child. */

/* The text of a commit; `parents` ends with NULL. */
GString *commit_text_new(const char *tree, const char *const *parents, const MergePerson *author,
                         const MergePerson *committer, const char *message);
/* The text of one that says the same as the commit `bytes`: author, message and encoding stay, byte for byte;
 * signatures, which would be wrong, go.  NULL: it is no commit. */
GString *commit_text_again(const guint8 *bytes, size_t n, const char *tree, const char *parent,
                           const MergePerson *committer);
/* The text of a tag; `type` is what `oid` is. */
GString *tag_text_new(const char *oid, const char *type, const char *name, const MergePerson *tagger,
                      const char *message);
/* Its object name. */
void commit_text_oid(const GString *text, char ret_oid[GIT_OID_LEN + 1]);

/* `texts` is GString.  To write what is there already is no matter. */
bool commits_write(GitRepo *repo, const GPtrArray *texts, GError **error);

/* ---- objects of any kind ---- */

/* The numbers are those in packs. */
typedef enum ObjectKind { OBJECT_COMMIT = 1, OBJECT_TREE = 2, OBJECT_BLOB = 3, OBJECT_TAG = 4 } ObjectKind;

typedef struct NewObject {
    ObjectKind kind;
    GString *bytes;
    char oid[GIT_OID_LEN + 1];
} NewObject;

NewObject *new_object_make(ObjectKind kind, GString *bytes); /* takes `bytes` */
void new_object_free(NewObject *object);

/* `objects` is NewObject.  git looks at each as it does at what is pushed, and all that they name has to be
 * there: ERR_INVALID with what it says. */
bool objects_write(GitRepo *repo, const GPtrArray *objects, GError **error);
