/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/row.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "forge/forge-private.h"

typedef struct RowRun {
    const RowOp *op;
    void *spec; /* NULL: the operation has none */
    char *repository_id;
    Json *value;
    ForgeJsonFunc done;
    void *data;
} RowRun;

static void
copy_member(RowPointer kind, void *at)
{
    switch (kind) {
    case ROW_POINTER_TEXT:
        *(char **)at = g_strdup(*(char **)at);
        break;
    case ROW_POINTER_TEXTS:
        *(char ***)at = g_strdupv(*(char ***)at);
        break;
    case ROW_POINTER_JSON:
        /* In depth: the caller may go on changing his own. */
        *(Json **)at = json_deep_copy(*(Json **)at);
        break;
    case ROW_POINTER_END:
        break;
    }
}

static void
free_member(RowPointer kind, void *at)
{
    switch (kind) {
    case ROW_POINTER_TEXT:
        g_free(*(char **)at);
        break;
    case ROW_POINTER_TEXTS:
        g_strfreev(*(char ***)at);
        break;
    case ROW_POINTER_JSON:
        json_decref(*(Json **)at);
        break;
    case ROW_POINTER_END:
        break;
    }
}

static void
each_member(const RowOp *op, void *spec, void (*func)(RowPointer kind, void *at))
{
    for (const RowMember *m = op->members; m != NULL && m->kind != ROW_POINTER_END; m++)
        func(m->kind, (char *)spec + m->offset);
}

void *
row_spec_dup(const RowOp *op, const void *spec)
{
    void *copy = g_memdup2(spec, op->size);

    each_member(op, copy, copy_member);
    return copy;
}

void
row_spec_free(const RowOp *op, void *spec)
{
    if (spec != NULL)
        each_member(op, spec, free_member);
    g_free(spec);
}

static void
run_free(gpointer data)
{
    RowRun *run = data;

    row_spec_free(run->op, run->spec);
    json_decref(run->value);
    g_free(run->repository_id);
    g_free(run);
}

static bool
run_work(DbTx *tx, void *data, GError **error)
{
    RowRun *run = data;
    g_auto(RowJob) job = {0};

    row_job_init(&job, tx, run->repository_id);
    if (!run->op->run(&job, run->spec, &run->value, error))
        return false;
    if (run->value == NULL)
        run->value = json_object();
    return true;
}

static void
run_done(void *data, const GError *error)
{
    RowRun *run = data;

    if (run->done != NULL)
        run->done(error == NULL ? run->value : NULL, error, run->data);
}

void
row_run_in(Db *db, const char *repository_id, const RowOp *op, const void *spec, ForgeJsonFunc done,
           void *data)
{
    RowRun *run = g_new0(RowRun, 1);

    *run = (RowRun){.op = op, .repository_id = g_strdup(repository_id), .done = done, .data = data};
    run->spec = row_spec_dup(op, spec);
    (op->access == ROW_WRITES ? db_write : db_read)(db, run_work, run_done, run, run_free);
}

void
row_run(Forge *forge, Repo *repo, const RowOp *op, const void *spec, ForgeJsonFunc done, void *data)
{
    row_run_in(forge->spec.db, repo->id, op, spec, done, data);
}

void
row_job_init(RowJob *job, DbTx *tx, const char *repository_id)
{
    *job = (RowJob){.tx = tx, .repository_id = repository_id, .now_us = clock_wall_us()};
    job->people = people_new(tx);
}

void
row_job_clear(RowJob *job)
{
    people_free(g_steal_pointer(&job->people));
}

bool
row_next_id(RowJob *job, const char *table, gint64 *ret_id, GError **error)
{
    return row_ask_int(job,
                       "INSERT INTO forge_ids (name, last) VALUES (?, 1) "
                       "ON CONFLICT (name) DO UPDATE SET last = forge_ids.last + 1 RETURNING last",
                       DB_ARGS(db_text(table)), ret_id, error);
}

bool
row_tell(RowJob *job, EventSpec event, Json *data, GError **error)
{
    g_autoptr(Json) object = data;
    g_autoptr(DbRows) rows = db_query(job->tx, "SELECT owner, name FROM repositories WHERE id = ?",
                                      DB_ARGS(db_text(job->repository_id)), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    if (!found)
        return err_set(error, ERR_NOT_FOUND, "the repository is gone");
    g_autofree char *name = g_strdup_printf("%s/%s", db_rows_text(rows, 0), db_rows_text(rows, 1));
    g_clear_pointer(&rows, db_rows_free);
    json_object_set_new(object, "repository", json_string(name));
    json_object_set_new(object, "repository_id", json_string(job->repository_id));
    g_autofree char *text = json_encode(object);

    event.data = text;
    return event_append(job->tx, &event, NULL, error);
}

bool
row_event(RowJob *job, const char *kind, const char *actor, const char *task_id, Json *data, GError **error)
{
    EventSpec event = {.kind = kind, .actor = actor, .task_id = task_id, .owner = EVENT_FOR_ALL};

    return row_tell(job, event, data, error);
}

gint64
row_later_us(const RowJob *job, const Json *row)
{
    return MAX(job->now_us, row_int(row, "updated_us") + 1);
}

bool
row_check_text(const char *what, const char *text, size_t max, RowTextRule rule, GError **error)
{
    if (text == NULL || text[0] == '\0')
        return rule == ROW_TEXT_MAY_BE_EMPTY || err_set(error, ERR_INVALID, "%s is missing", what);
    if (!g_utf8_validate(text, -1, NULL))
        return err_set(error, ERR_INVALID, "%s is not UTF-8", what);
    if ((size_t)g_utf8_strlen(text, -1) > max)
        return err_set(error, ERR_INVALID, "%s is longer than %zu characters", what, max);
    return true;
}

char *
row_dup_line(const char *what, const char *text, size_t max, RowTextRule rule, GError **error)
{
    g_autoptr(GString) line = g_string_new(NULL);

    if (!row_check_text(what, text, max, ROW_TEXT_MAY_BE_EMPTY, error))
        return NULL;
    for (const char *p = text != NULL ? text : ""; *p != '\0'; p += g_utf8_skip[(guchar)*p]) {
        gunichar c = g_utf8_get_char(p);

        g_string_append_unichar(line, g_unichar_iscntrl(c) ? ' ' : c);
    }
    g_strstrip(line->str);
    if (!row_check_text(what, line->str, max, rule, error))
        return NULL;
    return g_strdup(line->str);
}

bool
row_check_word(const char *what, const char *text, const char *const *words, GError **error)
{
    g_autoptr(GString) list = g_string_new(NULL);

    if (text != NULL && g_strv_contains(words, text))
        return true;
    for (size_t i = 0; words[i] != NULL; i++)
        g_string_append_printf(list, "%s%s", i > 0 ? ", " : "", words[i]);
    return err_set(error, ERR_INVALID, "%s must be one of %s", what, list->str);
}

bool
row_check_oid(const char *what, const char *oid, GError **error)
{
    return (oid != NULL && git_oid_is_valid(oid)) ||
           err_set(error, ERR_INVALID, "%s must be a commit's 40 hex digits", what);
}

bool
row_list_has(const Json *list, const char *text)
{
    size_t i;
    Json *item;

    json_array_foreach(list, i, item)
    {
        if (g_strcmp0(json_string_value(item), text) == 0)
            return true;
    }
    return false;
}
