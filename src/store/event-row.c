/* SPDX-License-Identifier: Apache-2.0 */
#include "store/event-row.h"

#include <sodium.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "json/json.h"

/* One block holds the struct, the strings and the JSON: one allocation per event, and the
 * ring can count bytes. */
typedef struct Block {
    Event event; /* first: an Event * is a Block * */
    gatomicrefcount refs;
    size_t size;
    char text[];
} Block;

static Block *
block_of(Event *event)
{
    return (Block *)event;
}

Event *
event_ref(Event *event)
{
    g_atomic_ref_count_inc(&block_of(event)->refs);
    return event;
}

void
event_unref(Event *event)
{
    if (event != NULL && g_atomic_ref_count_dec(&block_of(event)->refs))
        g_free(event);
}

size_t
event_size(const Event *event)
{
    return ((const Block *)event)->size;
}

void
event_row_read(DbRows *rows, EventRow *ret_row)
{
    *ret_row = (EventRow){
        .seq = db_rows_int(rows, 0),
        .at_us = db_rows_int(rows, 1),
        .kind = db_rows_text(rows, 2),
        .actor = db_rows_text(rows, 3),
        .task_id = db_rows_text(rows, 4),
        .squad_id = db_rows_text(rows, 5),
        .box_id = db_rows_text(rows, 6),
        .execution_id = db_rows_text(rows, 7),
        .data = db_rows_text(rows, 8),
        .owner = db_rows_text(rows, 9),
    };
}

static void
hash_number(crypto_generichash_state *state, guint64 n)
{
    guint64 bytes = GUINT64_TO_LE(n);

    crypto_generichash_update(state, (const unsigned char *)&bytes, sizeof bytes);
}

static void
hash_text(crypto_generichash_state *state, const char *text)
{
    if (text == NULL) {
        hash_number(state, G_MAXUINT64);
        return;
    }
    hash_number(state, strlen(text));
    crypto_generichash_update(state, (const unsigned char *)text, strlen(text));
}

void
event_row_hash(const EventRow *row, const guint8 previous[EVENT_HASH_LEN], guint8 ret_hash[EVENT_HASH_LEN])
{
    const char *const fields[] = {row->kind,   row->actor,        row->task_id, row->squad_id,
                                  row->box_id, row->execution_id, row->data};
    crypto_generichash_state state;

    crypto_generichash_init(&state, NULL, 0, EVENT_HASH_LEN);
    crypto_generichash_update(&state, previous, EVENT_HASH_LEN);
    hash_number(&state, (guint64)row->seq);
    hash_number(&state, (guint64)row->at_us);
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        hash_text(&state, fields[i]);
    if (row->owner != NULL && row->owner[0] != '\0')
        hash_text(&state, row->owner);
    crypto_generichash_final(&state, ret_hash, EVENT_HASH_LEN);
}

static bool
is_plain(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p < 0x20 || *p > 0x7e || *p == '"' || *p == '\\')
            return false;
    }
    return true;
}

static void
put_member(GString *json, const char *name, const char *text)
{
    if (text == NULL)
        return;
    g_string_append_printf(json, "\"%s\":", name);
    if (is_plain(text)) {
        g_string_append_c(json, '"');
        g_string_append(json, text);
        g_string_append(json, "\",");
        return;
    }
    /* What was appended is valid; what somebody wrote into the file need not be. */
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    g_autoptr(Json) value = json_string(valid);
    g_autofree char *quoted = json_encode(value);
    g_string_append(json, quoted);
    g_string_append_c(json, ',');
}

static void
render(const EventRow *row, GString *json)
{
    char at[CLOCK_ISO_LEN + 1];

    clock_format_iso(row->at_us, at);
    g_string_append_printf(json, "{\"seq\":%" G_GINT64_FORMAT ",\"at\":\"%s\",", row->seq, at);
    put_member(json, "kind", row->kind);
    put_member(json, "actor", row->actor);
    put_member(json, "task_id", row->task_id);
    put_member(json, "squad_id", row->squad_id);
    put_member(json, "box_id", row->box_id);
    put_member(json, "execution_id", row->execution_id);
    g_string_append(json, "\"data\":");
    g_string_append(json, row->data);
    g_string_append_c(json, '}');
}

static const char *
put_text(char **at, const char *text, size_t len)
{
    char *start = *at;

    memcpy(start, text, len);
    start[len] = '\0';
    *at += len + 1;
    return start;
}

Event *
event_new(const EventRow *row)
{
    const char *const from[] = {row->kind,   row->actor,        row->task_id, row->squad_id,
                                row->box_id, row->execution_id, row->owner};
    const char *to[G_N_ELEMENTS(from)] = {NULL};
    g_autoptr(GString) json = g_string_sized_new(256);

    render(row, json);
    size_t size = sizeof(Block) + json->len + 1;
    for (size_t i = 0; i < G_N_ELEMENTS(from); i++)
        size += from[i] != NULL ? strlen(from[i]) + 1 : 0;

    Block *b = g_malloc(size);
    char *at = b->text;
    for (size_t i = 0; i < G_N_ELEMENTS(from); i++) {
        if (from[i] != NULL)
            to[i] = put_text(&at, from[i], strlen(from[i]));
    }
    b->event = (Event){
        .seq = row->seq,
        .at_us = row->at_us,
        .kind = to[0],
        .actor = to[1],
        .task_id = to[2],
        .squad_id = to[3],
        .box_id = to[4],
        .execution_id = to[5],
        .owner = to[6],
        .json = put_text(&at, json->str, json->len),
        .json_len = json->len,
    };
    b->size = size;
    g_atomic_ref_count_init(&b->refs);
    return &b->event;
}

bool
event_bounds_load(DbTx *tx, EventBounds *ret_bounds, GError **error)
{
    /* min() and max() in one SELECT would read the whole table. */
    g_autoptr(DbRows) rows = db_query(tx,
                                      "SELECT (SELECT seq FROM events ORDER BY seq LIMIT 1),"
                                      " (SELECT seq FROM events ORDER BY seq DESC LIMIT 1)",
                                      DB_NO_ARGS, error);
    bool row;

    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    bool empty = db_rows_is_null(rows, 0);
    *ret_bounds = (EventBounds){
        .first = empty ? 1 : db_rows_int(rows, 0),
        .last = empty ? 0 : db_rows_int(rows, 1),
    };
    return true;
}

#define ANCHOR_NAME "events.anchor"

bool
event_anchor_load(DbTx *tx, EventAnchor *ret_anchor, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx, "SELECT value FROM settings WHERE name = ?",
                                      DB_ARGS(db_text(ANCHOR_NAME)), error);
    bool row;
    size_t len = 0;

    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    *ret_anchor = (EventAnchor){0};
    if (!row)
        return true;
    char *hex;
    ret_anchor->seq = g_ascii_strtoll(db_rows_text(rows, 0), &hex, 10);
    if (*hex != ' ' ||
        sodium_hex2bin(ret_anchor->hash, EVENT_HASH_LEN, hex + 1, strlen(hex + 1), NULL, &len, NULL) != 0 ||
        len != EVENT_HASH_LEN)
        return err_set(error, ERR_INTERNAL, "the anchor of the event log is damaged");
    return true;
}

bool
event_anchor_save(DbTx *tx, const EventAnchor *anchor, GError **error)
{
    char hex[2 * EVENT_HASH_LEN + 1];

    sodium_bin2hex(hex, sizeof hex, anchor->hash, EVENT_HASH_LEN);
    g_autofree char *value = g_strdup_printf("%" G_GINT64_FORMAT " %s", anchor->seq, hex);
    return db_exec(tx,
                   "INSERT INTO settings (name, value) VALUES (?, ?)"
                   " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                   DB_ARGS(db_text(ANCHOR_NAME), db_text(value)), error);
}
