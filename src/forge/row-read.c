/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/row.h"

void
row_where_add(RowWhere *where, const char *sql, const DbValue *args, size_t n_args)
{
    g_assert(where->n + n_args <= ROW_ARGS_MAX);
    g_string_append_printf(where->sql, "%s%s", where->sql->len > 0 ? " AND " : "", sql);
    if (n_args > 0)
        memcpy(where->args + where->n, args, n_args * sizeof args[0]);
    where->n += n_args;
}

void
row_where_clear(RowWhere *where)
{
    if (where->sql != NULL)
        g_string_free(g_steal_pointer(&where->sql), TRUE);
}

static void
append_columns(GString *sql, const RowTable *table)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        const RowColumn *c = &table->columns[i];

        g_string_append_printf(sql, "%s%s", i > 0 ? ", " : "", c->sql != NULL ? c->sql : c->name);
    }
}

static Json *
stored_json(const char *text)
{
    Json *value = text != NULL ? json_decode(text, strlen(text), NULL) : NULL;

    return value != NULL ? value : json_null();
}

static Json *
column_json(RowKind kind, DbRows *rows, int i)
{
    if (db_rows_is_null(rows, i))
        return json_null();
    switch (kind) {
    case ROW_INT:
        return json_integer(db_rows_int(rows, i));
    case ROW_BOOL:
        return json_boolean(db_rows_int(rows, i) != 0);
    case ROW_JSON:
    case ROW_PEOPLE:
        return stored_json(db_rows_text(rows, i));
    case ROW_TEXT:
    case ROW_PERSON:
        break;
    }
    return json_string(db_rows_text(rows, i));
}

static Json *
row_json(const RowTable *table, DbRows *rows)
{
    Json *row = json_object();

    for (size_t i = 0; i < table->n_columns; i++)
        json_object_set_new(row, table->columns[i].name, column_json(table->columns[i].kind, rows, (int)i));
    return row;
}

static bool
show_people(RowJob *job, Json *row, const char *name, GError **error)
{
    g_autoptr(Json) shown = json_array();
    size_t i;
    Json *actor;

    json_array_foreach(json_object_get(row, name), i, actor)
    {
        Json *person = people_json(job->people, json_string_value(actor), error);

        if (person == NULL)
            return false;
        json_array_append_new(shown, person);
    }
    json_object_set(row, name, shown);
    return true;
}

/* After the rows were read: looking a person up is a query of its own. */
static bool
show_row(RowJob *job, const RowTable *table, Json *row, GError **error)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        const char *name = table->columns[i].name;
        RowKind kind = table->columns[i].kind;

        if (kind == ROW_PEOPLE && !show_people(job, row, name, error))
            return false;
        if (kind != ROW_PERSON || json_is_null(json_object_get(row, name)))
            continue;
        Json *person = people_json(job->people, row_text(row, name), error);

        if (person == NULL)
            return false;
        json_object_set_new(row, name, person);
    }
    return true;
}

static bool
collect(RowJob *job, const RowTable *table, const char *sql, const DbValue *args, size_t n_args,
        Json *ret_items, GError **error)
{
    g_autoptr(DbRows) rows = db_query(job->tx, sql, args, n_args, error);
    bool more = true;
    size_t i;
    Json *row;

    if (rows == NULL)
        return false;
    while (more) {
        if (!db_rows_next(rows, &more, error))
            return false;
        if (more)
            json_array_append_new(ret_items, row_json(table, rows));
    }
    g_clear_pointer(&rows, db_rows_free);
    json_array_foreach(ret_items, i, row)
    {
        if (!show_row(job, table, row, error))
            return false;
    }
    return true;
}

Json *
row_get(RowJob *job, const RowTable *table, const char *where, const DbValue *args, size_t n_args,
        GError **error)
{
    g_autoptr(GString) sql = g_string_new("SELECT ");
    g_autoptr(Json) items = json_array();

    append_columns(sql, table);
    g_string_append_printf(sql, " FROM %s WHERE %s LIMIT 1", table->from, where);
    if (!collect(job, table, sql->str, args, n_args, items, error))
        return NULL;
    if (json_array_size(items) == 0) {
        err_set(error, ERR_NOT_FOUND, "there is no such %s", table->noun);
        return NULL;
    }
    return json_incref(json_array_get(items, 0));
}

Json *
row_all(RowJob *job, const RowTable *table, const char *where, const DbValue *args, size_t n_args,
        GError **error)
{
    g_autoptr(GString) sql = g_string_new("SELECT ");
    g_autoptr(Json) items = json_array();

    append_columns(sql, table);
    g_string_append_printf(sql, " FROM %s WHERE %s", table->from, where);
    return collect(job, table, sql->str, args, n_args, items, error) ? g_steal_pointer(&items) : NULL;
}

bool
row_ask_int(RowJob *job, const char *sql, const DbValue *args, size_t n_args, gint64 *ret_value,
            GError **error)
{
    g_autoptr(DbRows) rows = db_query(job->tx, sql, args, n_args, error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    if (found && !db_rows_is_null(rows, 0))
        *ret_value = db_rows_int(rows, 0);
    /* A statement that writes has done so when it has come to its end. */
    while (found) {
        if (!db_rows_next(rows, &found, error))
            return false;
    }
    return true;
}

Json *
row_list(RowJob *job, const RowTable *table, const RowWhere *where, const char *order, ForgePage page,
         GError **error)
{
    guint per_page = page.per_page > 0 ? MIN(page.per_page, (guint)THREAD_PAGE_MAX) : (guint)THREAD_PAGE;
    gint64 skip = (gint64)(MAX(page.page, 1u) - 1) * per_page, total = 0;
    g_autofree char *count = g_strdup_printf("SELECT COUNT(*) FROM %s WHERE %s", table->from,
                                             where->sql->str);
    g_autoptr(GString) sql = g_string_new("SELECT ");
    g_autoptr(Json) items = json_array();
    DbValue args[ROW_ARGS_MAX + 2];

    if (!row_ask_int(job, count, where->args, where->n, &total, error))
        return NULL;
    append_columns(sql, table);
    g_string_append_printf(sql, " FROM %s WHERE %s ORDER BY %s LIMIT ? OFFSET ?", table->from,
                           where->sql->str, order);
    memcpy(args, where->args, where->n * sizeof args[0]);
    args[where->n] = db_int(per_page);
    args[where->n + 1] = db_int(skip);
    if (!collect(job, table, sql->str, args, where->n + 2, items, error))
        return NULL;
    return json_pack("{s:O, s:I}", "items", items, "total", (json_int_t)total);
}
