/* SPDX-License-Identifier: Apache-2.0 */
/* Events become deliveries, one event after the other:
 *
 *     the rows it is about are read, the bodies made on the loop, and the deliveries written together
 *     with the place in the log
 *
 * Whatever fails in between leaves the place where it was: the cursor is thrown away, and the next tick
 * begins again behind the place.  A delivery that is there already is not made again. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "base/id.h"
#include "base/log.h"
#include "forge/check-private.h"
#include "forge/forge-private.h"
#include "forge/hook-private.h"
#include "forge/label-private.h"
#include "forge/pull-private.h"
#include "forge/review-private.h"
#include "forge/thread-private.h"

static const char place_name[] = "hooks.seq";

typedef struct Step {
    Hooks *hooks;
    Repo *repo;
    Event *event;
    Json *data;
    Json *about;          /* what the rows say */
    char *default_branch; /* for the thread */
    HookPush *push;       /* NULL: none */
} Step;

static void
step_end(Step *step)
{
    step->hooks->busy = false;
    hooks_unref(step->hooks);
    repo_unref(step->repo);
    event_unref(step->event);
    json_decref(step->data);
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
        loop_timer_set(hooks->spec.forge->spec.loop, &hooks->tick, HOOK_TICK_MS);
}

/* ---- what it is about ---- */

typedef struct AboutSpec {
    const char *actor;
    Json *data;
} AboutSpec;

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
run_about(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const AboutSpec *spec = data;
    g_autoptr(Json) about = json_object();
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
    *ret_value = g_steal_pointer(&about);
    return true;
}

/* ---- writing ---- */

typedef struct MakeSpec {
    gint64 seq;
    Json *bodies; /* [{name, action, body}] */
} MakeSpec;

static bool
wants(const char *events, const char *name)
{
    g_autoptr(Json) list = json_decode(events, strlen(events), NULL);
    size_t i;
    Json *item;

    json_array_foreach(list, i, item)
    {
        if (strcmp(json_string_value(item), "*") == 0 || strcmp(json_string_value(item), name) == 0)
            return true;
    }
    return false;
}

static bool
make_for(RowJob *job, const MakeSpec *spec, gint64 hook_id, const char *events, GError **error)
{
    size_t i;
    Json *item;

    json_array_foreach(spec->bodies, i, item)
    {
        char guid[ID_UUID_LEN + 1];
        HookName name = {row_text(item, "name"), row_text(item, "action")};
        DeliveryNew new = {hook_id, spec->seq, guid, name, row_text(item, "body")};
        gint64 id;

        id_new_uuid(guid);
        if (wants(events, name.name) && !delivery_insert(job, &new, &id, error))
            return false;
    }
    return true;
}

static bool
run_make(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const MakeSpec *spec = data;
    g_autofree char *seq = g_strdup_printf("%" G_GINT64_FORMAT, spec->seq);
    g_autoptr(DbRows) rows = db_query(
        job->tx, "SELECT id, events FROM hooks WHERE repository_id = ? AND active = 1 AND since_seq < ?",
        DB_ARGS(db_text(job->repository_id), db_int(spec->seq)), error);
    bool more = true;

    while (rows != NULL && more) {
        if (!db_rows_next(rows, &more, error))
            return false;
        if (more && !make_for(job, spec, db_rows_int(rows, 0), db_rows_text(rows, 1), error))
            return false;
    }
    FAILPOINT("hook-making");
    return rows != NULL && db_exec(job->tx,
                                   "INSERT INTO settings (name, value) VALUES (?, ?) "
                                   "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                                   DB_ARGS(db_text(place_name), db_text(seq)), error);
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
        hooks_send(hooks);
        hooks_follow(hooks);
    }
    hooks_unref(hooks);
}

/* ---- on the loop ---- */

static Json *
render_all(const Step *step)
{
    const Json *about = step->about;
    const HooksSpec *spec = &step->hooks->spec;
    Json *bodies = json_array();
    HookName name;
    size_t at = 0;

    while (hook_next_name(step->event->kind, step->data, &at, &name)) {
        HookEvent event = {.name = name.name,
                           .action = name.action,
                           .kind = step->event->kind,
                           .actor = step->event->actor,
                           .at_us = step->event->at_us,
                           .data = step->data,
                           .thread = json_object_get(about, "thread"),
                           .object = json_object_get(about, "object"),
                           .sender = json_object_get(about, "sender"),
                           .push = step->push};
        g_autoptr(Json) body = spec->render(step->repo, &event, spec->ctx);
        g_autofree char *text = body != NULL ? json_encode(body) : NULL;

        if (text != NULL)
            json_array_append_new(bodies, json_pack("{s:s, s:s?, s:s}", "name", name.name, "action",
                                                    name.action, "body", text));
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

static void
write_deliveries(Step *step)
{
    static const RowMember members[] = {ROW_AT_JSON(MakeSpec, bodies), ROW_AT_END};
    static const RowOp make = {ROW_WRITES, sizeof(MakeSpec), members, run_make};
    g_autoptr(Json) bodies = render_all(step);

    row_run(step->hooks->spec.forge, step->repo, &make, &(MakeSpec){step->event->seq, bodies}, on_made, step);
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
    bool moved = row_text(step->data, "before") != NULL && row_text(step->data, "ref") != NULL;
    RepoInfo info;

    if (is_over(step, error))
        return;
    step->about = json_incref(about);
    if (!moved || step->hooks->spec.forge->work == NULL) {
        write_deliveries(step);
        return;
    }
    repo_info(step->repo, &info);
    step->default_branch = g_strdup(info.default_branch);
    forge_read(step->hooks->spec.forge, step->repo, "tell of a push", read_push, on_push, step, NULL);
}

/* False: nobody wants to hear of it. */
static bool
take(Hooks *hooks, Event *event)
{
    static const RowMember members[] = {ROW_AT_TEXT(AboutSpec, actor), ROW_AT_JSON(AboutSpec, data),
                                        ROW_AT_END};
    static const RowOp read_about = {ROW_READS, sizeof(AboutSpec), members, run_about};
    g_autoptr(Json) whole = json_decode(event->json, event->json_len, NULL);
    Json *fact = json_object_get(whole, "data");
    /* What was told of elsewhere was told there. */
    const char *id = row_text(fact, "source") == NULL ? row_text(fact, "repository_id") : NULL;
    Repo *repo = id != NULL && g_hash_table_contains(hooks->watched, id)
                     ? forge_find_id(hooks->spec.forge, id)
                     : NULL;

    if (repo == NULL)
        return false;
    Step *step = g_new0(Step, 1);

    *step = (Step){.hooks = hooks_ref(hooks),
                   .repo = repo_ref(repo),
                   .event = event_ref(event),
                   .data = json_incref(fact)};
    hooks->busy = true;
    row_run(hooks->spec.forge, repo, &read_about, &(AboutSpec){event->actor, fact}, on_about, step);
    return true;
}

void
hooks_follow(Hooks *hooks)
{
    while (!hooks->stopped && !hooks->busy && hooks->cursor != NULL) {
        g_autoptr(Event) event = NULL;

        switch (event_cursor_next(hooks->cursor, &event)) {
        case EVENT_READY:
            if (g_hash_table_size(hooks->watched) > 0)
                (void)take(hooks, event); /* false: on to the next */
            break;
        case EVENT_WAIT:
            return;
        case EVENT_RESYNC:
            break; /* what retention took away is told to nobody */
        case EVENT_FAILED:
            g_clear_pointer(&hooks->cursor, event_cursor_free);
            loop_timer_set(hooks->spec.forge->spec.loop, &hooks->tick, HOOK_TICK_MS);
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
                                       DB_ARGS(db_text(place_name)), error);
    bool more = false;

    if (place == NULL || !db_rows_next(place, &more, error))
        return false;
    if (more && !db_rows_is_null(place, 0))
        b->place = g_ascii_strtoll(db_rows_text(place, 0), NULL, 10);
    g_clear_pointer(&place, db_rows_free);
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT DISTINCT repository_id FROM hooks WHERE active = 1", DB_NO_ARGS, error);

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
    b->place = MAX(b->place, event_log_first_seq(hooks->spec.forge->spec.events) - 1);
    hooks->cursor = event_cursor_new(hooks->spec.forge->spec.events, &(EventFilter){.kinds = hook_kinds()},
                                     b->place, on_wake, hooks);
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
    *b = (Beginning){hooks_ref(hooks), event_log_last_seq(hooks->spec.forge->spec.events),
                     g_ptr_array_new_with_free_func(g_free)};
    db_read(hooks->spec.forge->spec.db, read_place, on_place, b, beginning_free);
}
