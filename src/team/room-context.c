/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a room: plan, assignments and knowledge, merged from what its members say.
 *
 * Texts of agents are nobody's orders, so that whoever reads sees whose word a thing is: each member of
 * plan and assignments has its source, each piece of knowledge its author.  An agent changes what agents
 * wrote, and what is said of itself, but never the words of people or of Coop. */
#include <string.h>

#include "base/err.h"
#include "base/id.h"
#include "team/room-private.h"

enum {
    NAME_MAX_CHARS = 100,
    FACT_MAX = 2048,
    EVIDENCE_MAX = 1024,
    EXPIRES_S = 30 * 24 * 3600,
    EXPIRES_S_MAX = 365 * 24 * 3600,
};

static const RowColumn fact_columns[] = {
    {"name", ROW_TEXT, NULL},      {"text", ROW_TEXT, NULL},        {"evidence", ROW_TEXT, NULL},
    {"author", ROW_TEXT, NULL},    {"by", ROW_TEXT, "author_name"}, {"seen_by", ROW_TEXT, NULL},
    {"created_us", ROW_INT, NULL}, {"expires_us", ROW_INT, NULL},
};
static const RowTable facts = {"knowledge", "knowledge", fact_columns, G_N_ELEMENTS(fact_columns)};

/* ---- reading ---- */

Json *
room_read_knowledge(RowJob *job, const char *room_id, GError **error)
{
    Json *all = row_all(job, &facts, "room_id = ? AND expires_us > ? ORDER BY created_us, name",
                        DB_ARGS(db_text(room_id), db_int(job->now_us)), error);
    size_t i;
    Json *fact;

    json_array_foreach(all, i, fact) room_show_times(fact);
    return all;
}

static bool
run_context(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const char *const *room_id = data;
    g_autoptr(Json) room = room_load(job, *room_id, error);

    if (room == NULL)
        return false;
    g_autoptr(Json) list = room_read_messages(
        job, row_text(room, "id"), &(RoomFilter){.after = -1, .limit = ROOM_CONTEXT_MESSAGES}, error);
    g_autoptr(Json) knowledge = list != NULL ? room_read_knowledge(job, row_text(room, "id"), error) : NULL;

    if (knowledge == NULL)
        return false;
    *ret_value = json_pack(
        "{s:O, s:O, s:O, s:O, s:O, s:O, s:O, s:O}", "id", json_object_get(room, "id"), "task_id",
        json_object_get(room, "task_id"), "version", json_object_get(room, "version"), "plan",
        json_object_get(room, "plan"), "assignments", json_object_get(room, "assignments"), "sources",
        json_object_get(room, "sources"), "messages", json_object_get(list, "items"), "knowledge", knowledge);
    return true;
}

void
room_context(Rooms *rooms, const char *room_id, TeamJsonFunc done, void *data)
{
    static const RowMember members[] = {{ROW_POINTER_TEXT, 0}, ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof room_id, members, run_context};

    team_run(rooms->team, &op, &room_id, done, data);
}

/* ---- knowledge ---- */

static bool
check_fact(RowJob *job, const char *name, const char *text, const char *evidence, GError **error)
{
    return row_check_text("the name of knowledge", name, NAME_MAX_CHARS, ROW_TEXT_NEEDED, error) &&
           row_check_text("the knowledge", text, FACT_MAX, ROW_TEXT_NEEDED, error) &&
           row_check_text("the evidence", evidence, EVIDENCE_MAX, ROW_TEXT_MAY_BE_EMPTY, error);
}

/* Whoever knew it before; an agent does not change the words of others than agents. */
static bool
may_replace(RowJob *job, const RoomActor *who, const char *room_id, const char *name, GError **error)
{
    gint64 foreign = 0;

    if (who->execution_id == NULL)
        return true;
    return row_ask_int(job,
                       "SELECT COUNT(*) FROM knowledge WHERE room_id = ? AND name = ? AND seen_by <> 'agent'",
                       DB_ARGS(db_text(room_id), db_text(name)), &foreign, error) &&
           (foreign == 0 || err_set(error, ERR_DENIED, "'%s' is not an agent's to change", name));
}

static bool
has_room(RowJob *job, const char *room_id, GError **error)
{
    gint64 n = 0;

    return db_exec(job->tx, "DELETE FROM knowledge WHERE room_id = ? AND expires_us <= ?",
                   DB_ARGS(db_text(room_id), db_int(job->now_us)), error) &&
           row_ask_int(job, "SELECT COUNT(*) FROM knowledge WHERE room_id = ?", DB_ARGS(db_text(room_id)), &n,
                       error) &&
           (n <= ROOM_KNOWLEDGE_MAX ||
            err_set(error, ERR_LIMIT, "a room has at most %d pieces of knowledge", ROOM_KNOWLEDGE_MAX));
}

static bool
remove_fact(RowJob *job, const char *room_id, const char *name, Json *changed, GError **error)
{
    json_array_append_new(changed, json_pack("{s:s, s:n}", "name", name, "text"));
    return db_exec(job->tx, "DELETE FROM knowledge WHERE room_id = ? AND name = ?",
                   DB_ARGS(db_text(room_id), db_text(name)), error);
}

typedef struct Fact {
    const char *name, *text, *evidence;
    gint64 expires_s;
} Fact;

static bool
store_fact(RowJob *job, const RoomActor *who, const Json *room, const Fact *f, Json *changed, GError **error)
{
    const char *room_id = row_text(room, "id");
    char id[ID_UUID_LEN + 1];

    id_new_uuid(id);
    if (!db_exec(
            job->tx,
            "INSERT INTO knowledge (id, room_id, name, text, evidence, author, author_name, seen_by, "
            "created_us, expires_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (room_id, name) DO "
            "UPDATE SET text = excluded.text, evidence = excluded.evidence, author = excluded.author, "
            "author_name = excluded.author_name, seen_by = excluded.seen_by, created_us = "
            "excluded.created_us, expires_us = excluded.expires_us",
            DB_ARGS(db_text(id), db_text(room_id), db_text(f->name), db_text(f->text), db_text(f->evidence),
                    db_text(who->actor), db_text(who->name), db_text(who->seen_by), db_int(job->now_us),
                    db_int(job->now_us + f->expires_s * G_USEC_PER_SEC)),
            error) ||
        !has_room(job, room_id, error))
        return false;
    g_autoptr(Json) fact = row_get(job, &facts, "room_id = ? AND name = ?",
                                   DB_ARGS(db_text(room_id), db_text(f->name)), error);

    if (fact == NULL)
        return false;
    room_show_times(fact);
    json_array_append(changed, fact);
    Json *told = json_pack("{s:s, s:s, s:O, s:O}", "knowledge", f->name, "text", f->text, "evidence",
                           json_object_get(fact, "evidence"), "expires_at",
                           json_object_get(fact, "expires_at"));

    return room_event(job, "knowledge.added", who, room, told, error);
}

bool
room_put_knowledge(RowJob *job, const RoomActor *who, const Json *room, Json *entry, Json *changed,
                   GError **error)
{
    Fact f = {.expires_s = EXPIRES_S};
    bool goes = json_is_null(json_object_get(entry, "text"));
    g_autoptr(Json) rest = json_copy(entry);
    const JsonField fields[] = {
        {.name = "name",
         .kind = JSON_KIND_STRING,
         .ret = &f.name,
         .required = true,
         .min = 1,
         .max = FACT_MAX},
        {.name = "text", .kind = JSON_KIND_STRING, .ret = &f.text, .max = FACT_MAX},
        {.name = "evidence", .kind = JSON_KIND_STRING, .ret = &f.evidence, .max = EVIDENCE_MAX},
        {.name = "expires_s", .kind = JSON_KIND_INT, .ret = &f.expires_s, .min = 1, .max = EXPIRES_S_MAX},
        {NULL},
    };

    if (goes)
        json_object_del(rest, "text");
    if (!json_read(rest, fields, error) || !check_fact(job, f.name, goes ? "-" : f.text, f.evidence, error) ||
        !may_replace(job, who, row_text(room, "id"), f.name, error))
        return false;
    return goes ? remove_fact(job, row_text(room, "id"), f.name, changed, error)
                : store_fact(job, who, room, &f, changed, error);
}
