/* SPDX-License-Identifier: Apache-2.0 */
/* Events become deliveries, one event after the other:
 *
 *     the rows it is about are read, the bodies made on the loop, and the deliveries written together
 *     with the place in the log (hook-make.c)
 *
 * Whatever fails in between leaves the place where it was: the cursor is thrown away, and the next tick
 * begins again behind the place.  A delivery that is there already is not made again. */
#include <string.h>

#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/hook-private.h"

typedef struct Step {
    Hooks *hooks;
    Repo *repo; /* NULL: no repository's hook wants it */
    bool for_squad, for_task;
    Event *event;
    Json *whole, *data;   /* the event, and its own part in it */
    Json *about;          /* what the rows say */
    char *default_branch; /* for the thread */
    HookPush *push;       /* NULL: none */
} Step;

static void
step_end(Step *step)
{
    step->hooks->busy = false;
    hooks_unref(step->hooks);
    g_clear_pointer(&step->repo, repo_unref);
    event_unref(step->event);
    json_decref(step->whole);
    json_decref(step->about);
    hook_push_free(step->push);
    g_free(step->default_branch);
    g_free(step);
}

/* From the place in the rows, at the next tick. */
static void
begin_again(Hooks *hooks, const GError *error)
{
    log_warn("hooks", "events wait for their deliveries", log_gerror(error));
    g_clear_pointer(&hooks->cursor, event_cursor_free);
    if (!hooks->stopped)
        loop_timer_set(hooks->spec.loop, &hooks->tick, HOOK_TICK_MS);
}

static void
on_made(Json *value, const GError *error, void *data)
{
    Step *step = data;
    Hooks *hooks = hooks_ref(step->hooks);

    step_end(step);
    if (error != NULL)
        begin_again(hooks, error);
    else if (!hooks->stopped) {
        hooks->passed = 0;
        hooks_send(hooks);
        hooks_follow(hooks);
    }
    hooks_unref(hooks);
}

/* ---- on the loop ---- */

static HookEvent
event_of(const Step *step)
{
    return (HookEvent){.name = step->event->kind,
                       .kind = step->event->kind,
                       .actor = step->event->actor,
                       .at_us = step->event->at_us,
                       .data = step->data,
                       .thread = json_object_get(step->about, "thread"),
                       .object = json_object_get(step->about, "object"),
                       .sender = json_object_get(step->about, "sender"),
                       .push = step->push,
                       .whole = step->whole,
                       .about = json_object_get(step->about, "team"),
                       .address = step->hooks->spec.address};
}

static void
render(const Step *step, HookOwnerKind owner, const HookEvent *event, Json *bodies)
{
    const HooksSpec *spec = &step->hooks->spec;
    g_autoptr(Json)
        body = spec->render[owner](owner == HOOK_OF_REPOSITORY ? step->repo : NULL, event, spec->ctx);
    g_autofree char *text = body != NULL ? json_encode(body) : NULL;

    if (text != NULL)
        json_array_append_new(bodies, json_pack("{s:i, s:s, s:s?, s:s}", "owner", (int)owner, "name",
                                                event->name, "action", event->action, "body", text));
}

static Json *
render_all(const Step *step)
{
    Json *bodies = json_array();
    HookEvent event = event_of(step);
    HookName name;
    size_t at = 0;

    if (step->for_squad)
        render(step, HOOK_OF_SQUAD, &event, bodies);
    if (step->for_task)
        render(step, HOOK_OF_TASK, &event, bodies);
    while (step->repo != NULL && hook_next_name(step->event->kind, step->data, &at, &name)) {
        event.name = name.name;
        event.action = name.action;
        render(step, HOOK_OF_REPOSITORY, &event, bodies);
    }
    return bodies;
}

/* True: nothing more is to be done for it. */
static bool
is_over(Step *step, const GError *error)
{
    if (error == NULL && !step->hooks->stopped)
        return false;
    Hooks *hooks = hooks_ref(step->hooks);

    step_end(step);
    if (error != NULL)
        begin_again(hooks, error);
    hooks_unref(hooks);
    return true;
}

/* What nobody wants after all. */
static void
pass_by(Step *step)
{
    Hooks *hooks = hooks_ref(step->hooks);

    step_end(step);
    hooks_follow(hooks);
    hooks_unref(hooks);
}

static void
write_deliveries(Step *step)
{
    g_autoptr(Json) bodies = render_all(step);

    if (json_array_size(bodies) == 0) {
        pass_by(step);
        return;
    }
    HookMake make = {step->event->seq, step->for_squad ? step->event->squad_id : NULL,
                     step->for_task ? step->event->task_id : NULL, bodies};

    row_run_in(step->hooks->spec.db, step->repo != NULL ? step->repo->id : "", &hook_make_op, &make, on_made,
               step);
}

static bool
read_push(GitRepo *git, void *data, GError **error)
{
    Step *step = data;
    HookPushSpec spec = {row_text(step->data, "before"), row_text(step->data, "after"), step->default_branch};

    g_clear_pointer(&step->push, hook_push_free);
    step->push = hook_push_read(git, &spec, error);
    return step->push != NULL;
}

/* What git cannot tell (any more) is left out. */
static void
on_push(void *data, const GError *error)
{
    Step *step = data;

    if (!is_over(step, NULL))
        write_deliveries(step);
}

static void
on_about(Json *about, const GError *error, void *data)
{
    Step *step = data;
    bool moved = step->repo != NULL && row_text(step->data, "before") != NULL &&
                 row_text(step->data, "ref") != NULL;
    RepoInfo info;

    if (is_over(step, error))
        return;
    step->about = json_incref(about);
    step->for_task = row_is(about, "for_task");
    step->for_squad = row_is(about, "for_squad");
    if (step->repo == NULL && !step->for_squad && !step->for_task) {
        pass_by(step);
        return;
    }
    if (!moved || step->hooks->spec.forge->work == NULL) {
        write_deliveries(step);
        return;
    }
    repo_info(step->repo, &info);
    step->default_branch = g_strdup(info.default_branch);
    forge_read(step->hooks->spec.forge, step->repo, "tell of a push", read_push, on_push, step, NULL);
}

static Repo *
repo_of(Hooks *hooks, const Event *event, const Json *data)
{
    /* What was told of elsewhere was told there. */
    const char *id = row_text(data, "source") == NULL ? row_text(data, "repository_id") : NULL;

    return id != NULL && hooks->spec.forge != NULL && hook_kind_is_told(event->kind) &&
                   g_hash_table_contains(hooks->watched, id)
               ? forge_find_id(hooks->spec.forge, id)
               : NULL;
}

/* False: nobody wants to hear of it. */
static bool
take(Hooks *hooks, Event *event)
{
    bool has_team = hooks->spec.look != NULL;
    bool for_squad = has_team && event->squad_id != NULL &&
                     g_hash_table_contains(hooks->watched, event->squad_id);
    bool for_task = has_team && event->task_id != NULL && hook_kind_is_progress(event->kind, NULL);

    if (!for_squad && !for_task && !hook_kind_is_told(event->kind))
        return false;
    g_autoptr(Json) whole = json_decode(event->json, event->json_len, NULL);
    Json *data = json_object_get(whole, "data");
    Repo *repo = repo_of(hooks, event, data);
    HookAbout about = {event->kind, event->actor, event->owner,    data, event->task_id, event->squad_id,
                       for_squad,   for_task,     hooks->spec.look};

    if (repo == NULL && !for_squad && !for_task)
        return false;
    Step *step = g_new0(Step, 1);

    *step = (Step){.hooks = hooks_ref(hooks),
                   .repo = repo != NULL ? repo_ref(repo) : NULL,
                   .for_squad = for_squad,
                   .for_task = for_task,
                   .event = event_ref(event),
                   .whole = g_steal_pointer(&whole),
                   .data = data};
    hooks->busy = true;
    row_run_in(hooks->spec.db, repo != NULL ? repo->id : "", &hook_about_op, &about, on_about, step);
    return true;
}

static void
on_place_written(Json *value, const GError *error, void *data)
{
    Hooks *hooks = data;

    hooks->busy = false;
    if (error != NULL)
        begin_again(hooks, error);
    else
        hooks_follow(hooks);
    hooks_unref(hooks);
}

/* Many that concern nobody, and a restart would read them all again. */
static void
move_place(Hooks *hooks, gint64 seq)
{
    hooks->busy = true;
    hooks->passed = 0;
    row_run_in(hooks->spec.db, "", &hook_make_op, &(HookMake){.seq = seq}, on_place_written,
               hooks_ref(hooks));
}

void
hooks_follow(Hooks *hooks)
{
    while (!hooks->stopped && !hooks->busy && hooks->cursor != NULL) {
        g_autoptr(Event) event = NULL;

        switch (event_cursor_next(hooks->cursor, &event)) {
        case EVENT_READY:
            if (!take(hooks, event) && ++hooks->passed >= HOOK_PLACE_EVERY)
                move_place(hooks, event->seq);
            break;
        case EVENT_WAIT:
            return;
        case EVENT_RESYNC:
            break; /* what retention took away is told to nobody */
        case EVENT_FAILED:
            g_clear_pointer(&hooks->cursor, event_cursor_free);
            loop_timer_set(hooks->spec.loop, &hooks->tick, HOOK_TICK_MS);
            return;
        }
    }
}

/* ---- beginning ---- */

typedef struct Beginning {
    Hooks *hooks;
    gint64 place;
    GPtrArray *ids;
} Beginning;

static bool
read_place(DbTx *tx, void *data, GError **error)
{
    Beginning *b = data;
    /* Before the first delivery there is no place yet: behind the oldest hook. */
    g_autoptr(DbRows) place = db_query(tx,
                                       "SELECT COALESCE((SELECT value FROM settings WHERE name = ?), (SELECT "
                                       "CAST(MIN(since_seq) AS TEXT) FROM hooks))",
                                       DB_ARGS(db_text(HOOK_PLACE)), error);
    bool more = false;

    if (place == NULL || !db_rows_next(place, &more, error))
        return false;
    if (more && !db_rows_is_null(place, 0))
        b->place = g_ascii_strtoll(db_rows_text(place, 0), NULL, 10);
    g_clear_pointer(&place, db_rows_free);
    g_autoptr(DbRows)
        rows = db_query(tx,
                        "SELECT DISTINCT COALESCE(repository_id, squad_id) FROM hooks WHERE active = 1 AND "
                        "task_id IS NULL",
                        DB_NO_ARGS, error);

    for (more = rows != NULL; more;) {
        if (!db_rows_next(rows, &more, error))
            return false;
        if (more)
            g_ptr_array_add(b->ids, g_strdup(db_rows_text(rows, 0)));
    }
    return rows != NULL;
}

static void
on_wake(void *data)
{
    hooks_follow(data);
}

static void
on_place(void *data, const GError *error)
{
    Beginning *b = data;
    Hooks *hooks = b->hooks;

    if (error != NULL) {
        begin_again(hooks, error);
        return;
    }
    if (hooks->stopped || hooks->cursor != NULL)
        return;
    for (guint i = 0; i < b->ids->len; i++)
        g_hash_table_add(hooks->watched, g_strdup(b->ids->pdata[i]));
    /* What retention has deleted is told to nobody, and is no reason to pass over what it left. */
    b->place = MAX(b->place, event_log_first_seq(hooks->spec.events) - 1);
    hooks->cursor = event_cursor_new(hooks->spec.events, NULL, b->place, on_wake, hooks);
    event_cursor_is_own(hooks->cursor);
    hooks_follow(hooks);
    hooks_send(hooks);
}

static void
beginning_free(gpointer data)
{
    Beginning *b = data;

    g_ptr_array_unref(b->ids);
    hooks_unref(b->hooks);
    g_free(b);
}

void
hooks_start(Hooks *hooks)
{
    Beginning *b = g_new0(Beginning, 1);

    /* What it had read is of another log, where a backup was restored. */
    g_clear_pointer(&hooks->cursor, event_cursor_free);
    *b = (Beginning){hooks_ref(hooks), event_log_last_seq(hooks->spec.events),
                     g_ptr_array_new_with_free_func(g_free)};
    db_read(hooks->spec.db, read_place, on_place, b, beginning_free);
}
