/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept goes when its time is over: the next expiry sets the timer.  A row goes after its file, never
 * before it. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "team/crew-keep.h"
#include "team/kept.h"

enum {
    SWEEP_MS = 10 * 60 * 1000, /* the clock may be set, and what could not be removed is tried again */
    SWEEP_MAX = 500,           /* rows at once */
    US_PER_MS = 1000,
};

static const RowColumn kept_columns[] = {
    {"id", ROW_TEXT, NULL}, {"path", ROW_TEXT, NULL}, {"box_id", ROW_TEXT, NULL}, {"kind", ROW_TEXT, NULL}};
static const RowTable kept_rows = {"what is kept", "kept", kept_columns, G_N_ELEMENTS(kept_columns)};

static bool
run_expired(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    g_autoptr(Json)
        over = row_all(job, &kept_rows, "expires_us < ? OR NOT " KEPT_IS_THERE " ORDER BY expires_us LIMIT ?",
                       DB_ARGS(db_int(job->now_us), db_int(SWEEP_MAX)), error);
    gint64 next_us = 0;

    if (over == NULL ||
        !row_ask_int(job, "SELECT COALESCE(MIN(expires_us), 0) FROM kept WHERE expires_us >= ?",
                     DB_ARGS(db_int(job->now_us)), &next_us, error))
        return false;
    *ret_value = json_pack("{s:O, s:I}", "over", over, "next_us", (json_int_t)next_us);
    return true;
}

static bool
run_drop(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const Json *ids = *(Json *const *)spec;
    size_t i;
    const Json *id;

    json_array_foreach(ids, i, id)
    {
        if (!db_exec(job->tx, "DELETE FROM kept WHERE id = ?", DB_ARGS(db_text(json_string_value(id))),
                     error))
            return false;
    }
    return true;
}

static bool
run_paths(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    *ret_value = row_all(job, &kept_rows, "path IS NOT NULL", DB_NO_ARGS, error);
    return *ret_value != NULL;
}

static void
on_box_gone(Box *box, const GError *error, void *data)
{
    /* Its own time ends it, if nothing else does. */
}

/* False: it is still there, and so must be its row. */
static bool
remove_kept(Crew *crew, const Json *kept)
{
    const char *path = row_text(kept, "path"), *box_id = row_text(kept, "box_id");
    Box *box = strcmp(row_text(kept, "kind"), "box") == 0 && crew->team->spec.boxes != NULL
                   ? box_host_find(crew->team->spec.boxes, box_id, NULL)
                   : NULL;
    g_autoptr(GError) error = NULL;

    if (box != NULL)
        box_kill(box, "expired", "coop", on_box_gone, NULL);
    if (path == NULL || kept_remove_file(crew->team, path, &error))
        return true;
    log_warn("crew", "what was kept cannot be removed", log_gerror(error));
    return false;
}

/* Archives whose row was never written.  Only before any is begun, so not after a restore. */
static void
remove_strays(Crew *crew, const Json *kept)
{
    g_autofree char *folder = g_build_filename(crew->team->spec.home, "kept", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(GHashTable) paths = g_hash_table_new(g_str_hash, g_str_equal);
    const char *name;
    size_t i;
    const Json *row;

    json_array_foreach(kept, i, row) g_hash_table_add(paths, (gpointer)(guintptr)row_text(row, "path"));
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename("kept", name, NULL);
        g_autofree char *full = g_build_filename(folder, name, NULL);

        if (!g_hash_table_contains(paths, path))
            (void)unlink(full); /* the next start tries again */
    }
}

static void
on_paths(Json *value, const GError *error, void *data)
{
    Crew *crew = data;

    if (!crew->closed && !crew->begun) {
        if (error == NULL && !crew->cleaned)
            remove_strays(crew, value);
        crew->cleaned = true;
        crew_swept(crew);
    }
    crew_unref(crew);
}

void
crew_sweep_by(Crew *crew, gint64 at_us)
{
    gint64 now_us = clock_wall_us(), ms;

    if (crew->sweep_us != 0 && crew->sweep_us <= at_us)
        return;
    crew->sweep_us = at_us;
    ms = CLAMP((at_us - now_us) / US_PER_MS + 1, 1, SWEEP_MS);
    loop_timer_set(crew->loop, &crew->timer, (guint)ms);
}

/* `next_us` 0: nothing else is kept, as far as is known. */
static void
swept(Crew *crew, gint64 next_us)
{
    static const RowOp op = {ROW_READS, 0, NULL, run_paths};
    gint64 latest_us = clock_wall_us() + (gint64)SWEEP_MS * US_PER_MS;

    crew_sweep_by(crew, next_us != 0 ? MIN(next_us, latest_us) : latest_us);
    if (!crew->begun)
        team_run(crew->team, &op, NULL, on_paths, crew_ref(crew));
}

static void
on_dropped(Json *value, const GError *error, void *data)
{
    Crew *crew = data;

    if (!crew->closed && error == NULL)
        crew_sweep(crew); /* there may be more */
    else if (!crew->closed)
        swept(crew, 0);
    crew_unref(crew);
}

static void
on_expired(Json *value, const GError *error, void *data)
{
    static const RowMember members[] = {{ROW_POINTER_JSON, 0}, ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(Json *), members, run_drop};
    g_autoptr(Json) gone = json_array();
    Crew *crew = data;
    size_t i;
    Json *one;

    json_array_foreach(json_object_get(value, "over"), i, one)
    {
        if (!crew->closed && remove_kept(crew, one))
            json_array_append(gone, json_object_get(one, "id"));
    }
    if (!crew->closed && json_array_size(gone) > 0)
        team_run(crew->team, &op, &gone, on_dropped, crew_ref(crew));
    else if (!crew->closed)
        swept(crew, row_int(value, "next_us"));
    crew_unref(crew);
}

static void
on_timer(LoopTimer *timer)
{
    Crew *crew = (Crew *)timer;

    crew->sweep_us = 0;
    crew_sweep(crew);
}

void
crew_sweep(Crew *crew)
{
    static const RowOp op = {ROW_READS, 0, NULL, run_expired};

    crew->timer.expired = on_timer;
    team_run(crew->team, &op, NULL, on_expired, crew_ref(crew));
}
