/* SPDX-License-Identifier: Apache-2.0 */
/* The end from outside: of an execution with its box, and of a box that nobody needs any more. */
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "team/crew-keep.h"

enum { MS_PER_S = 1000 };

static const char killed[] = "stopped";

/* ---- finding a box ---- */

typedef struct LeaseSearch {
    const char *task_id, *lease;
    Box *found;
} LeaseSearch;

static void
look_at(Box *box, void *data)
{
    LeaseSearch *search = data;
    BoxInfo info;

    box_info(box, &info);
    if (g_strcmp0(info.lease, search->lease) == 0 && g_strcmp0(info.task_id, search->task_id) == 0)
        search->found = box;
}

/* Borrowed; NULL: none lives. */
static Box *
find_leased(Crew *crew, const char *task_id, const char *lease)
{
    LeaseSearch search = {task_id, lease, NULL};

    if (crew->team->spec.boxes != NULL)
        box_host_each(crew->team->spec.boxes, NULL, look_at, &search);
    return search.found;
}

/* ---- stop ---- */

typedef struct Stop {
    Crew *crew;
    bool leaves_box;
    char *id, *reason;
    Json *row;
    DbDone done;
    void *data;
} Stop;

static void
stop_finish(Stop *stop, const GError *error)
{
    stop->done(stop->data, error);
    crew_unref(stop->crew);
    json_decref(stop->row);
    g_free(stop->id);
    g_free(stop->reason);
    g_free(stop);
}

/* False: the server is stopping, and it has ended. */
static bool
stop_goes_on(Stop *stop)
{
    g_autoptr(GError) error = NULL;

    if (!stop->crew->closed)
        return true;
    err_set(&error, ERR_CANCELLED, "the server is stopping");
    stop_finish(stop, error);
    return false;
}

static void
on_stopped(Json *value, const GError *error, void *data)
{
    stop_finish(data, error);
}

static void
on_killed(Box *box, const GError *error, void *data)
{
    Stop *stop = data;

    if (error != NULL)
        log_warn("crew", "a box cannot be ended", log_str("execution", stop->id), log_gerror(error));
    FAILPOINT("crew-stopped");
    if (!stop_goes_on(stop))
        return;
    crew_end(stop->crew,
             &(CrewEnd){.id = stop->id, .state = "stopped", .problem = stop->reason, .actor = "coop"},
             on_stopped, stop);
}

/* Nothing goes on in a box that is kept. */
static void
end_command(Json *row, void *data)
{
    Run *run = box_find_run(data, (guint32)row_int(row, "run"));

    if (run != NULL && !run_has_ended(run))
        run_signal(run, SIGKILL);
}

static void
on_row(Json *value, const GError *error, void *data)
{
    Stop *stop = data;

    /* Nobody else looks after it then. */
    if (error != NULL && err_kind(error) != ERR_NOT_FOUND && !stop->crew->closed)
        crew_start(stop->crew, stop->id);
    if (error != NULL || row_int(value, "ended_us") != 0) {
        stop_finish(stop, error);
        return;
    }
    if (!stop_goes_on(stop))
        return;
    stop->row = json_incref(value);
    Box *box = find_leased(stop->crew, row_text(value, "task_id"), row_text(value, "lease"));

    if (box != NULL && stop->leaves_box)
        box_each_command(box, end_command, box);
    if (box != NULL && !stop->leaves_box)
        box_kill(box, killed, "coop", on_killed, stop);
    else
        on_killed(NULL, NULL, stop);
}

/* A box that was asked for has come, or not. */
static void
on_leased(Shift *s, void *data)
{
    Stop *stop = data;

    if (stop_goes_on(stop))
        crew_load(stop->crew, stop->id, on_row, stop);
}

static void
stop_one(Crew *crew, const char *execution_id, bool leaves_box, const char *reason, DbDone done, void *data)
{
    Shift *s = g_hash_table_lookup(crew->shifts, execution_id);
    Stop *stop = g_new0(Stop, 1);
    bool leasing = s != NULL && s->leasing;

    *stop = (Stop){.crew = crew_ref(crew),
                   .leaves_box = leaves_box,
                   .id = g_strdup(execution_id),
                   .reason = g_strdup(reason),
                   .done = done,
                   .data = data};
    if (leasing) {
        s->leased = on_leased;
        s->leased_data = stop;
    }
    if (s != NULL)
        shift_let_go(s);
    if (!leasing)
        crew_load(crew, stop->id, on_row, stop);
}

void
crew_stop(Crew *crew, const char *execution_id, const char *reason, DbDone done, void *data)
{
    stop_one(crew, execution_id, false, reason, done, data);
}

void
crew_halt(Crew *crew, const char *execution_id, const char *reason, DbDone done, void *data)
{
    stop_one(crew, execution_id, true, reason, done, data);
}

/* ---- release ---- */

typedef struct Release {
    Crew *crew;
    Box *box;
    char *task_id, *box_id;
    DbDone done;
    void *data;
} Release;

static void
release_finish(Release *r, const GError *error)
{
    r->done(r->data, error);
    crew_unref(r->crew);
    box_unref(r->box);
    g_free(r->task_id);
    g_free(r->box_id);
    g_free(r);
}

static void
on_released(Box *box, const GError *error, void *data)
{
    release_finish(data, error);
}

/* Once the server stops, boxes are the next one's. */
static void
end_box(Release *r)
{
    FAILPOINT("crew-release");
    if (r->crew->closed) {
        release_finish(r, NULL);
        return;
    }
    box_kill(r->box, "released", "coop", on_released, r);
}

static KeptSpec
kept_of(const Release *r, const char *kind)
{
    return (KeptSpec){.id = r->box_id,
                      .task_id = r->task_id,
                      .box_id = r->box_id,
                      .kind = kind,
                      .keep_us = (gint64)r->crew->team->limits.keep_s * G_USEC_PER_SEC};
}

static void
on_files_row(Json *value, const GError *error, void *data)
{
    Release *r = data;

    if (error != NULL && !r->crew->closed) {
        KeptSpec kept = kept_of(r, "files");

        kept_failed(r->crew, &kept, error);
    }
    end_box(r);
}

static void
on_files(const char *path, guint64 bytes, const GError *error, void *data)
{
    Release *r = data;

    KeptSpec kept = kept_of(r, "files");

    if (error != NULL && !r->crew->closed)
        kept_failed(r->crew, &kept, error);
    if (error != NULL || r->crew->closed) {
        end_box(r);
        return;
    }
    kept.path = path;
    kept.bytes = (gint64)bytes;
    kept_put(r->crew, &kept, on_files_row, r);
}

static void
on_box_row(Json *value, const GError *error, void *data)
{
    release_finish(data, error);
}

static void
write_box(Release *r)
{
    BoxInfo info;

    box_info(r->box, &info);
    KeptSpec kept = kept_of(r, "box");

    kept.keep_us = MIN(kept.keep_us, info.expires_us - clock_wall_us());
    kept_put(r->crew, &kept, on_box_row, r);
}

/* One that cannot live longer is kept for as long as it can. */
static void
on_renewed(Box *box, const GError *error, void *data)
{
    Release *r = data;

    FAILPOINT("crew-paused");
    if (r->crew->closed)
        release_finish(r, NULL);
    else
        write_box(r);
}

static void
renew(Release *r)
{
    gint64 keep_ms = (gint64)r->crew->team->limits.keep_s * MS_PER_S;

    box_renew(r->box, MIN(keep_ms, (gint64)BOX_LIFE_MAX_MS), "coop", on_renewed, r);
}

/* A box that cannot be paused is ended: nobody would find it. */
static void
on_paused(Box *box, const GError *error, void *data)
{
    Release *r = data;

    if (error != NULL || r->crew->closed)
        end_box(r);
    else
        renew(r);
}

/* What is paused already was kept before, perhaps by a server that did not come to write the row. */
static void
keep_box(Release *r, const BoxInfo *info)
{
    if (info->state != BOX_PAUSED)
        box_pause(r->box, "coop", on_paused, r);
    else
        write_box(r);
}

void
crew_release(Crew *crew, const char *task_id, const char *lease, const char *keep, DbDone done, void *data)
{
    Box *box = find_leased(crew, task_id, lease);
    BoxInfo info;

    if (box == NULL) {
        done(data, NULL);
        return;
    }
    Release *r = g_new0(Release, 1);

    box_info(box, &info);
    *r = (Release){.crew = crew_ref(crew),
                   .box = box_ref(box),
                   .task_id = g_strdup(task_id),
                   .box_id = g_strdup(info.id),
                   .done = done,
                   .data = data};
    if (g_strcmp0(keep, "files") == 0)
        archive_start(crew, box, r->box_id, ".", on_files, r);
    else if (g_strcmp0(keep, "box") == 0)
        keep_box(r, &info);
    else
        end_box(r);
}

/* ---- agents by hand ---- */

static void
on_own_released(void *data, const GError *error)
{
    if (error != NULL)
        log_warn("crew", "a box cannot be ended", log_gerror(error));
}

void
crew_release_own(Crew *crew, const Json *row, const Json *end)
{
    const char *lease = row_text(row, "lease");
    bool well = strcmp(row_text(end, "state"), "done") == 0;

    if (g_str_has_prefix(lease, CREW_HAND_LEASE))
        crew_release(crew, row_text(row, "task_id"), lease, well ? NULL : "files", on_own_released, NULL);
}

typedef struct Leftover {
    Crew *crew;
    GPtrArray *boxes;
} Leftover;

static void
look_at_leftover(Box *box, void *data)
{
    const Leftover *left = data;
    BoxInfo info;

    box_info(box, &info);
    if (info.lease != NULL && g_str_has_prefix(info.lease, CREW_HAND_LEASE) &&
        !g_hash_table_contains(left->crew->shifts, info.lease + strlen(CREW_HAND_LEASE)))
        g_ptr_array_add(left->boxes, box_ref(box));
}

typedef struct LateRelease {
    Crew *crew;
    Box *box;
} LateRelease;

static void
on_leftover_killed(Box *box, const GError *error, void *data)
{
    on_own_released(NULL, error);
}

/* One that has not ended is about to be begun by its task's flow; whose row cannot be read is nobody's. */
static void
on_leftover(Json *value, const GError *error, void *data)
{
    g_autofree LateRelease *late = data;

    if (!late->crew->closed && error == NULL && row_int(value, "ended_us") != 0)
        crew_release_own(late->crew, value, value);
    else if (!late->crew->closed && error != NULL)
        box_kill(late->box, "released", "coop", on_leftover_killed, NULL);
    box_unref(late->box);
    crew_unref(late->crew);
}

static void
end_leftover(Crew *crew, Box *box)
{
    LateRelease *late = g_new(LateRelease, 1);
    BoxInfo info;

    box_info(box, &info);
    *late = (LateRelease){crew_ref(crew), box_ref(box)};
    crew_load(crew, info.lease + strlen(CREW_HAND_LEASE), on_leftover, late);
}

void
crew_end_leftovers(Crew *crew)
{
    g_autoptr(GPtrArray) boxes = g_ptr_array_new_with_free_func((GDestroyNotify)box_unref);
    Leftover left = {crew, boxes};

    if (crew->team->spec.boxes == NULL)
        return;
    box_host_each(crew->team->spec.boxes, NULL, look_at_leftover, &left);
    for (guint i = 0; i < boxes->len; i++)
        end_leftover(crew, boxes->pdata[i]);
}
