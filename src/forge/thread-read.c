/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/label-private.h"
#include "forge/thread-private.h"

/* What stands in a review that was not submitted is its author's alone. */
#define LINE_IS_SHOWN "NOT EXISTS (SELECT 1 FROM reviews r WHERE r.id = rc.review_id AND r.state = 'PENDING')"

static const RowColumn columns[] = {
    {"id", ROW_INT, "t.id"},
    {"repository_id", ROW_TEXT, "t.repository_id"},
    {"number", ROW_INT, "t.number"},
    {"kind", ROW_TEXT, "t.kind"},
    {"state", ROW_TEXT, "t.state"},
    {"state_reason", ROW_TEXT, "t.state_reason"},
    {"title", ROW_TEXT, "t.title"},
    {"body", ROW_TEXT, "t.body"},
    {"author", ROW_PERSON, "t.author"},
    {"reviewers", ROW_PEOPLE, "t.reviewers"},
    {"task_id", ROW_TEXT, "t.task_id"},
    {"head", ROW_TEXT, "t.head"},
    {"base", ROW_TEXT, "t.base"},
    {"head_oid", ROW_TEXT, "t.head_oid"},
    {"base_oid", ROW_TEXT, "t.base_oid"},
    {"based_us", ROW_INT, "t.based_us"},
    {"compared_head", ROW_TEXT, "t.compared_head"},
    {"compared_base", ROW_TEXT, "t.compared_base"},
    {"ahead", ROW_INT, "t.ahead"},
    {"behind", ROW_INT, "t.behind"},
    {"conflicts", ROW_BOOL, "t.conflicts"},
    {"from_oid", ROW_TEXT, "t.from_oid"},
    {"commits", ROW_INT, "t.commits"},
    {"changed_files", ROW_INT, "t.changed_files"},
    {"additions", ROW_INT, "t.additions"},
    {"deletions", ROW_INT, "t.deletions"},
    {"draft", ROW_BOOL, "t.draft"},
    {"merged", ROW_BOOL, "t.merged"},
    {"merge_oid", ROW_TEXT, "t.merge_oid"},
    {"merge_method", ROW_TEXT, "t.merge_method"},
    {"merged_by", ROW_PERSON, "t.merged_by"},
    {"receipt", ROW_TEXT, "t.receipt"},
    {"created_us", ROW_INT, "t.created_us"},
    {"updated_us", ROW_INT, "t.updated_us"},
    {"closed_us", ROW_INT, "t.closed_us"},
    {"merged_us", ROW_INT, "t.merged_us"},
    {"comments", ROW_INT, "(SELECT COUNT(*) FROM comments c WHERE c.thread_id = t.id)"},
    {"review_comments", ROW_INT,
     "(SELECT COUNT(*) FROM review_comments rc WHERE rc.thread_id = t.id AND " LINE_IS_SHOWN ")"},
};
const RowTable thread_table = {"issue or pull request", "threads t", columns, G_N_ELEMENTS(columns)};

bool
thread_add_labels(RowJob *job, Json *thread, GError **error)
{
    Json *labels = labels_of_thread(job, row_int(thread, "id"), error);

    if (labels == NULL)
        return false;
    json_object_set_new(thread, "labels", labels);
    return true;
}

Json *
thread_load(RowJob *job, gint64 number, const char *kind, GError **error)
{
    g_autoptr(Json) thread = row_get(
        job, &thread_table, "t.repository_id = ? AND t.number = ? AND (? IS NULL OR t.kind = ?)",
        DB_ARGS(db_text(job->repository_id), db_int(number), db_text(kind), db_text(kind)), error);

    if (thread == NULL || !thread_add_labels(job, thread, error))
        return NULL;
    return g_steal_pointer(&thread);
}

typedef struct ThreadAsk {
    gint64 number;
    const char *kind;
} ThreadAsk;

static bool
run_get(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const ThreadAsk *ask = data;

    *ret_value = thread_load(job, ask->number, ask->kind, error);
    return *ret_value != NULL;
}

void
thread_get(Forge *forge, Repo *repo, gint64 number, const char *kind, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(ThreadAsk, kind), ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(ThreadAsk), members, run_get};

    row_run(forge, repo, &op, &(ThreadAsk){number, kind}, done, data);
}

/* `folded` owns what the conditions borrow. */
static bool
add_labels(RowWhere *where, const char *const *labels, GPtrArray *folded, GError **error)
{
    enum { LABELS_ASKED_MAX = 10 };

    for (size_t i = 0; labels != NULL && labels[i] != NULL; i++) {
        if (i == LABELS_ASKED_MAX)
            return err_set(error, ERR_LIMIT, "at most %d labels can be asked for", LABELS_ASKED_MAX);
        g_ptr_array_add(folded, label_dup_folded(labels[i]));
        row_where_add(where,
                      "EXISTS (SELECT 1 FROM thread_labels tl JOIN labels l ON l.id = tl.label_id "
                      "WHERE tl.thread_id = t.id AND l.folded = ?)",
                      DB_ARGS(db_text(folded->pdata[i])));
    }
    return true;
}

static void
add_texts(RowWhere *where, const ThreadFilter *filter, const char *author)
{
    const struct {
        const char *sql, *value;
    } rows[] = {
        {"t.kind = ?", filter->kind}, {"t.state = ?", filter->state}, {"t.head = ?", filter->head},
        {"t.base = ?", filter->base}, {"t.author = ?", author},       {"t.task_id = ?", filter->task_id},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].value != NULL)
            row_where_add(where, rows[i].sql, DB_ARGS(db_text(rows[i].value)));
    }
}

static const char *
order_of(const ThreadFilter *filter)
{
    static const char *const orders[][2] = {
        [THREAD_BY_CREATED] = {"t.number DESC", "t.number"},
        [THREAD_BY_UPDATED] = {"t.updated_us DESC, t.number DESC", "t.updated_us, t.number"},
        [THREAD_BY_COMMENTS] =
            {"(SELECT COUNT(*) FROM comments c WHERE c.thread_id = t.id) DESC, t.number DESC",
             "(SELECT COUNT(*) FROM comments c WHERE c.thread_id = t.id), t.number"},
    };

    return orders[filter->sort][filter->ascending];
}

static Json *
empty_list(void)
{
    return json_pack("{s:[], s:i}", "items", "total", 0);
}

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const ThreadFilter *filter = data;
    g_autoptr(GPtrArray) folded = g_ptr_array_new_with_free_func(g_free);
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    g_autoptr(GError) nobody = NULL;
    g_autofree char *author = filter->author != NULL ? people_find(job->people, filter->author, &nobody)
                                                     : NULL;

    if (g_error_matches(nobody, ERR_DOMAIN, ERR_INVALID)) {
        *ret_value = empty_list();
        return true;
    }
    if (nobody != NULL) {
        g_propagate_error(error, g_steal_pointer(&nobody));
        return false;
    }
    row_where_add(&where, "t.repository_id = ?", DB_ARGS(db_text(job->repository_id)));
    add_texts(&where, filter, author);
    if (filter->since_us > 0)
        row_where_add(&where, "t.updated_us >= ?", DB_ARGS(db_int(filter->since_us)));
    if (!add_labels(&where, filter->labels, folded, error))
        return false;
    g_autoptr(Json) list = row_list(job, &thread_table, &where, order_of(filter), filter->page, error);
    size_t i;
    Json *thread;

    if (list == NULL)
        return false;
    json_array_foreach(json_object_get(list, "items"), i, thread)
    {
        if (!thread_add_labels(job, thread, error))
            return false;
    }
    *ret_value = g_steal_pointer(&list);
    return true;
}

void
thread_list(Forge *forge, Repo *repo, const ThreadFilter *filter, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {
        ROW_AT_TEXT(ThreadFilter, kind),    ROW_AT_TEXT(ThreadFilter, state),
        ROW_AT_TEXT(ThreadFilter, head),    ROW_AT_TEXT(ThreadFilter, base),
        ROW_AT_TEXT(ThreadFilter, author),  ROW_AT_TEXT(ThreadFilter, task_id),
        ROW_AT_TEXTS(ThreadFilter, labels), ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(ThreadFilter), members, run_list};

    row_run(forge, repo, &op, filter, done, data);
}
