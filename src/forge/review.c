/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/review.h"

#include <string.h>

#include "base/err.h"
#include "forge/review-private.h"
#include "forge/thread-private.h"

static const char *const states[] = {
    [REVIEW_PENDING] = "PENDING",
    [REVIEW_COMMENT] = "COMMENTED",
    [REVIEW_APPROVE] = "APPROVED",
    [REVIEW_REFUSE] = "CHANGES_REQUESTED",
};

static const RowColumn columns[] = {
    {"id", ROW_INT, "r.id"},
    {"thread_id", ROW_INT, "r.thread_id"},
    {"number", ROW_INT, "t.number"},
    {"author", ROW_PERSON, "r.author"},
    {"state", ROW_TEXT, "r.state"},
    {"body", ROW_TEXT, "r.body"},
    {"commit_oid", ROW_TEXT, "r.commit_oid"},
    {"created_us", ROW_INT, "r.created_us"},
    {"updated_us", ROW_INT, "r.updated_us"},
    {"submitted_us", ROW_INT, "r.submitted_us"},
};
static const RowTable reviews = {"review", "reviews r JOIN threads t ON t.id = r.thread_id", columns,
                                 G_N_ELEMENTS(columns)};

Json *
review_load(RowJob *job, gint64 number, gint64 id, const char *actor, GError **error)
{
    return row_get(job, &reviews, "r.id = ? AND t.number = ? AND t.repository_id = ? AND " REVIEW_IS_SHOWN,
                   DB_ARGS(db_int(id), db_int(number), db_text(job->repository_id), db_text(actor)), error);
}

/* ---- who approves ---- */

static void
count_states(GHashTable *last, guint *ret_approvals, guint *ret_refusals)
{
    GHashTableIter iter;
    gpointer author, state;

    /* Who may approve in another place was not decided here. */
    g_hash_table_iter_init(&iter, last);
    while (g_hash_table_iter_next(&iter, &author, &state)) {
        *ret_approvals += strcmp(state, states[REVIEW_APPROVE]) == 0 && !g_str_has_prefix(author, "github:");
        *ret_refusals += strcmp(state, states[REVIEW_REFUSE]) == 0;
    }
}

bool
review_count(RowJob *job, const Json *pull, guint *ret_approvals, guint *ret_refusals, GError **error)
{
    g_autoptr(GHashTable) last = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(DbRows)
        rows = db_query(job->tx,
                        "SELECT author, state FROM reviews WHERE thread_id = ? AND author <> ? AND state IN "
                        "('APPROVED', 'CHANGES_REQUESTED', 'DISMISSED') ORDER BY submitted_us, id",
                        DB_ARGS(db_int(row_int(pull, "id")), db_text(row_actor(pull, "author"))), error);
    bool more = true;

    while (rows != NULL && more) {
        if (!db_rows_next(rows, &more, error))
            return false;
        if (more)
            g_hash_table_replace(last, g_strdup(db_rows_text(rows, 0)), g_strdup(db_rows_text(rows, 1)));
    }
    if (rows == NULL)
        return false;
    *ret_approvals = *ret_refusals = 0;
    count_states(last, ret_approvals, ret_refusals);
    return true;
}

/* ---- making ---- */

const char *
review_commit(const Json *pull, const char *commit_oid, GError **error)
{
    if (commit_oid == NULL)
        return row_text(pull, "head_oid");
    return row_check_oid("the commit", commit_oid, error) ? commit_oid : NULL;
}

static bool
check_verdict(const Json *pull, const char *actor, ReviewVerdict verdict, GError **error)
{
    if (verdict != REVIEW_APPROVE && verdict != REVIEW_REFUSE)
        return true;
    if (strcmp(actor, row_actor(pull, "author")) == 0)
        return err_set(error, ERR_INVALID, "an author cannot %s his own pull request",
                       verdict == REVIEW_APPROVE ? "approve" : "ask for changes in");
    return thread_require_open(pull, error);
}

static bool
check_body(const char *body, ReviewVerdict verdict, bool has_lines, GError **error)
{
    bool needed = verdict == REVIEW_REFUSE || (verdict == REVIEW_COMMENT && !has_lines);

    return row_check_text("the body", body, THREAD_BODY_MAX, needed ? ROW_TEXT_NEEDED : ROW_TEXT_MAY_BE_EMPTY,
                          error);
}

bool
review_insert(RowJob *job, const Json *pull, const ReviewNew *new, gint64 *ret_id, GError **error)
{
    gint64 submitted_us = new->verdict == REVIEW_PENDING ? 0 : job->now_us;

    return row_next_id(job, "reviews", ret_id, error) &&
           db_exec(job->tx,
                   "INSERT INTO reviews (id, thread_id, author, state, body, commit_oid, created_us, "
                   "updated_us, submitted_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   DB_ARGS(db_int(*ret_id), db_int(row_int(pull, "id")), db_text(new->actor),
                           db_text(states[new->verdict]), db_text(new->body != NULL ? new->body : ""),
                           db_text(new->commit_oid), db_int(job->now_us), db_int(job->now_us),
                           db_int(submitted_us)),
                   error);
}

/* Whoever has said something is not asked any more. */
static bool
answer_request(RowJob *job, const Json *pull, const char *actor, GError **error)
{
    g_autoptr(Json) left = json_array();
    size_t i;
    Json *person;

    json_array_foreach(json_object_get(pull, "reviewers"), i, person)
    {
        if (strcmp(row_text(person, "actor"), actor) != 0)
            json_array_append(left, json_object_get(person, "actor"));
    }
    g_autofree char *text = json_encode(left);

    return db_exec(job->tx, "UPDATE threads SET reviewers = ?, updated_us = ? WHERE id = ?",
                   DB_ARGS(db_text(text), db_int(row_later_us(job, pull)), db_int(row_int(pull, "id"))),
                   error);
}

bool
review_tell(RowJob *job, const Json *pull, gint64 review_id, const char *actor, ReviewVerdict verdict,
            GError **error)
{
    json_int_t id = review_id;

    return answer_request(job, pull, actor, error) &&
           thread_event(job, "review.submitted", actor, pull,
                        json_pack("{s:I, s:s}", "review_id", id, "state", states[verdict]), error) &&
           (verdict != REVIEW_APPROVE ||
            thread_event(job, "pr.approved", actor, pull, json_pack("{s:I}", "review_id", id), error));
}

static bool
check_pending(RowJob *job, const Json *pull, const char *actor, GError **error)
{
    gint64 pending = 0;

    return row_ask_int(job, "SELECT id FROM reviews WHERE thread_id = ? AND author = ? AND state = 'PENDING'",
                       DB_ARGS(db_int(row_int(pull, "id")), db_text(actor)), &pending, error) &&
           (pending == 0 || err_set(error, ERR_CONFLICT, "a review of yours is pending already"));
}

bool
review_create_row(RowJob *job, const ReviewSpec *spec, Json **ret_value, GError **error)
{
    g_autoptr(Json) pull = thread_load(job, spec->number, "pull", error);
    const char *commit = pull != NULL ? review_commit(pull, spec->commit_oid, error) : NULL;
    ReviewNew new = {spec->actor, spec->verdict, spec->body, commit};
    gint64 id = 0;

    if (commit == NULL || !check_verdict(pull, spec->actor, spec->verdict, error) ||
        !check_body(spec->body, spec->verdict, json_array_size(spec->lines) > 0, error) ||
        (spec->verdict == REVIEW_PENDING && !check_pending(job, pull, spec->actor, error)) ||
        !review_insert(job, pull, &new, &id, error) ||
        !review_add_lines(job, pull, id, spec->actor, spec->lines, commit, error))
        return false;
    *ret_value = review_load(job, spec->number, id, spec->actor, error);
    return *ret_value != NULL &&
           (spec->verdict == REVIEW_PENDING || review_tell(job, pull, id, spec->actor, spec->verdict, error));
}

/* ---- changing ---- */

static bool
submit(RowJob *job, const ReviewChange *change, const Json *pull, const Json *review, GError **error)
{
    const char *body = change->body != NULL ? change->body : row_text(review, "body");
    gint64 lines = 0;

    if (change->verdict == REVIEW_PENDING)
        return err_set(error, ERR_INVALID, "a verdict is missing");
    return row_ask_int(job, "SELECT COUNT(*) FROM review_comments WHERE review_id = ?",
                       DB_ARGS(db_int(change->id)), &lines, error) &&
           check_verdict(pull, change->actor, change->verdict, error) &&
           check_body(body, change->verdict, lines > 0, error) &&
           db_exec(job->tx,
                   "UPDATE reviews SET state = ?, body = ?, updated_us = ?, submitted_us = ? WHERE id = ?",
                   DB_ARGS(db_text(states[change->verdict]), db_text(body), db_int(row_later_us(job, review)),
                           db_int(job->now_us), db_int(change->id)),
                   error) &&
           review_tell(job, pull, change->id, change->actor, change->verdict, error);
}

static bool
set_body(RowJob *job, const ReviewChange *change, const Json *pull, const Json *review, GError **error)
{
    return row_check_text("the body", change->body, THREAD_BODY_MAX, ROW_TEXT_NEEDED, error) &&
           db_exec(job->tx, "UPDATE reviews SET body = ?, updated_us = ? WHERE id = ?",
                   DB_ARGS(db_text(change->body), db_int(row_later_us(job, review)), db_int(change->id)),
                   error) &&
           (strcmp(row_text(review, "state"), "PENDING") == 0 ||
            thread_event(job, "review.changed", change->actor, pull,
                         json_pack("{s:I, s:s}", "review_id", (json_int_t)change->id, "action", "edited"),
                         error));
}

static bool
dismiss(RowJob *job, const ReviewChange *change, const Json *pull, const Json *review, GError **error)
{
    const char *state = row_text(review, "state");

    if (strcmp(state, "APPROVED") != 0 && strcmp(state, "CHANGES_REQUESTED") != 0)
        return err_set(error, ERR_CONFLICT, "only an approval or a request for changes can be dismissed");
    return row_check_text("the message", change->body, THREAD_BODY_MAX, ROW_TEXT_NEEDED, error) &&
           db_exec(job->tx, "UPDATE reviews SET state = 'DISMISSED', updated_us = ? WHERE id = ?",
                   DB_ARGS(db_int(row_later_us(job, review)), db_int(change->id)), error) &&
           thread_touch(job, pull, error) &&
           thread_event(job, "review.changed", change->actor, pull,
                        json_pack("{s:I, s:s}", "review_id", (json_int_t)change->id, "action", "dismissed"),
                        error);
}

static bool
remove_pending(RowJob *job, const ReviewChange *change, GError **error)
{
    return db_exec(job->tx, "DELETE FROM review_comments WHERE review_id = ?", DB_ARGS(db_int(change->id)),
                   error) &&
           db_exec(job->tx, "DELETE FROM reviews WHERE id = ?", DB_ARGS(db_int(change->id)), error);
}

static bool
check_act(const ReviewChange *change, const Json *review, GError **error)
{
    bool is_pending = strcmp(row_text(review, "state"), "PENDING") == 0;

    if (change->act == REVIEW_ACT_DISMISS && change->is_admin)
        return true;
    if (strcmp(row_actor(review, "author"), change->actor) != 0)
        return err_set(error, ERR_DENIED, "the review is another's");
    return change->act == REVIEW_ACT_EDIT || change->act == REVIEW_ACT_DISMISS || is_pending ||
           err_set(error, ERR_CONFLICT, "the review was submitted already");
}

bool
review_change_row(RowJob *job, const ReviewChange *change, Json **ret_value, GError **error)
{
    g_autoptr(Json) pull = thread_load(job, change->number, "pull", error);
    g_autoptr(Json) review = pull != NULL ? review_load(job, change->number, change->id, change->actor, error)
                                          : NULL;

    if (review == NULL || !check_act(change, review, error))
        return false;
    if (change->act == REVIEW_ACT_DELETE) {
        *ret_value = g_steal_pointer(&review);
        return remove_pending(job, change, error);
    }
    if (change->act == REVIEW_ACT_SUBMIT ? !submit(job, change, pull, review, error)
        : change->act == REVIEW_ACT_EDIT ? !set_body(job, change, pull, review, error)
                                         : !dismiss(job, change, pull, review, error))
        return false;
    *ret_value = review_load(job, change->number, change->id, change->actor, error);
    return *ret_value != NULL;
}

static bool
run_change(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    return review_change_row(job, data, ret_value, error);
}

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const ReviewFilter *filter = data;
    g_autoptr(Json) pull = thread_load(job, filter->number, "pull", error);
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    if (pull == NULL)
        return false;
    row_where_add(&where, "r.thread_id = ? AND " REVIEW_IS_SHOWN,
                  DB_ARGS(db_int(row_int(pull, "id")), db_text(filter->actor)));
    *ret_value = filter->id > 0 ? review_load(job, filter->number, filter->id, filter->actor, error)
                                : row_list(job, &reviews, &where, "r.id", filter->page, error);
    return *ret_value != NULL;
}

void
review_change(Forge *forge, Repo *repo, const ReviewChange *change, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(ReviewChange, actor), ROW_AT_TEXT(ReviewChange, body),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(ReviewChange), members, run_change};

    row_run(forge, repo, &op, change, done, data);
}

void
review_list(Forge *forge, Repo *repo, const ReviewFilter *filter, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(ReviewFilter, actor), ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(ReviewFilter), members, run_list};

    row_run(forge, repo, &op, filter, done, data);
}
