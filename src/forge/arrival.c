/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/arrival.h"

#include <string.h>

#include "base/err.h"
#include "forge/check-private.h"
#include "forge/hunk.h"
#include "forge/pull-private.h"
#include "forge/review-private.h"
#include "forge/thread-private.h"

/* ---- what it is ---- */

static bool
reopen(RowJob *job, const Arrival *a, const Json *pull, bool *ret_changed, GError **error)
{
    g_autoptr(GError) refused = NULL;

    if (!pull_may_reopen(job, pull, &refused)) {
        if (err_kind(refused) == ERR_CONFLICT) /* its branch is gone here, or another one is open */
            return true;
        g_propagate_error(error, g_steal_pointer(&refused));
        return false;
    }
    *ret_changed = true;
    return thread_set_state(job, pull, "open", NULL, a->actor, error) &&
           check_suite_want(job, a->number, a->actor, error);
}

static bool
set_draft(RowJob *job, const Arrival *a, bool is_draft, bool *ret_changed, GError **error)
{
    g_autoptr(Json) pull = thread_load(job, a->number, "pull", error);

    if (pull == NULL)
        return false;
    if (strcmp(row_text(pull, "state"), "open") != 0 || row_is(pull, "draft") == is_draft)
        return true;
    *ret_changed = true;
    return pull_change_draft(job, &(PullDraft){a->actor, a->number, is_draft}, error);
}

bool
arrival_state(DbTx *tx, const Arrival *a, const ArrivalState *state, bool *ret_changed, GError **error)
{
    g_auto(RowJob) job = {0};

    *ret_changed = false;
    row_job_init(&job, tx, a->repository_id);
    g_autoptr(Json) pull = thread_load(&job, a->number, "pull", error);

    if (pull == NULL)
        return false;
    bool is_open = strcmp(row_text(pull, "state"), "open") == 0;

    if (row_is(pull, "merged"))
        return true;
    if (state->merge_oid != NULL && git_oid_is_valid(state->merge_oid)) {
        PullMerged merged = {a->actor, a->number, "push", state->merge_oid, NULL};

        *ret_changed = true;
        return pull_set_merged(tx, a->repository_id, &merged, error);
    }
    if (state->is_closed != is_open)
        return state->is_closed || set_draft(&job, a, state->is_draft, ret_changed, error);
    if (!state->is_closed)
        return reopen(&job, a, pull, ret_changed, error) &&
               set_draft(&job, a, state->is_draft, ret_changed, error);
    *ret_changed = true;
    return thread_set_state(&job, pull, "closed", NULL, a->actor, error);
}

void
arrival_settle(Forge *forge, Repo *repo)
{
    pulls_look_at(forge, repo);
}

/* ---- what is said ---- */

/* What they take and we do not: cut, and without what is no text. */
static char *
fit(const char *body)
{
    g_autofree char *valid = g_utf8_make_valid(body != NULL ? body : "", -1);

    return g_utf8_strlen(valid, -1) <= THREAD_BODY_MAX ? g_steal_pointer(&valid)
                                                       : g_utf8_substring(valid, 0, THREAD_BODY_MAX);
}

/* Theirs, and still here. */
static bool
is_theirs(RowJob *job, const char *table, gint64 id, bool *ret_is, GError **error)
{
    g_autofree char *sql = g_strdup_printf("SELECT COUNT(*) FROM %s WHERE id = ? AND author LIKE 'github:%%'",
                                           table);
    gint64 n = 0;

    if (!row_ask_int(job, sql, DB_ARGS(db_int(id)), &n, error))
        return false;
    *ret_is = n > 0;
    return true;
}

static bool
change_comment(RowJob *job, const Arrival *a, gint64 id, const char *text, bool *ret_changed, GError **error)
{
    bool is = false;

    if (!is_theirs(job, "comments", id, &is, error))
        return false;
    g_autoptr(Json) old = is ? comment_load(job, id, error) : NULL, new = NULL;

    if (old == NULL || g_strcmp0(text, row_text(old, "body")) == 0)
        return !is || old != NULL;
    *ret_changed = true;
    return comment_edit_row(job, &(CommentEdit){a->actor, true, id, text}, &new, error);
}

bool
arrival_comment(DbTx *tx, const Arrival *a, const char *body, gint64 *id, bool *ret_changed, GError **error)
{
    g_auto(RowJob) job = {0};
    g_autofree char *text = body != NULL ? fit(body) : NULL;
    g_autoptr(Json) made = NULL;

    *ret_changed = false;
    if (text != NULL && *text == '\0')
        return true;
    row_job_init(&job, tx, a->repository_id);
    if (*id != 0)
        return change_comment(&job, a, *id, text, ret_changed, error);
    if (text == NULL)
        return true;
    if (!comment_put_row(&job, &(CommentSpec){a->actor, a->number, text, NULL}, &made, error))
        return false;
    *ret_changed = true;
    *id = row_int(made, "id");
    return true;
}

/* ---- reviews ---- */

static bool
change_review(RowJob *job, const Arrival *a, gint64 id, const ArrivalReview *review, const char *text,
              bool *ret_changed, GError **error)
{
    bool is = false, is_dismissed = strcmp(review->state, "DISMISSED") == 0;

    if (!is_theirs(job, "reviews", id, &is, error))
        return false;
    g_autoptr(Json) old = is ? review_load(job, a->number, id, a->actor, error) : NULL, new = NULL;

    if (old == NULL)
        return !is;
    ReviewChange change = {
        .actor = row_actor(old, "author"), .number = a->number, .id = id, .is_admin = true};

    bool is_verdict = strcmp(row_text(old, "state"), "APPROVED") == 0 ||
                      strcmp(row_text(old, "state"), "CHANGES_REQUESTED") == 0;

    if (is_dismissed && is_verdict) {
        change.act = REVIEW_ACT_DISMISS;
        change.body = "dismissed there";
    } else if (!is_dismissed && *text != '\0' && g_strcmp0(text, row_text(old, "body")) != 0) {
        change.act = REVIEW_ACT_EDIT;
        change.body = text;
    } else {
        return true;
    }
    *ret_changed = true;
    return review_change_row(job, &change, &new, error);
}

/* What is closed here takes no verdict, nor does an author's own or one of somebody without a say. */
static ReviewVerdict
verdict_of(const Json *pull, const Arrival *a, const ArrivalReview *review)
{
    bool may = strcmp(row_text(pull, "state"), "open") == 0 &&
               strcmp(row_actor(pull, "author"), a->actor) != 0 && review->may_refuse;

    if (may && strcmp(review->state, "APPROVED") == 0)
        return REVIEW_APPROVE;
    return may && strcmp(review->state, "CHANGES_REQUESTED") == 0 ? REVIEW_REFUSE : REVIEW_COMMENT;
}

bool
arrival_review(DbTx *tx, const Arrival *a, const ArrivalReview *review, gint64 *id, bool *ret_changed,
               GError **error)
{
    g_auto(RowJob) job = {0};
    g_autofree char *text = fit(review->body);
    g_autoptr(Json) made = NULL;

    *ret_changed = false;
    row_job_init(&job, tx, a->repository_id);
    if (*id != 0)
        return change_review(&job, a, *id, review, text, ret_changed, error);
    g_autoptr(Json) pull = thread_load(&job, a->number, "pull", error);

    if (pull == NULL)
        return false;
    ReviewSpec spec = {.actor = a->actor,
                       .number = a->number,
                       .verdict = verdict_of(pull, a, review),
                       .body = text,
                       .commit_oid = review->commit_oid != NULL && git_oid_is_valid(review->commit_oid)
                                         ? review->commit_oid
                                         : NULL};

    if (*text == '\0' && spec.verdict == REVIEW_REFUSE)
        spec.body = "Changes are asked for.";
    /* Lines come by themselves. */
    if (spec.verdict == REVIEW_COMMENT && *text == '\0')
        return true;
    if (!review_create_row(&job, &spec, &made, error))
        return false;
    *ret_changed = true;
    *id = row_int(made, "id");
    return true;
}

/* ---- lines ---- */

static bool
change_line(RowJob *job, const Arrival *a, gint64 id, const char *text, bool *ret_changed, GError **error)
{
    bool is = false;

    if (!is_theirs(job, "review_comments", id, &is, error))
        return false;
    g_autoptr(Json) old = is ? line_comment_load(job, id, a->actor, error) : NULL, new = NULL;

    if (old == NULL || g_strcmp0(text, row_text(old, "body")) == 0)
        return !is || old != NULL;
    *ret_changed = true;
    return line_comment_change_row(
        job, &(LineChange){a->actor, true, id, text != NULL ? LINE_EDIT : LINE_DELETE, text}, &new, error);
}

/* Nothing that would be refused: a place that is none here is left out, not an error of ours. */
static bool
adapt(RowJob *job, LineSpec *line, bool *ret_fits, GError **error)
{
    gint64 parent = 0;

    line->side = g_strcmp0(line->side, "LEFT") == 0 ? "LEFT" : "RIGHT";
    line->line = CLAMP(line->line, 1, REVIEW_LINE_MAX);
    if (line->start_line < 0 || line->start_line >= line->line)
        line->start_line = 0;
    if (line->commit_oid != NULL && !git_oid_is_valid(line->commit_oid))
        line->commit_oid = NULL;
    if (line->diff_hunk != NULL && strlen(line->diff_hunk) > HUNK_MAX)
        line->diff_hunk = NULL;
    *ret_fits = line_path_is_plain(line->path) && *line->body != '\0';
    if (line->in_reply_to > 0 && !row_ask_int(job, "SELECT id FROM review_comments WHERE id = ?",
                                              DB_ARGS(db_int(line->in_reply_to)), &parent, error))
        return false;
    line->in_reply_to = parent;
    return true;
}

bool
arrival_line(DbTx *tx, const Arrival *a, const LineSpec *line, gint64 *id, bool *ret_changed, GError **error)
{
    g_auto(RowJob) job = {0};
    g_autofree char *text = line != NULL ? fit(line->body) : NULL;
    g_autoptr(Json) made = NULL;
    bool fits = false;

    *ret_changed = false;
    row_job_init(&job, tx, a->repository_id);
    if (*id != 0)
        return change_line(&job, a, *id, text, ret_changed, error);
    if (line == NULL)
        return true;
    LineSpec spec = *line;

    spec.actor = a->actor;
    spec.number = a->number;
    spec.body = text;
    if (!adapt(&job, &spec, &fits, error) || (fits && !line_comment_add_row(&job, &spec, &made, error)))
        return false;
    *ret_changed = fits;
    *id = fits ? row_int(made, "id") : 0;
    return true;
}

bool
arrival_resolve(DbTx *tx, const Arrival *a, gint64 id, bool is_resolved, bool *ret_changed, GError **error)
{
    g_auto(RowJob) job = {0};
    g_autoptr(GError) gone = NULL;
    LineChange change = {a->actor, true, id, is_resolved ? LINE_RESOLVE : LINE_UNRESOLVE, NULL};

    *ret_changed = false;
    row_job_init(&job, tx, a->repository_id);
    g_autoptr(Json) old = line_comment_load(&job, id, a->actor, &gone), new = NULL;

    if (old == NULL && err_kind(gone) != ERR_NOT_FOUND) {
        g_propagate_error(error, g_steal_pointer(&gone));
        return false;
    }
    if (old == NULL || row_is(old, "resolved") == is_resolved)
        return true;
    *ret_changed = true;
    return line_comment_change_row(&job, &change, &new, error);
}
