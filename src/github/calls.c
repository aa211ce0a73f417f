/* SPDX-License-Identifier: Apache-2.0 */
#include "github/calls.h"

#include <string.h>

#include "base/err.h"
#include "github/look.h"
#include "github/text.h"
#include "http/url.h"

/* Below the repository; `path` and `look_path` (NULL: none) are taken. */
typedef struct Send {
    const char *method;
    char *path;
    const Json *body;
    char *look_path;
    const char *member;
    bool (*is_it)(const Json *item, const Json *body);
    bool repeatable;
} Send;

static void
send(const GithubAsk *ask, const Send *s)
{
    g_autofree char *repo = github_path("/repos/%s/%s", ask->owner, ask->repo);
    g_autofree char *path = g_strconcat(repo, s->path, NULL);
    g_autofree char *look_path = s->look_path != NULL ? g_strconcat(repo, s->look_path, NULL) : NULL;
    GithubLook look = {look_path, s->member, s->is_it};

    github_call(ask->client,
                &(GithubRequest){.method = s->method,
                                 .path = path,
                                 .body = s->body,
                                 .look = look_path != NULL ? &look : NULL,
                                 .look_first = ask->look_first,
                                 .repeatable = s->repeatable,
                                 .patience_ms = ask->patience_ms},
                ask->done, ask->data);
    g_free(s->path);
    g_free(s->look_path);
}

static void
get(const GithubAsk *ask, char *path)
{
    send(ask, &(Send){.method = "GET", .path = path});
}

static void
set(const GithubAsk *ask, const char *method, char *path, const Json *body)
{
    send(ask, &(Send){.method = method, .path = path, .body = body});
}

/* ---- repositories, refs, contents ---- */

void
github_repo_get(const GithubAsk *ask)
{
    get(ask, g_strdup(""));
}

/* The slashes of a ref are the path's. */
static char *
ref_path(const char *start, const char *ref)
{
    g_autofree char *coded = url_encode_path(ref);

    return g_strconcat(start, coded, NULL);
}

void
github_ref_get(const GithubAsk *ask, const char *ref)
{
    get(ask, ref_path("/git/ref/", ref));
}

void
github_ref_create(const GithubAsk *ask, const Json *body)
{
    const char *ref = github_text(body, "ref");
    const char *name = ref != NULL && g_str_has_prefix(ref, "refs/") ? ref + strlen("refs/") : "";

    send(ask, &(Send){.method = "POST",
                      .path = g_strdup("/git/refs"),
                      .body = body,
                      .look_path = ref_path("/git/ref/", name),
                      .is_it = look_is_ref});
}

void
github_ref_update(const GithubAsk *ask, const char *ref, const Json *body)
{
    set(ask, "PATCH", ref_path("/git/refs/", ref), body);
}

void
github_ref_delete(const GithubAsk *ask, const char *ref)
{
    set(ask, "DELETE", ref_path("/git/refs/", ref), NULL);
}

void
github_contents_get(const GithubAsk *ask, const char *path, const char *ref)
{
    g_autofree char *where = ref_path("/contents/", path);
    g_autofree char *query = ref != NULL ? github_path("?ref=%s", ref) : g_strdup("");

    get(ask, g_strconcat(where, query, NULL));
}

/* The blob that it replaces is in the body, so a second one is refused. */
void
github_contents_put(const GithubAsk *ask, const char *path, const Json *body)
{
    set(ask, "PUT", ref_path("/contents/", path), body);
}

/* ---- pull requests ---- */

void
github_pull_create(const GithubAsk *ask, const Json *body)
{
    const char *head = github_text(body, "head"), *base = github_text(body, "base");
    bool has_owner = head != NULL && strchr(head, ':') != NULL;
    g_autofree char *owned = has_owner ? g_strdup(head) : g_strconcat(ask->owner, ":", head, NULL);

    send(ask, &(Send){.method = "POST",
                      .path = g_strdup("/pulls"),
                      .body = body,
                      .look_path = github_path("/pulls?state=open&per_page=100&head=%s&base=%s", owned,
                                               base != NULL ? base : ""),
                      .is_it = look_is_pull});
}

void
github_pull_get(const GithubAsk *ask, gint64 number)
{
    get(ask, github_path("/pulls/%d", number));
}

void
github_pull_list(const GithubAsk *ask, const char *query)
{
    get(ask, g_strconcat("/pulls?per_page=100", query != NULL ? "&" : "", query, NULL));
}

void
github_pull_edit(const GithubAsk *ask, gint64 number, const Json *body)
{
    set(ask, "PATCH", github_path("/pulls/%d", number), body);
}

void
github_pull_merge(const GithubAsk *ask, gint64 number, const Json *body)
{
    send(ask, &(Send){.method = "PUT",
                      .path = github_path("/pulls/%d/merge", number),
                      .body = body,
                      .look_path = github_path("/pulls/%d", number),
                      .is_it = look_is_merged});
}

void
github_pull_update_branch(const GithubAsk *ask, gint64 number, const Json *body)
{
    send(ask, &(Send){.method = "PUT",
                      .path = github_path("/pulls/%d/update-branch", number),
                      .body = body,
                      .look_path = github_path("/pulls/%d", number),
                      .is_it = look_is_updated});
}

/* Who is asked already stays so. */
void
github_pull_request_reviewers(const GithubAsk *ask, gint64 number, const Json *body)
{
    send(ask, &(Send){.method = "POST",
                      .path = github_path("/pulls/%d/requested_reviewers", number),
                      .body = body,
                      .repeatable = true});
}

void
github_pull_unrequest_reviewers(const GithubAsk *ask, gint64 number, const Json *body)
{
    set(ask, "DELETE", github_path("/pulls/%d/requested_reviewers", number), body);
}

void
github_pull_files(const GithubAsk *ask, gint64 number)
{
    get(ask, github_path("/pulls/%d/files?per_page=100", number));
}

void
github_pull_commits(const GithubAsk *ask, gint64 number)
{
    get(ask, github_path("/pulls/%d/commits?per_page=100", number));
}

/* ---- reviews ---- */

void
github_review_list(const GithubAsk *ask, gint64 number)
{
    get(ask, github_path("/pulls/%d/reviews?per_page=100", number));
}

void
github_review_create(const GithubAsk *ask, gint64 number, const Json *body)
{
    send(ask, &(Send){.method = "POST",
                      .path = github_path("/pulls/%d/reviews", number),
                      .body = body,
                      .look_path = github_path("/pulls/%d/reviews?per_page=100", number),
                      .is_it = look_is_review});
}

void
github_review_edit(const GithubAsk *ask, gint64 number, gint64 id, const Json *body)
{
    set(ask, "PUT", github_path("/pulls/%d/reviews/%d", number, id), body);
}

void
github_review_comment_list(const GithubAsk *ask, gint64 number)
{
    get(ask, github_path("/pulls/%d/comments?per_page=100", number));
}

void
github_review_comment_create(const GithubAsk *ask, gint64 number, const Json *body)
{
    send(ask, &(Send){.method = "POST",
                      .path = github_path("/pulls/%d/comments", number),
                      .body = body,
                      .look_path = github_path("/pulls/%d/comments?per_page=100&sort=created&direction=desc",
                                               number),
                      .is_it = look_is_line_comment});
}

void
github_review_comment_edit(const GithubAsk *ask, gint64 id, const Json *body)
{
    set(ask, "PATCH", github_path("/pulls/comments/%d", id), body);
}

void
github_review_comment_delete(const GithubAsk *ask, gint64 id)
{
    set(ask, "DELETE", github_path("/pulls/comments/%d", id), NULL);
}

/* ---- issues and comments ---- */

void
github_issue_get(const GithubAsk *ask, gint64 number)
{
    get(ask, github_path("/issues/%d", number));
}

void
github_issue_create(const GithubAsk *ask, const Json *body)
{
    send(ask, &(Send){.method = "POST",
                      .path = g_strdup("/issues"),
                      .body = body,
                      .look_path = g_strdup("/issues?state=all&sort=created&direction=desc&per_page=100"),
                      .is_it = look_is_issue});
}

void
github_issue_edit(const GithubAsk *ask, gint64 number, const Json *body)
{
    set(ask, "PATCH", github_path("/issues/%d", number), body);
}

void
github_comment_list(const GithubAsk *ask, gint64 number, const char *since)
{
    g_autofree char *path = github_path("/issues/%d/comments?per_page=100", number);
    g_autofree char *query = since != NULL ? github_path("&since=%s", since) : g_strdup("");

    get(ask, g_strconcat(path, query, NULL));
}

void
github_comment_create(const GithubAsk *ask, gint64 number, const Json *body)
{
    send(ask, &(Send){.method = "POST",
                      .path = github_path("/issues/%d/comments", number),
                      .body = body,
                      .look_path = github_path("/issues/%d/comments?per_page=100", number),
                      .is_it = look_is_said});
}

void
github_comment_edit(const GithubAsk *ask, gint64 id, const Json *body)
{
    set(ask, "PATCH", github_path("/issues/comments/%d", id), body);
}

void
github_comment_delete(const GithubAsk *ask, gint64 id)
{
    set(ask, "DELETE", github_path("/issues/comments/%d", id), NULL);
}

void
github_labels_add(const GithubAsk *ask, gint64 number, const Json *body)
{
    send(ask, &(Send){.method = "POST",
                      .path = github_path("/issues/%d/labels", number),
                      .body = body,
                      .repeatable = true});
}

void
github_label_remove(const GithubAsk *ask, gint64 number, const char *name)
{
    set(ask, "DELETE", github_path("/issues/%d/labels/%s", number, name), NULL);
}

/* ---- statuses and checks ---- */

/* Of each context the newest counts, and only that is looked at. */
void
github_status_create(const GithubAsk *ask, const char *sha, const Json *body)
{
    send(ask, &(Send){.method = "POST",
                      .path = github_path("/statuses/%s", sha),
                      .body = body,
                      .look_path = github_path("/commits/%s/status?per_page=100", sha),
                      .member = "statuses",
                      .is_it = look_is_status});
}

void
github_check_list(const GithubAsk *ask, const char *ref)
{
    get(ask, github_path("/commits/%s/check-runs?per_page=100", ref));
}

void
github_check_create(const GithubAsk *ask, const Json *body)
{
    const char *sha = github_text(body, "head_sha");
    bool can_look = sha != NULL && github_text(body, "external_id") != NULL;

    send(ask, &(Send){.method = "POST",
                      .path = g_strdup("/check-runs"),
                      .body = body,
                      .look_path = can_look ? github_path("/commits/%s/check-runs?per_page=100", sha) : NULL,
                      .member = "check_runs",
                      .is_it = look_is_check});
}

void
github_check_update(const GithubAsk *ask, gint64 id, const Json *body)
{
    set(ask, "PATCH", github_path("/check-runs/%d", id), body);
}
