/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "team/room-private.h"

enum {
    UPDATE_BYTES_MAX = 128 * 1024,
    FACTS_AT_ONCE = 20,
    MEMBERS_AT_ONCE = 200,
    MEMBERS_MAX = 500, /* of plan, of assignments: each has a source beside it */
    MERGE_DEPTH_MAX = 16,
};

typedef struct Update {
    const char *room_id;
    RoomActor who;
    Json *update;
} Update;

/* RFC 7396: objects are merged member by member, null removes, all else replaces. */
static bool
merge(Json *target, Json *patch, guint depth, GError **error)
{
    const char *name;
    Json *value;

    if (depth > MERGE_DEPTH_MAX)
        return err_set(error, ERR_INVALID, "an update has at most %d levels", MERGE_DEPTH_MAX);
    json_object_foreach(patch, name, value)
    {
        if (json_is_null(value)) {
            json_object_del(target, name);
            continue;
        }
        if (!json_is_object(value)) {
            json_object_set(target, name, value);
            continue;
        }
        if (!json_is_object(json_object_get(target, name)))
            json_object_set_new(target, name, json_object());
        if (!merge(json_object_get(target, name), value, depth + 1, error))
            return false;
    }
    return true;
}

static Json *
source_json(const RoomActor *who, gint64 now_us)
{
    char at[CLOCK_ISO_LEN + 1];

    clock_format_iso(now_us, at);
    return json_pack("{s:s, s:s, s:s}", "by", who->name, "seen_by", who->seen_by, "at", at);
}

/* Every member of the part that changes gets its source; see room-context.c for who may. */
static bool
note_sources(RowJob *job, const RoomActor *who, Json *part_sources, const char *part, Json *patch,
             GError **error)
{
    const char *name;
    Json *value;

    json_object_foreach(patch, name, value)
    {
        const char *seen_by = row_text(json_object_get(part_sources, name), "seen_by");
        bool is_own = strcmp(part, "assignments") == 0 && strcmp(name, who->name) == 0;

        if (who->execution_id != NULL && !is_own && seen_by != NULL && strcmp(seen_by, "agent") != 0)
            return err_set(error, ERR_DENIED, "'%s' of %s is not an agent's to change", name, part);
        if (json_is_null(value))
            json_object_del(part_sources, name);
        else
            json_object_set_new(part_sources, name, source_json(who, job->now_us));
    }
    return true;
}

static bool
merge_part(RowJob *job, const RoomActor *who, Json *room, const char *part, Json *patch, GError **error)
{
    Json *sources = json_object_get(room, "sources");

    if (patch == NULL)
        return true;
    if (!json_is_object(patch))
        return err_set(error, ERR_INVALID, "'%s' must be an object", part);
    if (!json_is_object(json_object_get(sources, part)))
        json_object_set_new(sources, part, json_object());
    if (!note_sources(job, who, json_object_get(sources, part), part, patch, error) ||
        !merge(json_object_get(room, part), patch, 0, error))
        return false;
    if (json_object_size(json_object_get(room, part)) > MEMBERS_MAX)
        return err_set(error, ERR_INVALID, "%s of a room has at most %d members", part, MEMBERS_MAX);
    g_autofree char *text = json_encode(json_object_get(room, part));

    return strlen(text) <= ROOM_STATE_MAX ||
           err_set(error, ERR_INVALID, "%s of a room has at most %d bytes", part, ROOM_STATE_MAX);
}

static bool
store_parts(RowJob *job, const Json *room, GError **error)
{
    g_autofree char *plan = json_encode(json_object_get(room, "plan"));
    g_autofree char *assignments = json_encode(json_object_get(room, "assignments"));
    g_autofree char *sources = json_encode(json_object_get(room, "sources"));

    return db_exec(job->tx,
                   "UPDATE rooms SET plan = ?, assignments = ?, sources = ?, version = ?, updated_us = ? "
                   "WHERE id = ?",
                   DB_ARGS(db_text(plan), db_text(assignments), db_text(sources),
                           db_int(row_int(room, "version") + 1), db_int(job->now_us),
                           db_text(row_text(room, "id"))),
                   error);
}

static bool
put_all_knowledge(RowJob *job, const RoomActor *who, const Json *room, Json *entries, Json *changed,
                  GError **error)
{
    size_t i;
    Json *entry;

    json_array_foreach(entries, i, entry)
    {
        if (!json_is_object(entry))
            return err_set(error, ERR_INVALID, "'knowledge' is a list of objects");
        if (!room_put_knowledge(job, who, room, entry, changed, error))
            return false;
    }
    return true;
}

static bool
check(Json *update, Json **ret_plan, Json **ret_assignments, Json **ret_knowledge, GError **error)
{
    const JsonField fields[] = {
        {.name = "plan", .kind = JSON_KIND_OBJECT, .ret = ret_plan},
        {.name = "assignments", .kind = JSON_KIND_OBJECT, .ret = ret_assignments},
        {.name = "knowledge", .kind = JSON_KIND_ARRAY, .ret = ret_knowledge, .max = FACTS_AT_ONCE},
        {NULL},
    };
    g_autofree char *text = json_encode(update);

    if (strlen(text) > UPDATE_BYTES_MAX)
        return err_set(error, ERR_INVALID, "an update has at most %d bytes", UPDATE_BYTES_MAX);
    if (!json_read(update, fields, error))
        return false;
    if (json_object_size(*ret_plan) > MEMBERS_AT_ONCE || json_object_size(*ret_assignments) > MEMBERS_AT_ONCE)
        return err_set(error, ERR_INVALID, "an update changes at most %d members", MEMBERS_AT_ONCE);
    return json_object_size(update) > 0 ||
           err_set(error, ERR_INVALID, "an update has plan, assignments or knowledge");
}

static Json *
changed_parts(Json *update)
{
    Json *names = json_array(), *value;
    const char *name;

    json_object_foreach(update, name, value) json_array_append_new(names, json_string(name));
    return names;
}

static bool
run_update(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Update *u = data;
    g_autoptr(Json) room = NULL, changed = json_array(), shown = json_copy(u->update);
    Json *plan = NULL, *assignments = NULL, *knowledge = NULL;

    if (!check(u->update, &plan, &assignments, &knowledge, error))
        return false;
    room = room_load_for_writing(job, u->room_id, error);
    if (room == NULL || !merge_part(job, &u->who, room, "plan", plan, error) ||
        !merge_part(job, &u->who, room, "assignments", assignments, error) ||
        !store_parts(job, room, error) || !put_all_knowledge(job, &u->who, room, knowledge, changed, error))
        return false;
    gint64 version = row_int(room, "version") + 1;

    if (!room_event(
            job, "context.updated", &u->who, room,
            json_pack("{s:I, s:o}", "version", (json_int_t)version, "changed", changed_parts(u->update)),
            error))
        return false;
    if (knowledge != NULL)
        json_object_set(shown, "knowledge", changed);
    *ret_value = json_pack("{s:s, s:O, s:I, s:s, s:s, s:O}", "type", "context-update", "room_id",
                           json_object_get(room, "id"), "version", (json_int_t)version, "by", u->who.name,
                           "seen_by", u->who.seen_by, "data", shown);
    return true;
}

static void
broadcast(Rooms *rooms, Json *value)
{
    RoomFrame frame = {.n = 0};

    rooms_broadcast(rooms, row_text(value, "room_id"), &frame, json_incref(value), NULL);
}

void
room_update(Rooms *rooms, const char *room_id, const RoomActor *who, Json *update, TeamJsonFunc done,
            void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(Update, room_id), ROOM_AT_ACTOR(Update, who),
                                        ROW_AT_JSON(Update, update), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(Update), members, run_update};
    Update u = {.room_id = room_id, .who = *who, .update = update};

    rooms_write(rooms, who, &op, &u, broadcast, done, data);
}
