/* SPDX-License-Identifier: Apache-2.0 */
#include "team/told.h"

#include "base/clock.h"
#include "base/err.h"
#include "team/task-private.h"

/* Only what is there: an object of these members of a row. */
static Json *
some_of(const Json *row, const char *const *names)
{
    Json *some = json_object();

    for (; *names != NULL; names++) {
        Json *value = json_object_get(row, *names);

        json_object_set(some, *names, value != NULL ? value : json_null());
    }
    return some;
}

/* `row` is taken; NULL with ERR_NOT_FOUND becomes null. */
static bool
put(Json *all, const char *name, Json *row, const char *const *names, GError *failed, GError **error)
{
    if (row == NULL && failed != NULL && err_kind(failed) != ERR_NOT_FOUND) {
        g_propagate_error(error, failed);
        return false;
    }
    json_object_set_new(all, name, row != NULL ? some_of(row, names) : json_null());
    json_decref(row);
    g_clear_error(&failed);
    return true;
}

Json *
team_told_look(RowJob *job, const char *task_id, const char *squad_id, GError **error)
{
    static const char *const of_squad[] = {"id", "name", NULL};
    static const char *const of_task[] = {"id",         "number",   "title",   "state",       "source",
                                          "repository", "branch",   "problem", "waiting_for", "pull_number",
                                          "pull_url",   "progress", NULL};
    g_autoptr(Json) all = json_object();
    GError *no_squad = NULL, *no_task = NULL;
    Json *squad = squad_id != NULL
                      ? row_get(job, &squad_table, "s.id = ?", DB_ARGS(db_text(squad_id)), &no_squad)
                      : NULL;

    if (!put(all, "squad", squad, of_squad, no_squad, error))
        return NULL;
    Json *task = task_id != NULL ? task_row(job, &(TaskRef){.id = task_id}, &no_task) : NULL;

    return put(all, "task", task, of_task, no_task, error) ? g_steal_pointer(&all) : NULL;
}

static Json *
ping_body(const HookEvent *event)
{
    static const char *const of_hook[] = {"id", "squad_id", "url", "events", "active", NULL};
    char at[CLOCK_ISO_LEN + 1];

    clock_format_iso(event->at_us, at);
    return json_pack("{s:s, s:s, s:s, s:o}", "kind", event->kind, "at", at, "actor", event->actor, "hook",
                     some_of(event->object, of_hook));
}

Json *
team_told_body(Repo *repo, const HookEvent *event, void *ctx)
{
    if (event->whole == NULL)
        return ping_body(event);
    Json *body = json_copy(event->whole);

    json_object_update(body, event->about);
    return body;
}
