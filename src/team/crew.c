/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "team/crew-private.h"

/* ---- shifts ---- */

Shift *
shift_ref(Shift *s)
{
    s->refs++;
    return s;
}

void
shift_unref(void *shift)
{
    Shift *s = shift;

    if (--s->refs > 0)
        return;
    g_clear_pointer(&s->box, box_unref);
    g_clear_pointer(&s->row, json_decref);
    g_clear_pointer(&s->report, json_decref);
    g_clear_pointer(&s->result, json_decref);
    g_clear_pointer(&s->scans, json_decref);
    g_clear_pointer(&s->commits, json_decref);
    g_clear_pointer(&s->checks, g_ptr_array_unref);
    g_clear_pointer(&s->lines, adapter_lines_free);
    if (s->tail != NULL)
        g_string_free(s->tail, TRUE);
    if (s->err_tail != NULL)
        g_string_free(s->err_tail, TRUE);
    g_clear_error(&s->error);
    g_free(s->id);
    g_free(s->actor);
    g_free(s->workdir);
    g_free(s->state);
    g_free(s->problem);
    g_free(s);
}

void
shift_timer(Shift *s, guint ms)
{
    loop_timer_set(s->crew->loop, &s->timer, ms);
}

bool
shift_writes(const Shift *s)
{
    const char *kind = shift_text(s, "kind");

    return strcmp(kind, "review") != 0 && strcmp(kind, "test") != 0 && !shift_only_checks(s);
}

bool
shift_only_checks(const Shift *s)
{
    return strcmp(shift_text(s, "kind"), "check") == 0;
}

Repo *
shift_repo(const Shift *s)
{
    const char *id = shift_text(s, "repository_id");

    return id != NULL && s->crew->team->spec.forge != NULL ? forge_find_id(s->crew->team->spec.forge, id)
                                                           : NULL;
}

void
shift_told_once(Shift *s)
{
    void (*told)(void *data) = g_steal_pointer(&s->told);

    if (told != NULL)
        told(s->told_data);
}

void
shift_has_box(Shift *s, Box *box)
{
    BoxInfo info;

    s->box = box_ref(box);
    box_info(box, &info);
    g_hash_table_replace(s->crew->by_box, g_strdup(info.id), s);
}

static void
forget_box(Shift *s)
{
    BoxInfo info;

    if (s->box == NULL)
        return;
    box_info(s->box, &info);
    if (g_hash_table_lookup(s->crew->by_box, info.id) == s)
        g_hash_table_remove(s->crew->by_box, info.id);
}

void
shift_let_go(Shift *s)
{
    Crew *crew = s->crew;

    if (crew == NULL)
        return;
    loop_timer_cancel(crew->loop, &s->timer);
    forget_box(s);
    g_clear_pointer(&s->follower, run_follower_free);
    g_clear_pointer(&s->run, run_unref);
    shift_check_stop(s);
    shift_prepare_stop(s);
    s->crew = NULL;
    shift_told_once(s);
    g_hash_table_remove(crew->shifts, s->id);
}

static void on_loaded(Json *value, const GError *error, void *data);

static void
on_timer(LoopTimer *timer)
{
    Shift *s = (Shift *)timer;

    switch (s->phase) {
    case SHIFT_LEASING:
        shift_box_timer(s);
        break;
    case SHIFT_FINDING:
    case SHIFT_WORKING:
        shift_work_timer(s);
        break;
    case SHIFT_PROVING:
        shift_prove_timer(s);
        break;
    case SHIFT_LOADING:
        crew_load(s->crew, s->id, on_loaded, shift_ref(s));
        break;
    case SHIFT_PREPARING:
    case SHIFT_SCANNING:
        break;
    case SHIFT_ENDING:
        shift_end(s, NULL, NULL);
        break;
    }
}

/* ---- the end ---- */

static void
tell_ended(Crew *crew, const char *id, Json *value)
{
    FAILPOINT("crew-ended");
    if (crew->ended != NULL && !crew->closed)
        crew->ended(id, row_text(value, "task_id"), row_text(value, "state"), crew->ended_data);
}

static void
on_end(Json *value, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;
    Crew *crew = s->crew;

    if (crew == NULL)
        return;
    if (error != NULL) {
        log_warn("crew", "the end of an agent could not be written", log_str("execution", s->id),
                 log_gerror(error));
        shift_timer(s, CREW_BOX_WAIT_MS);
        return;
    }
    g_autofree char *id = g_strdup(s->id);

    shift_let_go(s);
    crew_release_own(crew, s->row, value);
    tell_ended(crew, id, value);
}

/* `state` NULL: as it was judged before. */
void
shift_end(Shift *s, const char *state, const char *problem)
{
    if (state != NULL) {
        g_free(s->state);
        g_free(s->problem);
        s->state = g_strdup(state);
        s->problem = g_strdup(problem);
    }
    s->phase = SHIFT_ENDING;
    FAILPOINT("crew-ending");
    crew_end(s->crew,
             &(CrewEnd){.id = s->id,
                        .state = s->state,
                        .problem = s->problem,
                        .actor = s->actor,
                        .result = s->result,
                        .report = s->report,
                        .commits = s->commits,
                        .memory_bytes = (gint64)s->memory_bytes},
             on_end, shift_ref(s));
}

void
shift_lost(Shift *s, const char *problem)
{
    shift_end(s, "lost", problem);
}

/* ---- the beginning ---- */

static bool
find_adapter(Shift *s)
{
    const char *name = shift_text(s, "adapter");

    if (name == NULL || strcmp(name, "coop") == 0)
        return true;
    s->adapter = g_hash_table_lookup(s->crew->adapters, name);
    return s->adapter != NULL;
}

void
shift_begin(Shift *s)
{
    const char *state = shift_text(s, "state");
    const char *box_id = shift_text(s, "box_id");
    BoxHost *boxes = s->crew->team->spec.boxes;

    if (!find_adapter(s)) {
        shift_end(s, "failed", "there is no adapter of that name");
        return;
    }
    if (boxes == NULL) {
        shift_lost(s, "this server has no boxes to work in");
        return;
    }
    if (strcmp(state, "queued") == 0 || strcmp(state, "starting") == 0) {
        shift_lease(s);
        return;
    }
    Box *box = box_id != NULL ? box_host_find(boxes, box_id, NULL) : NULL;

    if (box == NULL) {
        shift_lost(s, "its box is gone");
        return;
    }
    shift_has_box(s, box);
    shift_find(s);
}

static bool
has_ended(const Json *row)
{
    static const char *const ends[] = {"done", "failed", "lost", "stopped", NULL};

    return g_strv_contains(ends, row_text(row, "state"));
}

static void
on_loaded(Json *value, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;

    if (s->crew == NULL)
        return;
    if (error != NULL)
        log_warn("crew", "an agent could not be read", log_str("execution", s->id), log_gerror(error));
    if (error != NULL && err_kind(error) != ERR_NOT_FOUND) {
        shift_timer(s, CREW_BOX_WAIT_MS);
        return;
    }
    if (error != NULL || has_ended(value)) {
        shift_let_go(s);
        return;
    }
    s->row = json_incref(value);
    s->report = json_is_object(json_object_get(value, "report"))
                    ? json_incref(json_object_get(value, "report"))
                    : NULL;
    s->seen = (guint64)row_int(value, "seen");
    s->asking = (guint)row_int(value, "asks");
    s->workdir = g_strdup(row_text(value, "workdir"));
    const char *who = shift_text(s, "member_id");

    s->actor = g_strconcat("agent:", who != NULL ? who : shift_text(s, "agent"), NULL);
    shift_begin(s);
}

void
crew_start_told(Crew *crew, const char *execution_id, void (*told)(void *data), void *data)
{
    if (crew->closed || g_hash_table_contains(crew->shifts, execution_id)) {
        if (told != NULL)
            told(data);
        return;
    }
    Shift *s = g_new0(Shift, 1);

    *s = (Shift){.timer = {.expired = on_timer},
                 .refs = 1,
                 .crew = crew,
                 .id = g_strdup(execution_id),
                 .told = told,
                 .told_data = data};
    g_hash_table_insert(crew->shifts, s->id, s);
    crew_load(crew, execution_id, on_loaded, shift_ref(s));
}

void
crew_start(Crew *crew, const char *execution_id)
{
    crew_start_told(crew, execution_id, NULL, NULL);
}

bool
crew_has_adapter(Crew *crew, const char *name, GError **error)
{
    g_autoptr(GString) known = g_string_new("coop");
    GHashTableIter iter;
    gpointer key;

    if (strcmp(name, "coop") == 0 || g_hash_table_contains(crew->adapters, name))
        return true;
    g_hash_table_iter_init(&iter, crew->adapters);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        g_string_append_printf(known, ", %s", (const char *)key);
    return err_set(error, ERR_INVALID, "there is no adapter '%s'; there are %s", name, known->str);
}

/* ---- the crew ---- */

Crew *
crew_ref(Crew *crew)
{
    crew->refs++;
    return crew;
}

void
crew_unref(Crew *crew)
{
    if (--crew->refs > 0)
        return;
    g_hash_table_unref(crew->shifts);
    g_hash_table_unref(crew->by_box);
    g_ptr_array_unref(crew->archives);
    g_ptr_array_unref(crew->waiting);
    g_hash_table_unref(crew->adapters);
    g_clear_pointer(&crew->tool, g_bytes_unref);
    g_free(crew);
}

Crew *
team_crew(Team *team)
{
    return team->crew;
}

Crew *
crew_new(Team *team)
{
    Crew *crew = g_new0(Crew, 1);

    crew->refs = 1;
    crew->team = team;
    crew->loop = team->spec.loop;
    crew->shifts = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, shift_unref);
    crew->by_box = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    crew->archives = g_ptr_array_new();
    crew->waiting = g_ptr_array_new();
    crew->adapters = adapters_load(team->spec.agents_dir);
    return crew;
}

static void
on_open(Json *value, const GError *error, void *data)
{
    Crew *crew = data;
    size_t i;
    Json *id;

    if (!crew->closed && error != NULL) {
        log_warn("crew", "agents could not be read", log_gerror(error));
        crew_sweep_by(crew, clock_wall_us() + (gint64)CREW_BOX_WAIT_MS * 1000);
    }
    if (!crew->closed && error == NULL) {
        crew->begun = true;
        json_array_foreach(json_object_get(value, "ids"), i, id) crew_start(crew, json_string_value(id));
        crew_end_leftovers(crew);
    }
    crew_unref(crew);
}

void
crew_swept(Crew *crew)
{
    if (!crew->begun && !crew->closed)
        crew_list_open(crew, on_open, crew_ref(crew));
}

/* Their boxes stay, and what runs in them. */
static void
let_all_go(Crew *crew)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    GHashTableIter iter;
    gpointer s;

    g_hash_table_iter_init(&iter, crew->shifts);
    while (g_hash_table_iter_next(&iter, NULL, &s))
        g_ptr_array_add(all, s);
    for (guint i = 0; i < all->len; i++)
        shift_let_go(all->pdata[i]);
}

/* Once more when a backup was restored: what was under way may be in no row, or further on than its row. */
void
crew_begin(Crew *crew)
{
    let_all_go(crew);
    crew->begun = false;
    crew_follow(crew);
    crew_sweep(crew);
}

void
crew_free(Crew *crew)
{
    if (crew == NULL)
        return;
    crew->closed = true;
    crew_follow_end(crew);
    crew_wait_end(crew);
    crew_keep_end(crew);
    loop_timer_cancel(crew->loop, &crew->timer);
    let_all_go(crew);
    crew_unref(crew);
}

void
crew_listen(Crew *crew, CrewEnded ended, void *data)
{
    crew->ended = ended;
    crew->ended_data = data;
}
