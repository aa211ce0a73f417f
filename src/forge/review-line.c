/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/hunk.h"
#include "forge/review-private.h"
#include "forge/thread-private.h"

static const RowColumn columns[] = {
    {"id", ROW_INT, "rc.id"},
    {"thread_id", ROW_INT, "rc.thread_id"},
    {"number", ROW_INT, "t.number"},
    {"review_id", ROW_INT, "rc.review_id"},
    {"in_reply_to", ROW_INT, "rc.in_reply_to"},
    {"author", ROW_PERSON, "rc.author"},
    {"body", ROW_TEXT, "rc.body"},
    {"path", ROW_TEXT, "rc.path"},
    {"side", ROW_TEXT, "rc.side"},
    {"line", ROW_INT, "rc.line"},
    {"start_line", ROW_INT, "rc.start_line"},
    {"commit_oid", ROW_TEXT, "rc.commit_oid"},
    {"original_oid", ROW_TEXT, "rc.original_oid"},
    {"diff_hunk", ROW_TEXT, "rc.diff_hunk"},
    {"resolved", ROW_BOOL, "rc.resolved"},
    {"created_us", ROW_INT, "rc.created_us"},
    {"updated_us", ROW_INT, "rc.updated_us"},
};
static const RowTable lines_table = {
    "comment on a line",
    "review_comments rc JOIN threads t ON t.id = rc.thread_id JOIN reviews r ON r.id = rc.review_id", columns,
    G_N_ELEMENTS(columns)};

typedef struct Line {
    const char *body, *path, *side;
    const char *diff_hunk;   /* NULL: none */
    gint64 line, start_line; /* start_line 0: one line */
    gint64 in_reply_to;      /* 0: none */
} Line;

Json *
line_comment_load(RowJob *job, gint64 id, const char *actor, GError **error)
{
    return row_get(job, &lines_table, "rc.id = ? AND t.repository_id = ? AND " REVIEW_IS_SHOWN,
                   DB_ARGS(db_int(id), db_text(job->repository_id), db_text(actor)), error);
}

bool
line_path_is_plain(const char *path)
{
    if (path[0] == '/' || path[0] == '\0' || g_utf8_strlen(path, -1) > REVIEW_PATH_MAX)
        return false;
    for (const char *p = path; *p != '\0'; p += g_utf8_skip[(guchar)*p]) {
        if (g_unichar_iscntrl(g_utf8_get_char(p)))
            return false;
    }
    return true;
}

static bool
check_line(const Line *line, GError **error)
{
    static const char *const sides[] = {"LEFT", "RIGHT", NULL};

    if (!row_check_text("the comment", line->body, THREAD_BODY_MAX, ROW_TEXT_NEEDED, error) ||
        !row_check_text("the path", line->path, REVIEW_PATH_MAX, ROW_TEXT_NEEDED, error) ||
        !row_check_word("the side", line->side, sides, error))
        return false;
    if (!line_path_is_plain(line->path))
        return err_set(error, ERR_INVALID, "the path is not one of a repository");
    if (line->line < 1 || line->line > REVIEW_LINE_MAX)
        return err_set(error, ERR_INVALID, "the line must be from 1 to %d", REVIEW_LINE_MAX);
    return (line->start_line >= 0 && line->start_line < line->line) ||
           err_set(error, ERR_INVALID, "the first line must be before the last");
}

static bool
insert(RowJob *job, const Json *pull, gint64 review_id, const char *actor, const Line *line,
       const char *commit_oid, gint64 *ret_id, GError **error)
{
    return check_line(line, error) && row_next_id(job, "review_comments", ret_id, error) &&
           db_exec(job->tx,
                   "INSERT INTO review_comments (id, thread_id, review_id, in_reply_to, author, body, path, "
                   "side, line, start_line, commit_oid, original_oid, diff_hunk, resolved, created_us, "
                   "updated_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)",
                   DB_ARGS(db_int(*ret_id), db_int(row_int(pull, "id")), db_int(review_id),
                           line->in_reply_to > 0 ? db_int(line->in_reply_to) : db_null(), db_text(actor),
                           db_text(line->body), db_text(line->path), db_text(line->side), db_int(line->line),
                           line->start_line > 0 ? db_int(line->start_line) : db_null(), db_text(commit_oid),
                           db_text(commit_oid), db_text(line->diff_hunk != NULL ? line->diff_hunk : ""),
                           db_int(job->now_us), db_int(job->now_us)),
                   error);
}

bool
review_add_lines(RowJob *job, const Json *pull, gint64 review_id, const char *actor, Json *lines,
                 const char *commit_oid, GError **error)
{
    size_t i;
    Json *item;

    if (json_array_size(lines) > REVIEW_LINES_MAX)
        return err_set(error, ERR_LIMIT, "a review has at most %d comments on lines", REVIEW_LINES_MAX);
    json_array_foreach(lines, i, item)
    {
        Line line = {.side = "RIGHT"};
        const char *start_side = NULL;
        const JsonField fields[] = {
            {"path", JSON_KIND_STRING, &line.path, true, 1, REVIEW_PATH_MAX},
            {"body", JSON_KIND_STRING, &line.body, true, 1, 4 * THREAD_BODY_MAX},
            {"side", JSON_KIND_STRING, &line.side, false, 1, 5},
            {"start_side", JSON_KIND_STRING, &start_side, false, 1, 5},
            {"diff_hunk", JSON_KIND_STRING, &line.diff_hunk, false, 0, 4 * HUNK_MAX},
            {"line", JSON_KIND_INT, &line.line, true, 1, REVIEW_LINE_MAX},
            {"start_line", JSON_KIND_INT, &line.start_line, false, 1, REVIEW_LINE_MAX},
            {NULL},
        };
        gint64 id;

        if (!json_read(item, fields, error) ||
            !insert(job, pull, review_id, actor, &line, commit_oid, &id, error)) {
            g_prefix_error(error, "comment %zu: ", i + 1);
            return false;
        }
    }
    return true;
}

/* A reply is of the same place as what it answers, and of the same thread. */
static bool
take_place(RowJob *job, const LineSpec *spec, Json **ret_first, Line *line, GError **error)
{
    if (spec->in_reply_to == 0)
        return true;
    Json *first = *ret_first = line_comment_load(job, spec->in_reply_to, spec->actor, error);

    if (first == NULL)
        return false;
    if (row_int(first, "number") != spec->number)
        return err_set(error, ERR_INVALID, "what is answered is of another pull request");
    gint64 of = row_int(first, "in_reply_to");

    line->in_reply_to = of > 0 ? of : spec->in_reply_to;
    line->path = row_text(first, "path");
    line->side = row_text(first, "side");
    line->line = row_int(first, "line");
    line->start_line = row_int(first, "start_line");
    line->diff_hunk = row_text(first, "diff_hunk");
    return true;
}

bool
line_comment_add_row(RowJob *job, const LineSpec *spec, Json **ret_value, GError **error)
{
    Line line = {.body = spec->body,
                 .path = spec->path,
                 .side = spec->side != NULL ? spec->side : "RIGHT",
                 .line = spec->line,
                 .diff_hunk = spec->diff_hunk,
                 .start_line = spec->start_line};
    g_autoptr(Json) first = NULL;
    g_autoptr(Json) pull = thread_load(job, spec->number, "pull", error);
    const char *commit = pull != NULL ? review_commit(pull, spec->commit_oid, error) : NULL;
    ReviewNew review = {.actor = spec->actor, .verdict = REVIEW_COMMENT, .commit_oid = commit};
    gint64 review_id = 0, id = 0;

    if (commit == NULL || !take_place(job, spec, &first, &line, error) ||
        !review_insert(job, pull, &review, &review_id, error) ||
        !insert(job, pull, review_id, spec->actor, &line, commit, &id, error) ||
        !thread_touch(job, pull, error))
        return false;
    *ret_value = line_comment_load(job, id, spec->actor, error);
    return *ret_value != NULL &&
           thread_event(job, "review.changed", spec->actor, pull,
                        json_pack("{s:I, s:I, s:s}", "review_id", (json_int_t)review_id, "line_comment_id",
                                  (json_int_t)id, "action", "commented"),
                        error);
}

/* ---- changing ---- */

static bool
edit(RowJob *job, const LineChange *change, const Json *line, GError **error)
{
    return row_check_text("the comment", change->body, THREAD_BODY_MAX, ROW_TEXT_NEEDED, error) &&
           db_exec(job->tx, "UPDATE review_comments SET body = ?, updated_us = ? WHERE id = ?",
                   DB_ARGS(db_text(change->body), db_int(row_later_us(job, line)), db_int(change->id)),
                   error);
}

/* The replies of one that is removed stay, and the first of them begins the thread. */
static bool
remove_line(RowJob *job, const LineChange *change, GError **error)
{
    gint64 heir = 0;

    if (!row_ask_int(job, "SELECT MIN(id) FROM review_comments WHERE in_reply_to = ?",
                     DB_ARGS(db_int(change->id)), &heir, error))
        return false;
    return db_exec(job->tx, "DELETE FROM review_comments WHERE id = ?", DB_ARGS(db_int(change->id)), error) &&
           db_exec(job->tx, "UPDATE review_comments SET in_reply_to = NULL WHERE id = ?",
                   DB_ARGS(db_int(heir)), error) &&
           db_exec(job->tx, "UPDATE review_comments SET in_reply_to = ? WHERE in_reply_to = ?",
                   DB_ARGS(db_int(heir), db_int(change->id)), error);
}

static bool
resolve(RowJob *job, const LineChange *change, const Json *line, GError **error)
{
    gint64 of = row_int(line, "in_reply_to"), first = of > 0 ? of : change->id;

    return db_exec(job->tx,
                   "UPDATE review_comments SET resolved = ?, updated_us = ? WHERE id = ? OR in_reply_to = ?",
                   DB_ARGS(db_int(change->act == LINE_RESOLVE), db_int(row_later_us(job, line)),
                           db_int(first), db_int(first)),
                   error);
}

static bool
apply(RowJob *job, const LineChange *change, const Json *line, GError **error)
{
    switch (change->act) {
    case LINE_EDIT:
        return edit(job, change, line, error);
    case LINE_DELETE:
        return remove_line(job, change, error);
    case LINE_RESOLVE:
    case LINE_UNRESOLVE:
        break;
    }
    return resolve(job, change, line, error);
}

/* A thread is resolved by whoever has dealt with it. */
static bool
check_author(const LineChange *change, const Json *line, GError **error)
{
    bool own = change->is_admin || strcmp(row_actor(line, "author"), change->actor) == 0;

    return own || (change->act != LINE_EDIT && change->act != LINE_DELETE) ||
           err_set(error, ERR_DENIED, "the comment is another's");
}

bool
line_comment_change_row(RowJob *job, const LineChange *change, Json **ret_value, GError **error)
{
    static const char *const actions[] = {"edited", "deleted", "resolved", "unresolved"};
    g_autoptr(Json) line = line_comment_load(job, change->id, change->actor, error);
    g_autoptr(Json) pull = line != NULL ? thread_load(job, row_int(line, "number"), "pull", error) : NULL;

    if (pull == NULL || !check_author(change, line, error) || !apply(job, change, line, error) ||
        !thread_touch(job, pull, error))
        return false;
    if (change->act != LINE_DELETE) {
        *ret_value = line_comment_load(job, change->id, change->actor, error);
        if (*ret_value == NULL)
            return false;
    }
    return thread_event(
        job, "review.changed", change->actor, pull,
        json_pack("{s:I, s:s}", "line_comment_id", (json_int_t)change->id, "action", actions[change->act]),
        error);
}

static bool
run_change(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    return line_comment_change_row(job, data, ret_value, error);
}

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    static const char *const orders[2][2] = {{"rc.id", "rc.id DESC"},
                                             {"rc.updated_us, rc.id", "rc.updated_us DESC, rc.id DESC"}};
    const LineFilter *filter = data;
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    if (filter->id > 0) {
        *ret_value = line_comment_load(job, filter->id, filter->actor, error);
        return *ret_value != NULL;
    }
    row_where_add(&where, "t.repository_id = ? AND " REVIEW_IS_SHOWN,
                  DB_ARGS(db_text(job->repository_id), db_text(filter->actor)));
    if (filter->number > 0) {
        g_autoptr(Json) pull = thread_load(job, filter->number, "pull", error);

        if (pull == NULL)
            return false;
        row_where_add(&where, "rc.thread_id = ?", DB_ARGS(db_int(row_int(pull, "id"))));
    }
    if (filter->review_id > 0)
        row_where_add(&where, "rc.review_id = ?", DB_ARGS(db_int(filter->review_id)));
    if (filter->since_us > 0)
        row_where_add(&where, "rc.updated_us >= ?", DB_ARGS(db_int(filter->since_us)));
    *ret_value = row_list(job, &lines_table, &where, orders[filter->by_updated][filter->descending],
                          filter->page, error);
    return *ret_value != NULL;
}

void
line_comment_change(Forge *forge, Repo *repo, const LineChange *change, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(LineChange, actor), ROW_AT_TEXT(LineChange, body),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(LineChange), members, run_change};

    row_run(forge, repo, &op, change, done, data);
}

void
line_comment_list(Forge *forge, Repo *repo, const LineFilter *filter, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(LineFilter, actor), ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(LineFilter), members, run_list};

    row_run(forge, repo, &op, filter, done, data);
}
