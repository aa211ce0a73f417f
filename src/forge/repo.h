/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "forge/forge.h"

/* Making, importing, mirroring and removing repositories.
 *
 *     importing -> ready | failed     failed -> importing (asked again)     any -> removing -> gone
 *
 * Each step is a row before it is anything else.  A server that was killed begins an import again
 * (what git has already is not sent again), and finishes a removal. */
typedef enum RepoState {
    REPO_IMPORTING,
    REPO_READY,
    REPO_FAILED,
    REPO_REMOVING,
    REPO_STATE_MAX,
} RepoState;

enum {
    REPO_DESCRIPTION_MAX = 1024,
    REPO_SOURCE_MAX = 2048,
    REPO_COUNT_MAX = 100 * 1000,
    REPO_BRANCHES_MAX = 1000, /* in one page */
    REPO_BRANCH_NAME_MAX = 200,
};

extern const char repo_owner_default[];  /* of a name that has no owner */
extern const char repo_branch_default[]; /* "main" */

const char *repo_state_name(RepoState state);
bool repo_is_ready(const Repo *repo);
/* ERR_CONFLICT that says what it is in the place of ready. */
bool repo_require_ready(const Repo *repo, GError **error);

/* ASCII letters, digits and "._-", not "." or "-" first, no ".git" or ".lock" at the end. */
bool repo_name_is_valid(const char *name, GError **error);
/* "owner/name", or "name" of the default owner. */
bool repo_name_split(const char *text, char **ret_owner, char **ret_name, GError **error);

typedef struct RepoSpec {
    const char *owner; /* NULL: the default one */
    const char *name;
    const char *description;    /* NULL: none */
    const char *default_branch; /* NULL: "main", or of an import what its source has */
    const char *source;         /* a folder or a URL; NULL: an empty repository */
    bool mirror;                /* of a URL: fetched again and again */
    bool insecure;              /* http to other machines too */
    bool first_commit;          /* an empty one on the default branch */
    const char *actor;
} RepoSpec;

/* A new one is ready when `done` runs; an import has begun then, and events tell how it goes. */
typedef void (*RepoFunc)(Repo *repo, const GError *error, void *data);
void repo_create(Forge *forge, const RepoSpec *spec, RepoFunc done, void *data);

/* Begins to fetch what its upstream has, or tries an import that failed again; events tell how it
 * ends.  ERR_CONFLICT: nothing to fetch from, or one is under way. */
bool repo_fetch(Repo *repo, const char *actor, GError **error);

/* NULL members stay as they are.  The default branch has to be there: ERR_INVALID. */
typedef struct RepoEdit {
    const char *actor;
    const char *description, *default_branch;
} RepoEdit;
void repo_edit(Repo *repo, const RepoEdit *edit, DbDone done, void *data);

/* `done` when no row of it is left; the folder goes behind that. */
void repo_remove(Repo *repo, const char *actor, DbDone done, void *data);

/* Something was pushed: the time, and before long the size, are written down. */
void repo_pushed(Repo *repo);

/* Branches in the order of their names, behind `after` (NULL: the first), at most `limit`:
 * {"branches": [{name, commit}], "next": name | null}. */
void repo_list_branches(Repo *repo, const char *after, guint limit, ForgeJsonFunc done, void *data);

/* As the API shows it. */
Json *repo_json(const Repo *repo);
