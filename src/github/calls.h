/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "github/client.h"

/* The calls that the workflow is made of, each one line of GitHub's reference.  Bodies are as they are
 * written there and are borrowed; what adds something carries how it is recognised (look.h), so all of
 * them may be tried again. */

typedef struct GithubAsk {
    GithubClient *client;
    const char *owner, *repo;
    bool look_first;   /* an earlier life may have done it */
    guint patience_ms; /* 0: GITHUB_PATIENCE_MS */
    GithubFunc done;
    void *data;
} GithubAsk;

void github_repo_get(const GithubAsk *ask);

/* `ref` is "heads/main". */
void github_ref_get(const GithubAsk *ask, const char *ref);
void github_ref_create(const GithubAsk *ask, const Json *body); /* {ref: "refs/heads/…", sha} */
void github_ref_update(const GithubAsk *ask, const char *ref, const Json *body);
void github_ref_delete(const GithubAsk *ask, const char *ref);

void github_contents_get(const GithubAsk *ask, const char *path, const char *ref); /* NULL: the default */
void github_contents_put(const GithubAsk *ask, const char *path, const Json *body);

void github_pull_create(const GithubAsk *ask, const Json *body); /* {title, head, base, …} */
void github_pull_get(const GithubAsk *ask, gint64 number);
void github_pull_list(const GithubAsk *ask, const char *query); /* "state=open&…"; NULL: none */
void github_pull_edit(const GithubAsk *ask, gint64 number, const Json *body);
/* REST has no call for it.  `node_id` is what GraphQL calls it. */
void github_pull_set_draft(const GithubAsk *ask, const char *node_id, bool draft);
void github_pull_merge(const GithubAsk *ask, gint64 number, const Json *body);
void github_pull_update_branch(const GithubAsk *ask, gint64 number, const Json *body);
void github_pull_request_reviewers(const GithubAsk *ask, gint64 number, const Json *body);
void github_pull_unrequest_reviewers(const GithubAsk *ask, gint64 number, const Json *body);
/* One page each, of 100. */
void github_pull_files(const GithubAsk *ask, gint64 number);
void github_pull_commits(const GithubAsk *ask, gint64 number);

void github_review_list(const GithubAsk *ask, gint64 number);
void github_review_create(const GithubAsk *ask, gint64 number, const Json *body);
void github_review_edit(const GithubAsk *ask, gint64 number, gint64 id, const Json *body); /* {body} */
void github_review_comment_list(const GithubAsk *ask, gint64 number);
void github_review_comment_create(const GithubAsk *ask, gint64 number, const Json *body);
void github_review_comment_edit(const GithubAsk *ask, gint64 id, const Json *body);
void github_review_comment_delete(const GithubAsk *ask, gint64 id);
/* By GraphQL.  `comment` is the first of the thread, one of the last 100 of the pull request. */
void github_thread_set_resolved(const GithubAsk *ask, gint64 number, gint64 comment, bool resolved);

void github_issue_get(const GithubAsk *ask, gint64 number);
void github_issue_create(const GithubAsk *ask, const Json *body);
void github_issue_edit(const GithubAsk *ask, gint64 number, const Json *body);
void github_comment_list(const GithubAsk *ask, gint64 number, const char *since); /* NULL: all */
void github_comment_create(const GithubAsk *ask, gint64 number, const Json *body);
void github_comment_edit(const GithubAsk *ask, gint64 id, const Json *body);
void github_comment_delete(const GithubAsk *ask, gint64 id);
/* The one comment of `login` with this marker is written anew in its place, and made where there is
 * none.  The same text again changes nothing. */
typedef struct GithubMarked {
    gint64 number;
    const char *marker, *login, *text;
} GithubMarked;
void github_comment_put(const GithubAsk *ask, const GithubMarked *comment);

void github_labels_add(const GithubAsk *ask, gint64 number, const Json *body);
void github_label_remove(const GithubAsk *ask, gint64 number, const char *name);

void github_status_create(const GithubAsk *ask, const char *sha, const Json *body);
void github_check_list(const GithubAsk *ask, const char *ref);
void
github_check_create(const GithubAsk *ask, const Json *body); /* with external_id, or it is not repeated */
void github_check_update(const GithubAsk *ask, gint64 id, const Json *body);
