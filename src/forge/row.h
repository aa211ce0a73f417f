/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/people.h"
#include "forge/thread.h"

/* Operations on rows, for the files of this folder.
 *
 * An operation is a constant: the size of its spec, where the pointers in it are, and a function for
 * the database's thread.  row_run() copies the spec with what it points to, runs the function in one
 * job, and answers with the JSON that it made. */

typedef struct RowJob {
    DbTx *tx;
    const char *repository_id;
    gint64 now_us;
    People *people;
} RowJob;

typedef enum RowPointer { ROW_POINTER_END, ROW_POINTER_TEXT, ROW_POINTER_TEXTS, ROW_POINTER_JSON } RowPointer;

typedef struct RowMember {
    RowPointer kind;
    size_t offset;
} RowMember;
#define ROW_AT_TEXT(type, member)                                                                            \
    {                                                                                                        \
        ROW_POINTER_TEXT, offsetof(type, member)                                                             \
    }
#define ROW_AT_TEXTS(type, member)                                                                           \
    {                                                                                                        \
        ROW_POINTER_TEXTS, offsetof(type, member)                                                            \
    }
#define ROW_AT_JSON(type, member)                                                                            \
    {                                                                                                        \
        ROW_POINTER_JSON, offsetof(type, member)                                                             \
    }
#define ROW_AT_END                                                                                           \
    {                                                                                                        \
        ROW_POINTER_END, 0                                                                                   \
    }

typedef enum RowAccess { ROW_READS, ROW_WRITES } RowAccess;

typedef struct RowOp {
    RowAccess access;
    size_t size;
    const RowMember *members; /* ended by ROW_AT_END; NULL: no pointers */
    /* `*ret_value` NULL on success: the answer is {}. */
    bool (*run)(RowJob *job, const void *spec, Json **ret_value, GError **error);
} RowOp;

/* `done` may be NULL. */
void row_run(Forge *forge, Repo *repo, const RowOp *op, const void *spec, ForgeJsonFunc done, void *data);
/* The same without a forge; `repository_id` "": of none. */
void row_run_in(Db *db, const char *repository_id, const RowOp *op, const void *spec, ForgeJsonFunc done,
                void *data);

/* A copy with all that it points to, as row_run() makes one. */
void *row_spec_dup(const RowOp *op, const void *spec);
void row_spec_free(const RowOp *op, void *spec); /* NULL is fine */

/* A job inside a transaction of somebody else's. */
void row_job_init(RowJob *job, DbTx *tx, const char *repository_id);
void row_job_clear(RowJob *job);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RowJob, row_job_clear)

/* Never given twice, not even after a removal. */
bool row_next_id(RowJob *job, const char *table, gint64 *ret_id, GError **error);
/* Takes `data`, an object, to which the repository's name and id are added. */
bool row_tell(RowJob *job, EventSpec event, Json *data, GError **error);
/* The same, for all who may read: so is the repository. */
bool
row_event(RowJob *job, const char *kind, const char *actor, const char *task_id, Json *data, GError **error);

/* ---- reading ---- */

typedef enum RowKind { ROW_INT, ROW_TEXT, ROW_BOOL, ROW_JSON, ROW_PERSON, ROW_PEOPLE } RowKind;

typedef struct RowColumn {
    const char *name;
    RowKind kind;
    const char *sql; /* NULL: the name */
} RowColumn;

typedef struct RowTable {
    const char *noun; /* for messages: "comment" */
    const char *from; /* behind FROM */
    const RowColumn *columns;
    size_t n_columns;
} RowTable;

enum { ROW_ARGS_MAX = 24 };

/* Conditions that hold together; what is added must outlive it. */
typedef struct RowWhere {
    GString *sql;
    DbValue args[ROW_ARGS_MAX];
    size_t n;
} RowWhere;
#define ROW_WHERE_INIT                                                                                       \
    {                                                                                                        \
        .sql = g_string_new(NULL)                                                                            \
    }
void row_where_add(RowWhere *where, const char *sql, const DbValue *args, size_t n_args);
void row_where_clear(RowWhere *where);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RowWhere, row_where_clear)

/* One row; ERR_NOT_FOUND when there is none. */
Json *row_get(RowJob *job, const RowTable *table, const char *where, const DbValue *args, size_t n_args,
              GError **error);
/* All of them, as an array; `where` goes to the end of the statement. */
Json *row_all(RowJob *job, const RowTable *table, const char *where, const DbValue *args, size_t n_args,
              GError **error);
/* A page; `order` is behind ORDER BY. */
Json *row_list(RowJob *job, const RowTable *table, const RowWhere *where, const char *order, ForgePage page,
               GError **error);
/* The first column of the first row; `*ret_value` stays as it is when there is none. */
bool row_ask_int(RowJob *job, const char *sql, const DbValue *args, size_t n_args, gint64 *ret_value,
                 GError **error);

/* ---- rows as JSON, and what they are made of ---- */

static inline const char *
row_text(const Json *row, const char *name)
{
    return json_string_value(json_object_get(row, name));
}

static inline gint64
row_int(const Json *row, const char *name)
{
    return json_integer_value(json_object_get(row, name));
}

static inline bool
row_is(const Json *row, const char *name)
{
    return json_is_true(json_object_get(row, name));
}
/* Of texts; false where it is no list. */
bool row_list_has(const Json *list, const char *text);

/* The actor of a member that is a person. */
static inline const char *
row_actor(const Json *row, const char *name)
{
    return row_text(json_object_get(row, name), "actor");
}

/* A time for updated_us: later than what the row had, whatever the clock does. */
gint64 row_later_us(const RowJob *job, const Json *row);

typedef enum RowTextRule { ROW_TEXT_MAY_BE_EMPTY, ROW_TEXT_NEEDED } RowTextRule;
/* UTF-8 of at most `max` characters; NULL is empty. */
bool row_check_text(const char *what, const char *text, size_t max, RowTextRule rule, GError **error);
/* One line of it: control characters become spaces, those at the ends go. */
char *row_dup_line(const char *what, const char *text, size_t max, RowTextRule rule, GError **error);
/* `text` is one of the NULL-terminated list. */
bool row_check_word(const char *what, const char *text, const char *const *words, GError **error);
bool row_check_oid(const char *what, const char *oid, GError **error);
