/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/comment.h"

#include <string.h>

#include "base/err.h"
#include "forge/thread-private.h"

static const RowColumn columns[] = {
    {"id", ROW_INT, "c.id"},
    {"thread_id", ROW_INT, "c.thread_id"},
    {"number", ROW_INT, "t.number"},
    {"kind", ROW_TEXT, "t.kind"},
    {"marker", ROW_TEXT, "c.marker"},
    {"author", ROW_PERSON, "c.author"},
    {"body", ROW_TEXT, "c.body"},
    {"created_us", ROW_INT, "c.created_us"},
    {"updated_us", ROW_INT, "c.updated_us"},
};
static const RowTable comments = {"comment", "comments c JOIN threads t ON t.id = c.thread_id", columns,
                                  G_N_ELEMENTS(columns)};

Json *
comment_load(RowJob *job, gint64 id, GError **error)
{
    return row_get(job, &comments, "c.id = ? AND t.repository_id = ?",
                   DB_ARGS(db_int(id), db_text(job->repository_id)), error);
}

static bool
tell(RowJob *job, const char *kind, const char *actor, const Json *comment, const char *action,
     GError **error)
{
    g_autoptr(Json) thread = thread_load(job, row_int(comment, "number"), NULL, error);

    return thread != NULL && thread_touch(job, thread, error) &&
           thread_event(job, kind, actor, thread,
                        json_pack("{s:I, s:s, s:O}", "comment_id", (json_int_t)row_int(comment, "id"),
                                  "action", action, "marker", json_object_get(comment, "marker")),
                        error);
}

static bool
write_body(RowJob *job, const Json *comment, const char *body, GError **error)
{
    return row_check_text("the comment", body, THREAD_BODY_MAX, ROW_TEXT_NEEDED, error) &&
           db_exec(job->tx, "UPDATE comments SET body = ?, updated_us = ? WHERE id = ?",
                   DB_ARGS(db_text(body), db_int(row_later_us(job, comment)), db_int(row_int(comment, "id"))),
                   error);
}

/* The one with the marker, if there is one: 0 otherwise. */
static bool
find_marked(RowJob *job, const CommentSpec *spec, gint64 thread_id, gint64 *ret_id, GError **error)
{
    *ret_id = 0;
    if (spec->marker == NULL)
        return true;
    return row_check_text("the marker", spec->marker, COMMENT_MARKER_MAX, ROW_TEXT_NEEDED, error) &&
           row_ask_int(job, "SELECT id FROM comments WHERE thread_id = ? AND marker = ?",
                       DB_ARGS(db_int(thread_id), db_text(spec->marker)), ret_id, error);
}

static bool
insert(RowJob *job, const CommentSpec *spec, gint64 thread_id, gint64 *ret_id, GError **error)
{
    return row_check_text("the comment", spec->body, THREAD_BODY_MAX, ROW_TEXT_NEEDED, error) &&
           row_next_id(job, "comments", ret_id, error) &&
           db_exec(job->tx,
                   "INSERT INTO comments (id, thread_id, marker, author, body, created_us, updated_us) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?)",
                   DB_ARGS(db_int(*ret_id), db_int(thread_id), db_text(spec->marker), db_text(spec->actor),
                           db_text(spec->body), db_int(job->now_us), db_int(job->now_us)),
                   error);
}

/* What stands in a marked comment of somebody else's is not this one's to write over. */
static bool
update_marked(RowJob *job, const CommentSpec *spec, gint64 id, Json **ret_value, GError **error)
{
    g_autoptr(Json) old = comment_load(job, id, error);

    if (old == NULL)
        return false;
    if (strcmp(row_actor(old, "author"), spec->actor) != 0)
        return err_set(error, ERR_DENIED, "the comment '%s' is another's", spec->marker);
    if (g_strcmp0(row_text(old, "body"), spec->body) == 0) {
        *ret_value = g_steal_pointer(&old);
        return true;
    }
    if (!write_body(job, old, spec->body, error))
        return false;
    *ret_value = comment_load(job, id, error);
    return *ret_value != NULL && tell(job, "comment.changed", spec->actor, *ret_value, "edited", error);
}

bool
comment_put_row(RowJob *job, const CommentSpec *spec, Json **ret_value, GError **error)
{
    g_autoptr(Json) thread = thread_load(job, spec->number, NULL, error);
    gint64 id = 0;

    if (thread == NULL || !find_marked(job, spec, row_int(thread, "id"), &id, error))
        return false;
    if (id != 0)
        return update_marked(job, spec, id, ret_value, error);
    if (!insert(job, spec, row_int(thread, "id"), &id, error))
        return false;
    *ret_value = comment_load(job, id, error);
    return *ret_value != NULL && tell(job, "comment.added", spec->actor, *ret_value, "created", error);
}

static bool
run_put(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    return comment_put_row(job, data, ret_value, error);
}

bool
comment_edit_row(RowJob *job, const CommentEdit *edit, Json **ret_value, GError **error)
{
    g_autoptr(Json) comment = comment_load(job, edit->id, error);

    if (comment == NULL)
        return false;
    if (!edit->is_admin && strcmp(row_actor(comment, "author"), edit->actor) != 0)
        return err_set(error, ERR_DENIED, "the comment is another's");
    if (edit->body == NULL)
        return tell(job, "comment.changed", edit->actor, comment, "deleted", error) &&
               db_exec(job->tx, "DELETE FROM comments WHERE id = ?", DB_ARGS(db_int(edit->id)), error);
    if (!write_body(job, comment, edit->body, error))
        return false;
    *ret_value = comment_load(job, edit->id, error);
    return *ret_value != NULL && tell(job, "comment.changed", edit->actor, *ret_value, "edited", error);
}

static bool
run_edit(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    return comment_edit_row(job, data, ret_value, error);
}

static bool
run_get(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    *ret_value = comment_load(job, *(const gint64 *)data, error);
    return *ret_value != NULL;
}

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    static const char *const orders[2][2] = {{"c.id", "c.id DESC"},
                                             {"c.updated_us, c.id", "c.updated_us DESC, c.id DESC"}};
    const CommentFilter *filter = data;
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    row_where_add(&where, "t.repository_id = ?", DB_ARGS(db_text(job->repository_id)));
    if (filter->number > 0) {
        g_autoptr(Json) thread = thread_load(job, filter->number, NULL, error);

        if (thread == NULL)
            return false;
        row_where_add(&where, "c.thread_id = ?", DB_ARGS(db_int(row_int(thread, "id"))));
    }
    if (filter->since_us > 0)
        row_where_add(&where, "c.updated_us >= ?", DB_ARGS(db_int(filter->since_us)));
    *ret_value = row_list(job, &comments, &where, orders[filter->by_updated][filter->descending],
                          filter->page, error);
    return *ret_value != NULL;
}

void
comment_put(Forge *forge, Repo *repo, const CommentSpec *spec, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(CommentSpec, actor), ROW_AT_TEXT(CommentSpec, body),
                                        ROW_AT_TEXT(CommentSpec, marker), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(CommentSpec), members, run_put};

    row_run(forge, repo, &op, spec, done, data);
}

void
comment_edit(Forge *forge, Repo *repo, const CommentEdit *edit, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(CommentEdit, actor), ROW_AT_TEXT(CommentEdit, body),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(CommentEdit), members, run_edit};

    row_run(forge, repo, &op, edit, done, data);
}

void
comment_get(Forge *forge, Repo *repo, gint64 id, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(gint64), NULL, run_get};

    row_run(forge, repo, &op, &id, done, data);
}

void
comment_list(Forge *forge, Repo *repo, const CommentFilter *filter, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(CommentFilter), NULL, run_list};

    row_run(forge, repo, &op, filter, done, data);
}
