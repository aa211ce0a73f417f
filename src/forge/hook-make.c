/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of the follower: what an event is about is read, and deliveries are written together with the
 * place in the log. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "base/id.h"
#include "forge/check-private.h"
#include "forge/hook-private.h"
#include "forge/label-private.h"
#include "forge/pull-private.h"
#include "forge/review-private.h"
#include "forge/thread-private.h"

/* ---- what it is about ---- */

static Json *
load_object(RowJob *job, const Json *data, GError **error)
{
    gint64 id;

    if ((id = row_int(data, "line_comment_id")) > 0)
        return line_comment_load(job, id, "", error);
    if ((id = row_int(data, "review_id")) > 0)
        return review_load(job, row_int(data, "number"), id, "", error);
    if ((id = row_int(data, "comment_id")) > 0)
        return comment_load(job, id, error);
    if ((id = row_int(data, "check_id")) > 0)
        return check_run_load(job, id, error);
    if ((id = row_int(data, "status_id")) > 0)
        return status_load(job, id, error);
    if (row_text(data, "suite") != NULL)
        return row_get(job, &suite_table, "s.id = ? AND s.repository_id = ?",
                       DB_ARGS(db_text(row_text(data, "suite")), db_text(job->repository_id)), error);
    if (row_text(data, "label") != NULL)
        return label_load(job, row_text(data, "label"), error);
    err_set(error, ERR_NOT_FOUND, "the event is about itself");
    return NULL;
}

/* What is gone by now is told without it. */
static bool
put_if_there(Json *about, const char *name, Json *value, GError *failed, GError **error)
{
    if (value != NULL)
        return json_object_set_new(about, name, value) == 0;
    if (g_error_matches(failed, ERR_DOMAIN, ERR_NOT_FOUND)) {
        g_error_free(failed);
        return true;
    }
    g_propagate_error(error, failed);
    return false;
}

static bool
add_repository(RowJob *job, const HookAbout *spec, Json *about, GError **error)
{
    gint64 number = row_int(spec->data, "number");
    GError *no_thread = NULL, *no_object = NULL;
    Json *thread = number > 0 ? thread_load(job, number, NULL, &no_thread) : NULL;

    if (number > 0 && !put_if_there(about, "thread", thread, no_thread, error))
        return false;
    if (thread != NULL && strcmp(row_text(thread, "kind"), "pull") == 0 &&
        !pull_add_merge(job, thread, error))
        return false;
    Json *object = load_object(job, spec->data, &no_object);

    if (!put_if_there(about, "object", object, no_object, error))
        return false;
    Json *sender = people_json(job->people, spec->actor, error);

    if (sender == NULL)
        return false;
    json_object_set_new(about, "sender", sender);
    return true;
}

static bool
wants(const char *events, const char *name)
{
    g_autoptr(Json) list = json_decode(events, strlen(events), NULL);
    size_t i;
    Json *item;

    json_array_foreach(list, i, item)
    {
        if (strcmp(json_string_value(item), "*") == 0 || event_kind_matches(json_string_value(item), name))
            return true;
    }
    return false;
}

/* Most events are nobody's business: a squad's hooks name some kinds, and most tasks answer to nobody.  Nor
 * do they tell more than the squad's owner may read: anybody's box may say that it works for its tasks. */
static bool
squad_wants(RowJob *job, const HookAbout *spec, bool *ret_wants, GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(job->tx,
                        "SELECT h.events FROM hooks h JOIN squads s ON s.id = h.squad_id WHERE s.id = ? AND "
                        "h.active = 1 AND (s.user_id = '' OR ? IN (s.user_id, '" EVENT_FOR_ALL "'))",
                        DB_ARGS(db_text(spec->squad_id), db_text(spec->event_owner)), error);
    bool more = rows != NULL;

    *ret_wants = false;
    while (more && !*ret_wants) {
        if (!db_rows_next(rows, &more, error))
            return false;
        *ret_wants = more && wants(db_rows_text(rows, 0), spec->kind);
    }
    return rows != NULL;
}

static bool
add_team(RowJob *job, const HookAbout *spec, Json *about, GError **error)
{
    gint64 replies = 0;
    bool for_squad = false;

    if ((spec->for_task && !row_ask_int(job, "SELECT COUNT(*) FROM hooks WHERE task_id = ?",
                                        DB_ARGS(db_text(spec->task_id)), &replies, error)) ||
        (spec->for_squad && !squad_wants(job, spec, &for_squad, error)))
        return false;
    json_object_set_new(about, "for_task", json_boolean(replies > 0));
    json_object_set_new(about, "for_squad", json_boolean(for_squad));
    if (!for_squad && replies == 0)
        return true;
    Json *team = spec->look(job, spec->task_id, spec->squad_id, error);

    return team != NULL && json_object_set_new(about, "team", team) == 0;
}

static bool
run_about(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const HookAbout *spec = data;
    g_autoptr(Json) about = json_object();

    if ((job->repository_id[0] != '\0' && !add_repository(job, spec, about, error)) ||
        !add_team(job, spec, about, error))
        return false;
    *ret_value = g_steal_pointer(&about);
    return true;
}

static const RowMember about_members[] = {ROW_AT_TEXT(HookAbout, kind),
                                          ROW_AT_TEXT(HookAbout, actor),
                                          ROW_AT_TEXT(HookAbout, event_owner),
                                          ROW_AT_JSON(HookAbout, data),
                                          ROW_AT_TEXT(HookAbout, task_id),
                                          ROW_AT_TEXT(HookAbout, squad_id),
                                          ROW_AT_END};
const RowOp hook_about_op = {ROW_READS, sizeof(HookAbout), about_members, run_about};

/* ---- writing ---- */

typedef struct HookRow {
    gint64 id, created_us;
    const char *events;
    HookOwnerKind owner;
} HookRow;

/* Slack takes so many, and so long; the last one is for the end. */
static bool
may_send(RowJob *job, const HookRow *hook, const char *kind, bool *ret_may, GError **error)
{
    gint64 said = 0;
    bool ends = false;

    *ret_may = true;
    if (hook->owner != HOOK_OF_TASK)
        return true;
    if (!row_ask_int(job, "SELECT COUNT(*) FROM deliveries WHERE hook_id = ?", DB_ARGS(db_int(hook->id)),
                     &said, error))
        return false;
    (void)hook_kind_is_progress(kind, &ends);
    *ret_may = said < (ends ? HOOK_REPLIES_MAX : HOOK_REPLIES_MAX - 1) &&
               job->now_us - hook->created_us < HOOK_REPLY_LIFE_S * (gint64)G_USEC_PER_SEC;
    return true;
}

static bool
make_one(RowJob *job, const HookMake *spec, const HookRow *hook, const Json *item, GError **error)
{
    char guid[ID_UUID_LEN + 1];
    HookName name = {row_text(item, "name"), row_text(item, "action")};
    DeliveryNew new = {hook->id, spec->seq, guid, name, row_text(item, "body")};
    bool may = false;
    gint64 id;

    id_new_uuid(guid);
    if (row_int(item, "owner") != (gint64)hook->owner || !wants(hook->events, name.name))
        return true;
    return may_send(job, hook, name.name, &may, error) && (!may || delivery_insert(job, &new, &id, error));
}

static bool
make_for(RowJob *job, const HookMake *spec, const HookRow *hook, GError **error)
{
    size_t i;
    Json *item;

    json_array_foreach(spec->bodies, i, item)
    {
        if (!make_one(job, spec, hook, item, error))
            return false;
    }
    return true;
}

static bool
write_place(RowJob *job, gint64 seq, GError **error)
{
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, seq);

    return db_exec(job->tx,
                   "INSERT INTO settings (name, value) VALUES (?, ?) "
                   "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                   DB_ARGS(db_text(HOOK_PLACE), db_text(text)), error);
}

static bool
run_make(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const HookMake *spec = data;
    g_autofree char *sql = g_strdup_printf(
        "SELECT id, events, created_us, CASE WHEN repository_id IS NOT NULL THEN %d WHEN squad_id IS NOT "
        "NULL "
        "THEN %d ELSE %d END FROM hooks WHERE (repository_id = ? OR squad_id = ? OR task_id = ?) AND active "
        "= 1 AND since_seq < ?",
        HOOK_OF_REPOSITORY, HOOK_OF_SQUAD, HOOK_OF_TASK);
    g_autoptr(DbRows) rows = json_array_size(spec->bodies) > 0
                                 ? db_query(job->tx, sql,
                                            DB_ARGS(db_text(job->repository_id), db_text(spec->squad_id),
                                                    db_text(spec->task_id), db_int(spec->seq)),
                                            error)
                                 : NULL;
    bool more = rows != NULL;

    if (rows == NULL && json_array_size(spec->bodies) > 0)
        return false;
    while (more) {
        if (!db_rows_next(rows, &more, error))
            return false;
        HookRow hook = {0};

        if (more)
            hook = (HookRow){db_rows_int(rows, 0), db_rows_int(rows, 2), db_rows_text(rows, 1),
                             (HookOwnerKind)db_rows_int(rows, 3)};
        if (more && !make_for(job, spec, &hook, error))
            return false;
    }
    if (json_array_size(spec->bodies) > 0)
        FAILPOINT("hook-making");
    return write_place(job, spec->seq, error);
}

static const RowMember make_members[] = {ROW_AT_TEXT(HookMake, squad_id), ROW_AT_TEXT(HookMake, task_id),
                                         ROW_AT_JSON(HookMake, bodies), ROW_AT_END};
const RowOp hook_make_op = {ROW_WRITES, sizeof(HookMake), make_members, run_make};
