/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of what is kept, and room for them.
 *
 * All archives together have a bound.  What needs room asks in the transaction that would write its row: it
 * is told which are the oldest, removes their files, and comes back with their names, so that the rows go
 * after the files and in the same transaction as the new one comes.  Two that come at once each see what the
 * other has written. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "team/crew-keep.h"
#include "team/kept.h"

enum { GONE_MAX = 100 /* at once */ };

typedef struct PutSpec {
    KeptSpec kept;
    Json *gone; /* ids of rows whose files were removed for it */
    gint64 max;
} PutSpec;

/* ---- the transaction ---- */

static const RowColumn columns[] = {
    {"id", ROW_TEXT, NULL},
    {"task_id", ROW_TEXT, NULL},
    {"execution_id", ROW_TEXT, NULL},
    {"box_id", ROW_TEXT, NULL},
    {"path", ROW_TEXT, NULL},
    {"bytes", ROW_INT, NULL},
    {"squad_id", ROW_TEXT, "(SELECT t.squad_id FROM tasks t WHERE t.id = kept.task_id)"},
};
static const RowTable archives = {"what is kept", "kept", columns, G_N_ELEMENTS(columns)};

static bool
drop_one(RowJob *job, const char *id, const PutSpec *put, GError **error)
{
    g_autoptr(Json) rows = row_all(job, &archives, "id = ?", DB_ARGS(db_text(id)), error);
    const Json *row = json_array_get(rows, 0);

    if (rows == NULL || row == NULL)
        return rows != NULL;
    const TeamEvent event = {.kind = "kept.removed",
                             .actor = "coop",
                             .task_id = row_text(row, "task_id"),
                             .squad_id = row_text(row, "squad_id"),
                             .box_id = row_text(row, "box_id"),
                             .execution_id = row_text(row, "execution_id"),
                             .data = json_pack("{s:s, s:s, s:I, s:I, s:s}", "id", id, "reason", "room",
                                               "bytes", (json_int_t)row_int(row, "bytes"), "bytes_max",
                                               (json_int_t)put->max, "seen_by", "coop")};

    return team_event(job->tx, &event, error) &&
           db_exec(job->tx, "DELETE FROM kept WHERE id = ?", DB_ARGS(db_text(id)), error);
}

static bool
drop_gone(RowJob *job, const PutSpec *put, GError **error)
{
    size_t i;
    const Json *id;

    json_array_foreach(put->gone, i, id)
    {
        if (!drop_one(job, json_string_value(id), put, error))
            return false;
    }
    return true;
}

/* The oldest, as many as are in the way; none: there is room. */
static Json *
in_the_way(RowJob *job, const PutSpec *put, GError **error)
{
    gint64 over = 0;
    size_t n = 0;

    if (!row_ask_int(job, "SELECT COALESCE(SUM(bytes), 0) FROM kept WHERE path IS NOT NULL AND id <> ?",
                     DB_ARGS(db_text(put->kept.id)), &over, error))
        return NULL;
    over += put->kept.bytes - put->max;
    if (over <= 0 || put->kept.path == NULL)
        return json_array();
    Json *oldest = row_all(job, &archives, "path IS NOT NULL AND id <> ? ORDER BY created_us, id LIMIT ?",
                           DB_ARGS(db_text(put->kept.id), db_int(GONE_MAX)), error);

    while (n < json_array_size(oldest) && over > 0)
        over -= row_int(json_array_get(oldest, n++), "bytes");
    while (json_array_size(oldest) > n)
        json_array_remove(oldest, json_array_size(oldest) - 1);
    return oldest;
}

static bool
insert(RowJob *job, const KeptSpec *k, GError **error)
{
    return db_exec(job->tx,
                   "INSERT INTO kept (id, task_id, execution_id, box_id, kind, path, bytes, created_us, "
                   "expires_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET kind = "
                   "excluded.kind, path = excluded.path, bytes = excluded.bytes",
                   DB_ARGS(db_text(k->id), db_text(k->task_id), db_text(k->execution_id), db_text(k->box_id),
                           db_text(k->kind), db_text(k->path), db_int(k->bytes), db_int(job->now_us),
                           db_int(job->now_us + k->keep_us)),
                   error);
}

/* What is in the way; nothing: the row is written. */
static bool
run_put(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const PutSpec *put = spec;

    if (!drop_gone(job, put, error))
        return false;
    *ret_value = in_the_way(job, put, error);
    return *ret_value != NULL && (json_array_size(*ret_value) > 0 || insert(job, &put->kept, error));
}

/* ---- the files ---- */

typedef struct Put {
    Crew *crew;
    char *id, *task_id, *execution_id, *box_id, *kind, *path;
    gint64 bytes, keep_us;
    TeamJsonFunc done;
    void *data;
} Put;

static void ask(Put *p, Json *gone);

static void
put_end(Put *p, const GError *error)
{
    if (error == NULL && !p->crew->closed)
        crew_sweep_by(p->crew, clock_wall_us() + p->keep_us);
    p->done(NULL, error, p->data);
    crew_unref(p->crew);
    g_free(p->id);
    g_free(p->task_id);
    g_free(p->execution_id);
    g_free(p->box_id);
    g_free(p->kind);
    g_free(p->path);
    g_free(p);
}

static void
make_room(Put *p, const Json *oldest)
{
    g_autoptr(Json) gone = json_array();
    g_autoptr(GError) error = NULL;
    size_t i;
    Json *row;

    json_array_foreach(oldest, i, row)
    {
        if (!kept_remove_file(p->crew->team, row_text(row, "path"), &error))
            break;
        json_array_append(gone, json_object_get(row, "id"));
    }
    if (json_array_size(gone) == 0) {
        put_end(p, error);
        return;
    }
    log_info("crew", "what was kept longest makes room", log_int("archives", (gint64)json_array_size(gone)));
    FAILPOINT("crew-room");
    ask(p, gone);
}

static void
on_put(Json *value, const GError *error, void *data)
{
    Put *p = data;
    g_autoptr(GError) closed = NULL;

    if (error == NULL && json_array_size(value) > 0 && p->crew->closed)
        err_set(&closed, ERR_CANCELLED, "the server is stopping");
    if (error == NULL && closed == NULL && json_array_size(value) > 0)
        make_room(p, value);
    else
        put_end(p, error != NULL ? error : closed);
}

static void
ask(Put *p, Json *gone)
{
    static const RowMember members[] = {ROW_AT_TEXT(PutSpec, kept.id),
                                        ROW_AT_TEXT(PutSpec, kept.task_id),
                                        ROW_AT_TEXT(PutSpec, kept.execution_id),
                                        ROW_AT_TEXT(PutSpec, kept.box_id),
                                        ROW_AT_TEXT(PutSpec, kept.kind),
                                        ROW_AT_TEXT(PutSpec, kept.path),
                                        ROW_AT_JSON(PutSpec, gone),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(PutSpec), members, run_put};
    const PutSpec spec = {.kept = {.id = p->id,
                                   .task_id = p->task_id,
                                   .execution_id = p->execution_id,
                                   .box_id = p->box_id,
                                   .kind = p->kind,
                                   .path = p->path,
                                   .bytes = p->bytes,
                                   .keep_us = p->keep_us},
                          .gone = gone,
                          .max = p->crew->team->limits.kept_max};

    team_run(p->crew->team, &op, &spec, on_put, p);
}

void
kept_put(Crew *crew, const KeptSpec *kept, TeamJsonFunc done, void *data)
{
    Put *p = g_new0(Put, 1);

    *p = (Put){.crew = crew_ref(crew),
               .id = g_strdup(kept->id),
               .task_id = g_strdup(kept->task_id),
               .execution_id = g_strdup(kept->execution_id),
               .box_id = g_strdup(kept->box_id),
               .kind = g_strdup(kept->kind),
               .path = g_strdup(kept->path),
               .bytes = kept->bytes,
               .keep_us = kept->keep_us,
               .done = done,
               .data = data};
    ask(p, NULL);
}

/* ---- other rows ---- */

typedef struct BoxId {
    const char *id;
} BoxId;

static bool
run_forget(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    return db_exec(job->tx, "DELETE FROM kept WHERE kind = 'box' AND box_id = ?",
                   DB_ARGS(db_text(((const BoxId *)spec)->id)), error);
}

void
kept_forget_box(Crew *crew, const char *box_id)
{
    static const RowMember members[] = {ROW_AT_TEXT(BoxId, id), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(BoxId), members, run_forget};

    team_run(crew->team, &op, &(BoxId){box_id}, NULL, NULL);
}

typedef struct FailSpec {
    const char *task_id, *execution_id, *box_id, *problem;
} FailSpec;

static bool
run_failed(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const FailSpec *f = spec;

    return team_event(job->tx,
                      &(TeamEvent){.kind = "kept.failed",
                                   .actor = "coop",
                                   .task_id = f->task_id,
                                   .box_id = f->box_id,
                                   .execution_id = f->execution_id,
                                   .data = json_pack("{s:s, s:s}", "problem", f->problem, "seen_by", "coop")},
                      error);
}

void
kept_failed(Crew *crew, const KeptSpec *kept, const GError *why)
{
    static const RowMember members[] = {ROW_AT_TEXT(FailSpec, task_id), ROW_AT_TEXT(FailSpec, execution_id),
                                        ROW_AT_TEXT(FailSpec, box_id), ROW_AT_TEXT(FailSpec, problem),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(FailSpec), members, run_failed};

    log_warn("crew", "a box's files could not be kept", log_str("box", kept->box_id), log_gerror(why));
    team_run(crew->team, &op, &(FailSpec){kept->task_id, kept->execution_id, kept->box_id, why->message},
             NULL, NULL);
}
