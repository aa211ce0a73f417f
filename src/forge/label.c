/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/label.h"

#include <string.h>

#include "base/err.h"
#include "forge/label-private.h"

static const RowColumn columns[] = {
    {"id", ROW_INT, "l.id"},
    {"name", ROW_TEXT, "l.name"},
    {"color", ROW_TEXT, "l.color"},
    {"description", ROW_TEXT, "l.description"},
};
static const RowTable labels = {"label", "labels l", columns, G_N_ELEMENTS(columns)};
static const RowTable labels_on_threads = {"label", "thread_labels tl JOIN labels l ON l.id = tl.label_id",
                                           columns, G_N_ELEMENTS(columns)};

char *
label_dup_folded(const char *name)
{
    return g_utf8_strdown(name, -1);
}

Json *
label_load(RowJob *job, const char *name, GError **error)
{
    g_autofree char *folded = NULL;

    if (!row_check_text("the label's name", name, LABEL_NAME_MAX, ROW_TEXT_NEEDED, error))
        return NULL;
    folded = label_dup_folded(name);
    return row_get(job, &labels, "l.repository_id = ? AND l.folded = ?",
                   DB_ARGS(db_text(job->repository_id), db_text(folded)), error);
}

/* The same name has the same colour everywhere, and it is neither too dark nor too bright to read. */
static char *
dup_color(const char *name)
{
    guint hash = g_str_hash(name);

    return g_strdup_printf("%02x%02x%02x", 0x60 + (hash & 0x7f), 0x60 + (hash >> 8 & 0x7f),
                           0x60 + (hash >> 16 & 0x7f));
}

static char *
check_color(const char *name, const char *color, GError **error)
{
    enum { DIGITS = 6 };

    if (color == NULL)
        return dup_color(name);
    if (color[0] == '#')
        color++;
    if (strlen(color) != DIGITS || strspn(color, "0123456789abcdefABCDEF") != DIGITS) {
        err_set(error, ERR_INVALID, "a label's color is six hex digits");
        return NULL;
    }
    return g_ascii_strdown(color, -1);
}

static bool
create(RowJob *job, const char *given, const char *given_color, const char *description, Json **ret_label,
       GError **error)
{
    g_autofree char *name = row_dup_line("the label's name", given, LABEL_NAME_MAX, ROW_TEXT_NEEDED, error);
    g_autofree char *text = name == NULL ? NULL
                                         : row_dup_line("the label's description", description,
                                                        LABEL_DESCRIPTION_MAX, ROW_TEXT_MAY_BE_EMPTY, error);
    g_autofree char *color = text == NULL ? NULL : check_color(name, given_color, error);
    gint64 id = 0, count = 0;

    if (color == NULL || !row_ask_int(job, "SELECT COUNT(*) FROM labels WHERE repository_id = ?",
                                      DB_ARGS(db_text(job->repository_id)), &count, error))
        return false;
    if (count >= LABEL_COUNT_MAX)
        return err_set(error, ERR_LIMIT, "the repository has %d labels already", LABEL_COUNT_MAX);
    g_autofree char *folded = label_dup_folded(name);

    if (!row_next_id(job, "labels", &id, error) ||
        !db_exec(job->tx,
                 "INSERT INTO labels (id, repository_id, name, folded, color, description) "
                 "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (repository_id, folded) DO NOTHING",
                 DB_ARGS(db_int(id), db_text(job->repository_id), db_text(name), db_text(folded),
                         db_text(color), db_text(text)),
                 error))
        return false;
    if (db_changes(job->tx) == 0)
        return err_set(error, ERR_CONFLICT, "there is a label '%s' already", name);
    *ret_label = row_get(job, &labels, "l.id = ?", DB_ARGS(db_int(id)), error);
    return *ret_label != NULL;
}

static bool
tell(RowJob *job, const char *actor, const char *action, const char *name, GError **error)
{
    return row_event(job, "label.changed", actor, NULL,
                     json_pack("{s:s, s:s}", "action", action, "label", name), error);
}

static bool
run_create(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const LabelSpec *spec = data;

    return create(job, spec->name, spec->color, spec->description, ret_value, error) &&
           tell(job, spec->actor, "created", row_text(*ret_value, "name"), error);
}

static bool
rename_to(RowJob *job, const Json *label, const LabelEdit *edit, GError **error)
{
    const char *old = row_text(label, "name");
    g_autofree char *name = row_dup_line("the label's name", edit->new_name != NULL ? edit->new_name : old,
                                         LABEL_NAME_MAX, ROW_TEXT_NEEDED, error);
    const char *description = edit->description != NULL ? edit->description : row_text(label, "description");
    const char *given = edit->color != NULL ? edit->color : row_text(label, "color");
    g_autofree char *color = name != NULL ? check_color(name, given, error) : NULL;
    g_autofree char *text = color != NULL ? row_dup_line("the label's description", description,
                                                         LABEL_DESCRIPTION_MAX, ROW_TEXT_MAY_BE_EMPTY, error)
                                          : NULL;

    if (text == NULL)
        return false;
    g_autofree char *folded = label_dup_folded(name);

    return db_exec(
        job->tx, "UPDATE labels SET name = ?, folded = ?, color = ?, description = ? WHERE id = ?",
        DB_ARGS(db_text(name), db_text(folded), db_text(color), db_text(text), db_int(row_int(label, "id"))),
        error);
}

static bool
run_edit(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const LabelEdit *edit = data;
    g_autoptr(Json) label = label_load(job, edit->name, error);

    if (label == NULL)
        return false;
    gint64 id = row_int(label, "id");

    if (edit->remove)
        return db_exec(job->tx, "DELETE FROM labels WHERE id = ?", DB_ARGS(db_int(id)), error) &&
               tell(job, edit->actor, "deleted", row_text(label, "name"), error);
    if (!rename_to(job, label, edit, error))
        return false;
    *ret_value = row_get(job, &labels, "l.id = ?", DB_ARGS(db_int(id)), error);
    return *ret_value != NULL && tell(job, edit->actor, "edited", row_text(*ret_value, "name"), error);
}

/* ---- on threads ---- */

Json *
labels_of_thread(RowJob *job, gint64 thread_id, GError **error)
{
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    row_where_add(&where, "tl.thread_id = ?", DB_ARGS(db_int(thread_id)));
    g_autoptr(Json) list = row_list(job, &labels_on_threads, &where, "l.folded",
                                    (ForgePage){.per_page = THREAD_LABELS_MAX}, error);

    return list != NULL ? json_incref(json_object_get(list, "items")) : NULL;
}

/* One that a thread is given is made when it is not there. */
static bool
find_or_create(RowJob *job, const char *name, gint64 *ret_id, GError **error)
{
    g_autoptr(GError) missing = NULL;
    g_autoptr(Json) label = label_load(job, name, &missing);

    if (label == NULL && !g_error_matches(missing, ERR_DOMAIN, ERR_NOT_FOUND)) {
        g_propagate_error(error, g_steal_pointer(&missing));
        return false;
    }
    if (label == NULL && !create(job, name, NULL, NULL, &label, error))
        return false;
    *ret_id = row_int(label, "id");
    return true;
}

static bool
take_off(RowJob *job, gint64 thread_id, const char *name, GError **error)
{
    g_autoptr(Json) label = label_load(job, name, error);

    if (label == NULL || !db_exec(job->tx, "DELETE FROM thread_labels WHERE thread_id = ? AND label_id = ?",
                                  DB_ARGS(db_int(thread_id), db_int(row_int(label, "id"))), error))
        return false;
    return db_changes(job->tx) > 0 || err_set(error, ERR_NOT_FOUND, "it has no label '%s'", name);
}

static bool
put_on(RowJob *job, gint64 thread_id, const char *name, GError **error)
{
    gint64 id = 0;

    return find_or_create(job, name, &id, error) &&
           db_exec(job->tx,
                   "INSERT INTO thread_labels (thread_id, label_id) VALUES (?, ?) "
                   "ON CONFLICT (thread_id, label_id) DO NOTHING",
                   DB_ARGS(db_int(thread_id), db_int(id)), error);
}

bool
labels_change(RowJob *job, gint64 thread_id, ListChange how, const char *const *names, GError **error)
{
    gint64 count = 0;

    if (how == LIST_SET &&
        !db_exec(job->tx, "DELETE FROM thread_labels WHERE thread_id = ?", DB_ARGS(db_int(thread_id)), error))
        return false;
    for (; names != NULL && *names != NULL; names++) {
        if (how == LIST_REMOVE ? !take_off(job, thread_id, *names, error)
                               : !put_on(job, thread_id, *names, error))
            return false;
    }
    return row_ask_int(job, "SELECT COUNT(*) FROM thread_labels WHERE thread_id = ?",
                       DB_ARGS(db_int(thread_id)), &count, error) &&
           (count <= THREAD_LABELS_MAX ||
            err_set(error, ERR_LIMIT, "it would have more than %d labels", THREAD_LABELS_MAX));
}

/* ---- reading ---- */

typedef struct LabelAsk {
    const char *name;
    gint64 number;
    ForgePage page;
} LabelAsk;

static bool
run_get(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    *ret_value = label_load(job, ((const LabelAsk *)data)->name, error);
    return *ret_value != NULL;
}

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const LabelAsk *ask = data;
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    gint64 thread_id = 0;

    row_where_add(&where, "l.repository_id = ?", DB_ARGS(db_text(job->repository_id)));
    if (ask->number > 0) {
        if (!row_ask_int(job, "SELECT id FROM threads WHERE repository_id = ? AND number = ?",
                         DB_ARGS(db_text(job->repository_id), db_int(ask->number)), &thread_id, error))
            return false;
        if (thread_id == 0)
            return err_set(error, ERR_NOT_FOUND, "there is no #%" G_GINT64_FORMAT, ask->number);
        row_where_add(&where, "tl.thread_id = ?", DB_ARGS(db_int(thread_id)));
    }
    *ret_value = row_list(job, thread_id != 0 ? &labels_on_threads : &labels, &where, "l.folded", ask->page,
                          error);
    return *ret_value != NULL;
}

void
label_create(Forge *forge, Repo *repo, const LabelSpec *spec, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(LabelSpec, actor), ROW_AT_TEXT(LabelSpec, name),
                                        ROW_AT_TEXT(LabelSpec, color), ROW_AT_TEXT(LabelSpec, description),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(LabelSpec), members, run_create};

    row_run(forge, repo, &op, spec, done, data);
}

void
label_edit(Forge *forge, Repo *repo, const LabelEdit *edit, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(LabelEdit, actor),       ROW_AT_TEXT(LabelEdit, name),
                                        ROW_AT_TEXT(LabelEdit, new_name),    ROW_AT_TEXT(LabelEdit, color),
                                        ROW_AT_TEXT(LabelEdit, description), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(LabelEdit), members, run_edit};

    row_run(forge, repo, &op, edit, done, data);
}

static const RowMember ask_members[] = {ROW_AT_TEXT(LabelAsk, name), ROW_AT_END};

void
label_get(Forge *forge, Repo *repo, const char *name, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(LabelAsk), ask_members, run_get};

    row_run(forge, repo, &op, &(LabelAsk){.name = name}, done, data);
}

void
label_list(Forge *forge, Repo *repo, gint64 number, ForgePage page, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(LabelAsk), ask_members, run_list};

    row_run(forge, repo, &op, &(LabelAsk){.number = number, .page = page}, done, data);
}
