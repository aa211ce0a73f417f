/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent found becomes its review of the pull request. */
#include <string.h>

#include "base/failpoint.h"
#include "forge/compare.h"
#include "forge/diff.h"
#include "forge/markdown.h"
#include "forge/review.h"
#include "team/flow-private.h"

enum { SAID_MAX = 40 * 1024 }; /* bytes of its words and findings; THREAD_BODY_MAX is for what Coop saw too */

typedef struct Review {
    FlowTask *t;
    Repo *repo;        /* a reference */
    const Json *agent; /* of the rows, which stay while the action goes on */
    char *base, *head; /* commits */
    DiffPage *diff;    /* NULL: it could not be had */
} Review;

static void
review_free(Review *r)
{
    if (r->diff != NULL)
        diff_page_free(r->diff);
    repo_unref(r->repo);
    g_free(r->base);
    g_free(r->head);
    g_free(r);
}

/* ---- written down ---- */

typedef struct Reviewed {
    const char *agent_id;
    gint64 review_id;
} Reviewed;

static bool
run_reviewed(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Reviewed *reviewed = data;

    return db_exec(job->tx, "UPDATE task_executions SET review_id = ? WHERE id = ?",
                   DB_ARGS(db_int(reviewed->review_id), db_text(reviewed->agent_id)), error);
}

static const RowMember reviewed_members[] = {ROW_AT_TEXT(Reviewed, agent_id), ROW_AT_END};
static const RowOp reviewed_op = {ROW_WRITES, sizeof(Reviewed), reviewed_members, run_reviewed};

static void
reviewed(Review *r, gint64 id)
{
    const Reviewed spec = {row_text(r->agent, "id"), id};

    flow_write(r->t, &reviewed_op, &spec);
    review_free(r);
}

static void
on_created(Json *value, const GError *error, void *data)
{
    Review *r = data;

    if (!flow_goes_on(r->t, error)) {
        review_free(r);
        return;
    }
    FAILPOINT("flow-reviewed");
    reviewed(r, row_int(value, "id"));
}

/* ---- what it says ---- */

/* Nobody reads it, but whoever looks for it after a crash. */
static char *
mark_of(const Json *agent)
{
    return g_strdup_printf("<!-- coop: %s -->", row_text(agent, "id"));
}

static void
create(Review *r)
{
    const Json *report = json_object_get(r->agent, "report");
    const char *summary = row_text(report, "summary");
    g_autofree char *mark = mark_of(r->agent), *seen = flow_feedback(r->agent);
    g_autofree char *actor = g_strdup_printf("agent:%s", row_text(r->agent, "member_id"));
    g_autoptr(GString) words = g_string_new(summary != NULL ? summary : "Looked at.");
    const GPtrArray *files = r->diff != NULL ? r->diff->files : NULL;
    g_autoptr(Json) lines = flow_lines(json_object_get(report, "findings"), files, words);

    flow_lines_scanned(lines, json_object_get(r->t->rows, "agents"), r->agent, files, words);
    g_autofree char *tame = markdown_tame(words->str), *said = flow_cut(tame, SAID_MAX);
    g_autofree char *block = seen != NULL ? markdown_fence(seen) : NULL;
    g_autoptr(GString) body = g_string_new(said);

    if (block != NULL)
        g_string_append_printf(body, "\n\nCoop saw:\n\n%s", block);
    g_string_append_printf(body, "\n\n%s", mark);
    review_create(r->t->flow->team->spec.forge, r->repo,
                  &(ReviewSpec){.actor = actor,
                                .number = row_int(flow_row(r->t), "pull_number"),
                                .verdict = flow_agent_refuses(r->agent) ? REVIEW_REFUSE : REVIEW_APPROVE,
                                .body = body->str,
                                .lines = lines},
                  on_created, r);
}

static bool
diff_work(GitRepo *git, void *data, GError **error)
{
    Review *r = data;
    g_auto(Comparison) between = {0};

    if (r->diff != NULL)
        diff_page_free(g_steal_pointer(&r->diff));
    if (!compare_commits(git, r->base, r->head, &between, error))
        return false;
    r->diff = diff_files(
        git, &(DiffSpec){.old = between.merge_base != NULL ? between.merge_base : r->base, .new = r->head},
        error);
    return r->diff != NULL;
}

/* Without a diff every finding is in the body. */
static void
on_diff(void *data, const GError *error)
{
    Review *r = data;

    if (flow_goes_on(r->t, NULL))
        create(r);
    else
        review_free(r);
}

static void
on_listed(Json *value, const GError *error, void *data)
{
    Review *r = data;
    g_autofree char *mark = mark_of(r->agent);
    size_t i;
    const Json *review;

    if (!flow_goes_on(r->t, error)) {
        review_free(r);
        return;
    }
    json_array_foreach(json_object_get(value, "items"), i, review)
    {
        const char *body = row_text(review, "body");

        if (body != NULL && strstr(body, mark) != NULL) {
            reviewed(r, row_int(review, "id"));
            return;
        }
    }
    forge_read(r->t->flow->team->spec.forge, r->repo, "look at a change", diff_work, on_diff, r, NULL);
}

void
flow_do_review(FlowTask *t, const FlowChoice *choice)
{
    const Json *task = flow_row(t), *result = json_object_get(choice->agent, "result");
    g_autoptr(GError) error = NULL;
    Repo *repo = flow_repo(t, &error);

    if (repo == NULL) {
        flow_problem(t, error);
        return;
    }
    const char *head = row_text(result, "head_oid");
    const ReviewFilter filter = {
        .actor = "coop", .number = row_int(task, "pull_number"), .page = {.per_page = THREAD_PAGE_MAX}};
    Review *r = g_new0(Review, 1);

    *r = (Review){.t = t,
                  .repo = repo_ref(repo),
                  .agent = choice->agent,
                  .base = g_strdup(row_text(task, "base_oid")),
                  .head = g_strdup(head != NULL ? head : row_text(choice->agent, "git_base"))};
    review_list(t->flow->team->spec.forge, repo, &filter, on_listed, r);
}
