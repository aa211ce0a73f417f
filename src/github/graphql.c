/* SPDX-License-Identifier: Apache-2.0 */
/* What REST has no call for: drafts, and threads on lines. */
#include "base/err.h"
#include "github/calls.h"
#include "github/text.h"

typedef struct Query {
    GithubClient *client;
    guint patience_ms;
    const char *what; /* was not done: for messages */
    GithubFunc done;
    void *data;
} Query;

/* Failures come with 200. */
static void
on_answer(const GithubAnswer *answer, const GError *error, void *data)
{
    Query *q = data;
    const Json *first = json_array_get(json_object_get(answer->json, "errors"), 0);
    const char *text = github_text(first, "message");
    g_autoptr(GError) odd = NULL;

    if (error == NULL && first != NULL) {
        g_autofree char *clean = github_clean(text != NULL ? text : "it does not say why", 500);
        bool is_denied = g_strcmp0(github_text(first, "type"), "FORBIDDEN") == 0;

        err_set(&odd, is_denied ? ERR_DENIED : ERR_INVALID, "%s: %s", q->what, clean);
    }
    q->done(answer, error != NULL ? error : odd, q->data);
    g_free(q);
}

/* Takes `variables`.  Each of these may be asked twice. */
static void
query(const Query *spec, const char *text, Json *variables)
{
    g_autoptr(Json) body = json_pack("{s:s, s:o}", "query", text, "variables", variables);
    Query *q = g_new0(Query, 1);

    *q = *spec;
    github_call(q->client,
                &(GithubRequest){.method = "POST",
                                 .path = github_path_graphql,
                                 .body = body,
                                 .repeatable = true,
                                 .patience_ms = q->patience_ms},
                on_answer, q);
}

void
github_pull_set_draft(const GithubAsk *ask, const char *node_id, bool draft)
{
    static const char *const texts[] = {
        "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) "
        "{ pullRequest { isDraft } } }",
        "mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) "
        "{ pullRequest { isDraft } } }"};

    query(&(Query){ask->client, ask->patience_ms, "the draft was not changed", ask->done, ask->data},
          texts[draft], json_pack("{s:s}", "id", node_id));
}

/* ---- threads on lines ---- */

typedef struct Resolve {
    Query query;
    gint64 comment;
    bool resolved;
} Resolve;

static const Json *
find_thread(const Json *answer, gint64 comment)
{
    const Json *pull = json_object_get(json_object_get(json_object_get(answer, "data"), "repository"),
                                       "pullRequest");
    size_t i;
    Json *thread;

    json_array_foreach(json_object_get(json_object_get(pull, "reviewThreads"), "nodes"), i, thread)
    {
        const Json *first = json_array_get(json_object_get(json_object_get(thread, "comments"), "nodes"), 0);

        if (github_number(first, "databaseId") == comment)
            return thread;
    }
    return NULL;
}

static void
on_threads(const GithubAnswer *answer, const GError *error, void *data)
{
    static const char *const texts[] = {
        "mutation($id: ID!) { unresolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }",
        "mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }"};
    g_autofree Resolve *r = data;
    const Json *thread = find_thread(answer->json, r->comment);
    const char *id = github_text(thread, "id");
    g_autoptr(GError) none = NULL;

    if (error == NULL && id == NULL)
        err_set(&none, ERR_NOT_FOUND, "there is no such thread there, or it is not among the newest");
    if (error != NULL || none != NULL || json_is_true(json_object_get(thread, "isResolved")) == r->resolved)
        r->query.done(answer, error != NULL ? error : none, r->query.data);
    else
        query(&r->query, texts[r->resolved], json_pack("{s:s}", "id", id));
}

void
github_thread_set_resolved(const GithubAsk *ask, gint64 number, gint64 comment, bool resolved)
{
    static const char text[] =
        "query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) { "
        "pullRequest(number: $number) { reviewThreads(last: 100) { nodes { id isResolved "
        "comments(first: 1) { nodes { databaseId } } } } } } }";
    Resolve *r = g_new0(Resolve, 1);

    *r = (Resolve){{ask->client, ask->patience_ms, "the thread was not changed", ask->done, ask->data},
                   comment,
                   resolved};
    query(&(Query){ask->client, ask->patience_ms, "the threads are not known", on_threads, r}, text,
          json_pack("{s:s, s:s, s:I}", "owner", ask->owner, "name", ask->repo, "number", (json_int_t)number));
}
