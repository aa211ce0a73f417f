/* SPDX-License-Identifier: Apache-2.0 */
#include "team/room.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "team/room-private.h"

/* Agents whose rate is remembered; one that has not spoken for a minute is forgotten first. */
enum { RATES_MAX = 4096 };

static const char prefix[] = "room-";
static const RateLimit sends = {.per_second = ROOM_SENDS_PER_MIN / 60, .burst = ROOM_SENDS_PER_MIN};

const char *
room_priority_name(RoomPriority priority)
{
    static const char *const names[ROOM_PRIORITY_MAX] = {"low", "normal", "high", "urgent"};

    return names[priority];
}

bool
room_priority_parse(const char *name, RoomPriority *ret_priority)
{
    for (RoomPriority p = ROOM_LOW; p < ROOM_PRIORITY_MAX; p++) {
        if (strcmp(name, room_priority_name(p)) == 0) {
            *ret_priority = p;
            return true;
        }
    }
    return false;
}

char *
room_id_of(const char *task_id)
{
    return g_strconcat(prefix, task_id, NULL);
}

/* ---- life ---- */

Rooms *
rooms_new(Team *team)
{
    Rooms *rooms = g_new0(Rooms, 1);

    rooms->team = team;
    rooms->refs = 1;
    rooms->open = g_hash_table_new(g_str_hash, g_str_equal);
    rooms->rates = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return rooms;
}

Rooms *
rooms_ref(Rooms *rooms)
{
    rooms->refs++;
    return rooms;
}

void
rooms_unref(Rooms *rooms)
{
    if (--rooms->refs > 0)
        return;
    g_assert(g_hash_table_size(rooms->open) == 0);
    g_hash_table_unref(rooms->open);
    g_hash_table_unref(rooms->rates);
    g_free(rooms);
}

void
rooms_free(Rooms *rooms)
{
    rooms_close(rooms, "the server stops");
    rooms->team = NULL;
    rooms_unref(rooms);
}

Rooms *
team_rooms(Team *team)
{
    return team->rooms;
}

/* ---- how much an agent may say ---- */

static gboolean
is_rested(void *key, void *value, void *now_us)
{
    RateState state;

    rate_look(value, &sends, *(gint64 *)now_us, &state);
    return state.remaining >= state.limit;
}

bool
rooms_take(Rooms *rooms, const RoomActor *who, GError **error)
{
    gint64 now_us = clock_mono_us();
    guint wait_ms;

    if (who->execution_id == NULL)
        return true;
    RateBucket *bucket = g_hash_table_lookup(rooms->rates, who->execution_id);

    if (bucket == NULL) {
        if (g_hash_table_size(rooms->rates) >= RATES_MAX)
            g_hash_table_foreach_remove(rooms->rates, is_rested, &now_us);
        bucket = g_new0(RateBucket, 1);
        g_hash_table_insert(rooms->rates, g_strdup(who->execution_id), bucket);
    }
    return rate_take(bucket, &sends, now_us, &wait_ms) ||
           err_set(error, ERR_LIMIT, "an agent says at most %d things a minute; try again in %u s",
                   ROOM_SENDS_PER_MIN, wait_ms / 1000 + 1);
}

typedef struct Writing {
    Rooms *rooms; /* a reference */
    RoomTell tell;
    TeamJsonFunc done;
    void *data;
} Writing;

static void
on_written(Json *value, const GError *error, void *data)
{
    Writing *w = data;

    if (value != NULL)
        w->tell(w->rooms, value);
    if (w->done != NULL)
        w->done(value, error, w->data);
    rooms_unref(w->rooms);
    g_free(w);
}

void
rooms_write(Rooms *rooms, const RoomActor *who, const RowOp *op, const void *spec, RoomTell tell,
            TeamJsonFunc done, void *data)
{
    g_autoptr(GError) error = NULL;

    if (!rooms_take(rooms, who, &error)) {
        if (done != NULL)
            done(NULL, error, data);
        return;
    }
    Writing *w = g_new0(Writing, 1);

    *w = (Writing){.rooms = rooms_ref(rooms), .tell = tell, .done = done, .data = data};
    team_run(rooms->team, op, spec, on_written, w);
}

/* ---- rows ---- */

static const RowColumn room_columns[] = {
    {"id", ROW_TEXT, "'room-' || t.id"},
    {"task_id", ROW_TEXT, "t.id"},
    {"number", ROW_INT, "t.number"},
    {"squad_id", ROW_TEXT, "t.squad_id"},
    {"owner", ROW_TEXT, "t.owner"},
    {"plan", ROW_JSON, "COALESCE(r.plan, '{}')"},
    {"assignments", ROW_JSON, "COALESCE(r.assignments, '{}')"},
    {"sources", ROW_JSON, "COALESCE(r.sources, '{}')"},
    {"version", ROW_INT, "COALESCE(r.version, 0)"},
};
static const RowTable rooms_table = {"room", "tasks t LEFT JOIN rooms r ON r.task_id = t.id", room_columns,
                                     G_N_ELEMENTS(room_columns)};

Json *
room_load(RowJob *job, const char *room_id, GError **error)
{
    const char *task_id = g_str_has_prefix(room_id, prefix) ? room_id + strlen(prefix) : room_id;
    const char *digits = task_id[0] == '#' ? task_id + 1 : task_id;
    guint64 number = 0;

    if (!g_ascii_string_to_unsigned(digits, 10, 1, G_MAXINT64, &number, NULL))
        return row_get(job, &rooms_table, "t.id = ?", DB_ARGS(db_text(task_id)), error);
    return row_get(job, &rooms_table, "t.number = ?", DB_ARGS(db_int((gint64)number)), error);
}

bool
room_make(DbTx *tx, const char *task_id, const char *owner, gint64 now_us, GError **error)
{
    g_autofree char *id = room_id_of(task_id);

    return db_exec(tx,
                   "INSERT INTO rooms (id, task_id, owner, created_us, updated_us) VALUES (?, ?, ?, ?, ?) "
                   "ON CONFLICT (id) DO NOTHING",
                   DB_ARGS(db_text(id), db_text(task_id), db_text(owner), db_int(now_us), db_int(now_us)),
                   error);
}

Json *
room_load_for_writing(RowJob *job, const char *room_id, GError **error)
{
    g_autoptr(Json) room = room_load(job, room_id, error);

    if (room == NULL ||
        !room_make(job->tx, row_text(room, "task_id"), row_text(room, "owner"), job->now_us, error))
        return NULL;
    return g_steal_pointer(&room);
}

bool
room_event(RowJob *job, const char *kind, const RoomActor *who, const Json *room, Json *data, GError **error)
{
    json_object_set(data, "room_id", json_object_get(room, "id"));
    json_object_set_new(data, "name", json_string(who->name));
    json_object_set_new(data, "seen_by", json_string(who->seen_by));
    return team_event(job->tx,
                      &(TeamEvent){.kind = kind,
                                   .actor = who->actor,
                                   .task_id = row_text(room, "task_id"),
                                   .squad_id = row_text(room, "squad_id"),
                                   .execution_id = who->execution_id,
                                   .data = data},
                      error);
}

void
room_show_times(Json *row)
{
    static const struct {
        const char *from, *to;
    } names[] = {{"created_us", "at"}, {"expires_us", "expires_at"}};
    char text[CLOCK_ISO_LEN + 1];

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (json_object_get(row, names[i].from) == NULL)
            continue;
        clock_format_iso(row_int(row, names[i].from), text);
        json_object_set_new(row, names[i].to, json_string(text));
        json_object_del(row, names[i].from);
    }
}

/* ---- who may come in ---- */

static const RowColumn agent_columns[] = {
    {"execution_id", ROW_TEXT, "e.id"},
    {"task_id", ROW_TEXT, "e.task_id"},
    {"member_id", ROW_TEXT, "e.member_id"},
    {"agent", ROW_TEXT, "e.agent"},
    {"name", ROW_TEXT, "COALESCE(m.name, e.agent)"},
};
static const RowTable agents = {"room", "task_executions e LEFT JOIN squad_members m ON m.id = e.member_id",
                                agent_columns, G_N_ELEMENTS(agent_columns)};

static Json *
admit_agent(RowJob *job, const RoomAsk *ask, GError **error)
{
    g_autoptr(Json) agent = row_get(
        job, &agents,
        "e.box_id = ? AND e.state NOT IN ('done', 'failed', 'lost', 'stopped') ORDER BY e.created_us DESC",
        DB_ARGS(db_text(ask->box_id)), error);

    if (agent == NULL)
        return NULL;
    const char *task_id = row_text(agent, "task_id");
    g_autoptr(Json) room = room_load(job,
                                     ask->room_id != NULL ? ask->room_id
                                     : task_id != NULL    ? task_id
                                                          : "",
                                     error);

    if (room == NULL)
        return NULL;
    if (g_strcmp0(task_id, row_text(room, "task_id")) != 0) {
        err_set(error, ERR_NOT_FOUND, "there is no such room");
        return NULL;
    }
    const char *member = row_text(agent, "member_id");
    g_autofree char *actor = g_strdup_printf("agent:%s", member != NULL ? member : row_text(agent, "agent"));

    return json_pack("{s:O, s:O, s:O, s:s, s:O, s:O, s:s}", "id", json_object_get(room, "id"), "task_id",
                     json_object_get(room, "task_id"), "number", json_object_get(room, "number"), "actor",
                     actor, "name", json_object_get(agent, "name"), "execution_id",
                     json_object_get(agent, "execution_id"), "seen_by", "agent");
}

static Json *
admit_person(RowJob *job, const RoomAsk *ask, GError **error)
{
    g_autoptr(Json) room = room_load(job, ask->room_id, error);

    if (room == NULL)
        return NULL;
    if (ask->owner != NULL && strcmp(ask->owner, row_text(room, "owner")) != 0) {
        err_set(error, ERR_NOT_FOUND, "there is no such room");
        return NULL;
    }
    return json_pack("{s:O, s:O, s:O, s:s, s:s, s:n, s:s}", "id", json_object_get(room, "id"), "task_id",
                     json_object_get(room, "task_id"), "number", json_object_get(room, "number"), "actor",
                     ask->actor, "name", ask->name, "execution_id", "seen_by", "person");
}

static bool
run_admit(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const RoomAsk *ask = data;

    *ret_value = ask->box_id != NULL ? admit_agent(job, ask, error) : admit_person(job, ask, error);
    return *ret_value != NULL;
}

void
room_admit(Rooms *rooms, const RoomAsk *ask, TeamJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(RoomAsk, room_id), ROW_AT_TEXT(RoomAsk, owner),
                                        ROW_AT_TEXT(RoomAsk, box_id),  ROW_AT_TEXT(RoomAsk, actor),
                                        ROW_AT_TEXT(RoomAsk, name),    ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(RoomAsk), members, run_admit};

    team_run(rooms->team, &op, ask, done, data);
}

RoomActor
room_actor_of(const Json *admitted)
{
    return (RoomActor){
        .actor = row_text(admitted, "actor"),
        .name = row_text(admitted, "name"),
        .execution_id = row_text(admitted, "execution_id"),
        .seen_by = row_text(admitted, "seen_by"),
    };
}
