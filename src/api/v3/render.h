/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/v3/v3.h"
#include "forge/commit.h"
#include "forge/diff.h"
#include "forge/repo-settings.h"

/* Representations that more than one route gives.  Any thread may make them. */

/* Of a person as people.h has it; null for what is none. */
Json *v3_user(const V3Place *place, const Json *person);
/* The same of a repository's owner, who is no person. */
Json *v3_owner(const V3Place *place, const char *owner);

/* A repository as lists have it. */
Json *v3_repository(const V3Place *place, const RepoInfo *info);
/* What one alone has beyond that: rights and settings. */
typedef struct V3RepositoryMore {
    Scopes scopes;
    const RepoSettings *settings;
    gint64 open_threads;
} V3RepositoryMore;
void v3_repository_add(Json *repository, const V3RepositoryMore *more);

/* A commit as lists have it: {sha, commit: {…}, author: null, parents, …}. */
Json *v3_commit(const V3Place *place, const GitCommit *commit);
/* The commit itself, as git/commits has it. */
Json *v3_git_commit(const V3Place *place, const GitCommit *commit);
/* A changed file: {sha, filename, status, additions, deletions, changes, patch, …} at `head`. */
Json *v3_file(const V3Place *place, const DiffFile *file, const char *head);
/* Rows of check-row.h.  `seen_by` of a check run is ours: "coop" or "claimed". */
Json *v3_status(const V3Place *place, const Json *row);
Json *v3_check_run(const V3Place *place, const Json *row);
/* Bytes of git as text: what is not UTF-8 becomes U+FFFD. */
Json *v3_text(const char *bytes);
