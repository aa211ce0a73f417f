/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "team/room-private.h"

enum {
    NAME_MAX_CHARS = 100,
    EVENT_TEXT_MAX = 2048, /* of a text, in characters; the whole of it is in the room */
    PAGE_MAX = THREAD_PAGE_MAX,
    PAGE = 50,
};

static const RowColumn message_columns[] = {
    {"n", ROW_INT, NULL},        {"author", ROW_TEXT, NULL},       {"name", ROW_TEXT, "author_name"},
    {"seen_by", ROW_TEXT, NULL}, {"execution_id", ROW_TEXT, NULL}, {"priority", ROW_INT, NULL},
    {"kind", ROW_TEXT, NULL},    {"recipient", ROW_TEXT, NULL},    {"text", ROW_TEXT, NULL},
    {"data", ROW_JSON, NULL},    {"created_us", ROW_INT, NULL},
};
static const RowTable messages = {"message", "room_messages", message_columns, G_N_ELEMENTS(message_columns)};

static void
show_message(Json *message)
{
    json_object_set_new(message, "priority",
                        json_string(room_priority_name((RoomPriority)row_int(message, "priority"))));
    room_show_times(message);
}

/* ---- posting ---- */

typedef struct Post {
    const char *room_id;
    RoomActor who;
    RoomMessage message;
} Post;

static const RowMember post_members[] = {ROW_AT_TEXT(Post, room_id),
                                         ROOM_AT_ACTOR(Post, who),
                                         ROW_AT_TEXT(Post, message.text),
                                         ROW_AT_TEXT(Post, message.kind),
                                         ROW_AT_TEXT(Post, message.recipient),
                                         ROW_AT_JSON(Post, message.data),
                                         ROW_AT_END};

static bool
check(const RoomMessage *m, GError **error)
{
    static const char *const kinds[] = {"message", "status", "question", "answer", "finding", NULL};
    g_autofree char *data = m->data != NULL ? json_encode(m->data) : NULL;

    if (m->text != NULL && strlen(m->text) > ROOM_TEXT_MAX)
        return err_set(error, ERR_INVALID, "a message has at most %d bytes", ROOM_TEXT_MAX);
    if (data != NULL && strlen(data) > ROOM_DATA_MAX)
        return err_set(error, ERR_INVALID, "the data of a message has at most %d bytes", ROOM_DATA_MAX);
    return row_check_text("the message", m->text, ROOM_TEXT_MAX, ROW_TEXT_NEEDED, error) &&
           row_check_text("the recipient", m->recipient, NAME_MAX_CHARS, ROW_TEXT_MAY_BE_EMPTY, error) &&
           row_check_word("the kind", m->kind != NULL ? m->kind : "message", kinds, error);
}

static bool
insert(RowJob *job, const Post *post, const Json *room, gint64 *ret_n, GError **error)
{
    const RoomMessage *m = &post->message;
    const char *id = row_text(room, "id");
    g_autofree char *data = m->data != NULL ? json_encode(m->data) : NULL;
    const char *recipient = m->recipient != NULL && m->recipient[0] != '\0' ? m->recipient : NULL;

    return row_ask_int(job, "SELECT MAX(n) FROM room_messages WHERE room_id = ?", DB_ARGS(db_text(id)), ret_n,
                       error) &&
           db_exec(job->tx,
                   "INSERT INTO room_messages (room_id, n, author, author_name, execution_id, seen_by, "
                   "priority, kind, recipient, text, data, created_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                   "?, ?)",
                   DB_ARGS(db_text(id), db_int(++*ret_n), db_text(post->who.actor), db_text(post->who.name),
                           db_text(post->who.execution_id), db_text(post->who.seen_by), db_int(m->priority),
                           db_text(m->kind != NULL ? m->kind : "message"), db_text(recipient),
                           db_text(m->text), db_text(data), db_int(job->now_us)),
                   error) &&
           db_exec(job->tx, "DELETE FROM room_messages WHERE room_id = ? AND n <= ?",
                   DB_ARGS(db_text(id), db_int(*ret_n - ROOM_MESSAGES_KEPT)), error);
}

static bool
tell(RowJob *job, const Post *post, const Json *room, const Json *message, GError **error)
{
    g_autofree char *text = g_utf8_substring(post->message.text, 0,
                                             MIN(g_utf8_strlen(post->message.text, -1), EVENT_TEXT_MAX));

    return room_event(job, "message.posted", &post->who, room,
                      json_pack("{s:O, s:O, s:O, s:O, s:s}", "n", json_object_get(message, "n"), "priority",
                                json_object_get(message, "priority"), "kind",
                                json_object_get(message, "kind"), "recipient",
                                json_object_get(message, "recipient"), "text", text),
                      error);
}

static bool
run_post(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Post *post = data;
    g_autoptr(Json) room = NULL;
    gint64 n = 0;

    if (!check(&post->message, error))
        return false;
    room = room_load_for_writing(job, post->room_id, error);
    if (room == NULL || !insert(job, post, room, &n, error))
        return false;
    g_autoptr(Json) message = row_get(job, &messages, "room_id = ? AND n = ?",
                                      DB_ARGS(db_text(row_text(room, "id")), db_int(n)), error);
    if (message == NULL)
        return false;
    show_message(message);
    json_object_set(message, "room_id", json_object_get(room, "id"));
    if (!tell(job, post, room, message, error))
        return false;
    *ret_value = g_steal_pointer(&message);
    return true;
}

static void
broadcast(Rooms *rooms, Json *message)
{
    RoomFrame frame = {.n = row_int(message, "n"),
                       .recipient = row_text(message, "recipient"),
                       .name = row_text(message, "name")};

    (void)room_priority_parse(row_text(message, "priority"), &frame.priority);
    rooms_broadcast(rooms, row_text(message, "room_id"), &frame,
                    json_pack("{s:s, s:O}", "type", "message", "message", message), NULL);
}

void
room_post(Rooms *rooms, const char *room_id, const RoomActor *who, const RoomMessage *message,
          TeamJsonFunc done, void *data)
{
    static const RowOp op = {ROW_WRITES, sizeof(Post), post_members, run_post};
    Post post = {.room_id = room_id, .who = *who, .message = *message};

    rooms_write(rooms, who, &op, &post, broadcast, done, data);
}

/* ---- reading ---- */

static void
add_conditions(RowWhere *where, const char *room_id, const RoomFilter *filter)
{
    row_where_add(where, "room_id = ?", DB_ARGS(db_text(room_id)));
    row_where_add(where, "n > ?", DB_ARGS(db_int(MAX(filter->after, 0))));
    if (filter->at_least > ROOM_LOW)
        row_where_add(where, "priority >= ?", DB_ARGS(db_int(filter->at_least)));
    if (filter->for_name != NULL)
        row_where_add(where, "(recipient IS NULL OR recipient = ? OR author_name = ?)",
                      DB_ARGS(db_text(filter->for_name), db_text(filter->for_name)));
}

static void
reverse(Json *items)
{
    for (size_t i = 0, n = json_array_size(items); i < n / 2; i++) {
        g_autoptr(Json) first = json_incref(json_array_get(items, i));

        json_array_set(items, i, json_array_get(items, n - 1 - i));
        json_array_set(items, n - 1 - i, first);
    }
}

/* Without a place to begin at the newest are meant. */
Json *
room_read_messages(RowJob *job, const char *room_id, const RoomFilter *filter, GError **error)
{
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    guint limit = filter->limit > 0 ? MIN(filter->limit, (guint)PAGE_MAX) : (guint)PAGE;
    bool newest = filter->after < 0;
    size_t i;
    Json *message;

    add_conditions(&where, room_id, filter);
    g_autoptr(Json) list = row_list(job, &messages, &where, newest ? "n DESC" : "n",
                                    (ForgePage){.per_page = limit}, error);
    if (list == NULL)
        return NULL;
    Json *items = json_object_get(list, "items");

    if (newest)
        reverse(items);
    json_array_foreach(items, i, message) show_message(message);
    return json_pack("{s:O, s:b}", "items", items, "more",
                     (int)(row_int(list, "total") > (gint64)json_array_size(items)));
}

typedef struct Reading {
    const char *room_id;
    RoomFilter filter;
} Reading;

static bool
run_read(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Reading *r = data;
    g_autoptr(Json) room = room_load(job, r->room_id, error);

    *ret_value = room != NULL ? room_read_messages(job, row_text(room, "id"), &r->filter, error) : NULL;
    return *ret_value != NULL;
}

void
room_messages(Rooms *rooms, const char *room_id, const RoomFilter *filter, TeamJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(Reading, room_id), ROW_AT_TEXT(Reading, filter.for_name),
                                        ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(Reading), members, run_read};
    Reading reading = {.room_id = room_id, .filter = *filter};

    team_run(rooms->team, &op, &reading, done, data);
}
