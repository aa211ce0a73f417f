/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "store/event-writer.h"
#include "store/tx.h"
#include "json/json.h"

enum { EVENT_NAME_MAX = 256 }; /* actor and ids */

void
event_queue_free(GQueue *events)
{
    if (events != NULL)
        g_queue_free_full(events, (GDestroyNotify)event_unref);
}

void
event_writer_clear(EventWriter *w)
{
    event_writer_rewind(w, 0);
}

gint64
event_writer_mark(const EventWriter *w)
{
    const Event *newest = w->pending.tail != NULL ? w->pending.tail->data : NULL;

    return newest != NULL ? newest->seq : 0;
}

void
event_writer_rewind(EventWriter *w, gint64 mark)
{
    while (event_writer_mark(w) > mark) {
        Event *event = g_queue_pop_tail(&w->pending);

        w->pending_bytes -= event_size(event);
        event_unref(event);
    }
    w->known = false;
}

GQueue *
event_writer_steal(EventWriter *w)
{
    if (w->pending.length == 0)
        return NULL;
    GQueue *events = g_queue_new();
    *events = w->pending;
    g_queue_init(&w->pending);
    w->pending_bytes = 0;
    return events;
}

static void
keep_pending(EventWriter *w, Event *event)
{
    g_queue_push_tail(&w->pending, event);
    w->pending_bytes += event_size(event);
    while (w->pending.length > EVENT_RING_MAX ||
           (w->pending_bytes > EVENT_RING_BYTES_MAX && w->pending.length > 1)) {
        Event *oldest = g_queue_pop_head(&w->pending);

        w->pending_bytes -= event_size(oldest);
        event_unref(oldest);
    }
}

static bool
load_head(DbTx *tx, GError **error)
{
    EventWriter *w = tx->events;
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1", DB_NO_ARGS, error);
    bool row;
    size_t len;

    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    w->seq = 0;
    memset(w->hash, 0, EVENT_HASH_LEN);
    if (row) {
        const void *hash = db_rows_blob(rows, 1, &len);

        if (len != EVENT_HASH_LEN)
            return err_set(error, ERR_INTERNAL, "the newest event's hash is damaged");
        memcpy(w->hash, hash, EVENT_HASH_LEN);
        w->seq = db_rows_int(rows, 0);
    }
    w->known = true;
    return true;
}

static bool
check_name(const char *what, const char *text, GError **error)
{
    if (text != NULL && (strlen(text) > EVENT_NAME_MAX || !g_utf8_validate(text, -1, NULL)))
        return err_set(error, ERR_INVALID, "an event's %s must be UTF-8 of at most %d bytes", what,
                       EVENT_NAME_MAX);
    return true;
}

static bool
check_data(const char *data, bool *ret_says_who, GError **error)
{
    size_t len = strlen(data);

    if (len > EVENT_DATA_MAX)
        return err_set(error, ERR_LIMIT, "an event's data has more than %d bytes", EVENT_DATA_MAX);
    g_autoptr(Json) value = json_decode(data, len, error);
    if (value == NULL) {
        g_prefix_error(error, "an event's data: ");
        return false;
    }
    *ret_says_who = json_object_get(value, "seen_by") != NULL;
    return json_is_object(value) || err_set(error, ERR_INVALID, "an event's data must be a JSON object");
}

static bool
check_event(const EventSpec *e, bool *ret_says_who, GError **error)
{
    g_assert(event_kind_is_known(e->kind));
    g_assert(e->actor != NULL);
    return check_name("actor", e->actor, error) && check_name("task_id", e->task_id, error) &&
           check_name("squad_id", e->squad_id, error) && check_name("box_id", e->box_id, error) &&
           check_name("execution_id", e->execution_id, error) &&
           (e->data == NULL || check_data(e->data, ret_says_who, error));
}

static bool
insert(DbTx *tx, const EventRow *r, const guint8 hash[EVENT_HASH_LEN], GError **error)
{
    return db_exec(
        tx, "INSERT INTO events (" EVENT_COLUMNS ", hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        DB_ARGS(db_int(r->seq), db_int(r->at_us), db_text(r->kind), db_text(r->actor), db_text(r->task_id),
                db_text(r->squad_id), db_text(r->box_id), db_text(r->execution_id), db_text(r->data),
                db_text(r->owner), db_blob(hash, EVENT_HASH_LEN)),
        error);
}

typedef struct Labels {
    char *task, *squad, *execution, *owner;
} Labels;

static void
labels_clear(Labels *labels)
{
    g_free(labels->task);
    g_free(labels->squad);
    g_free(labels->execution);
    g_free(labels->owner);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Labels, labels_clear)

/* Who lives in the box, and what for.  A box is made for its agent before the agent's row names it, and ends
 * after the work has. */
static bool
find_execution(DbTx *tx, const EventSpec *e, Labels *labels, GError **error)
{
    g_autoptr(DbRows) rows = NULL;
    bool row;

    if (e->box_id == NULL || (e->execution_id != NULL && e->task_id != NULL))
        return true;
    rows = db_query(
        tx,
        "SELECT id, task_id FROM task_executions WHERE box_id = ? OR agent = (SELECT agent_id FROM "
        "sandboxes WHERE e2b_id = ?) ORDER BY created_us DESC LIMIT 1",
        DB_ARGS(db_text(e->box_id), db_text(e->box_id)), error);
    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    if (row && labels->execution == NULL)
        labels->execution = g_strdup(db_rows_text(rows, 0));
    if (row && labels->task == NULL)
        labels->task = g_strdup(db_rows_text(rows, 1));
    return true;
}

/* The box before all others: whoever makes one may name any agent or task in it. */
static bool
find_squad_and_owner(DbTx *tx, const EventSpec *e, Labels *labels, GError **error)
{
    const DbValue box = db_text(e->box_id), execution = db_text(labels->execution),
                  task = db_text(labels->task), squad = db_text(e->squad_id);
    g_autoptr(DbRows) rows = NULL;
    bool row;

    if (labels->task == NULL &&
        (e->owner != NULL || (e->box_id == NULL && labels->execution == NULL && e->squad_id == NULL))) {
        labels->owner = g_strdup(e->owner != NULL ? e->owner : "");
        return true;
    }
    rows = db_query(
        tx,
        "SELECT COALESCE(?, (SELECT squad_id FROM tasks WHERE id = ?)), COALESCE(?, (SELECT owner "
        "FROM sandboxes WHERE e2b_id = ?), (SELECT owner FROM task_executions WHERE id = ?), "
        "(SELECT owner FROM tasks WHERE id = ?), (SELECT user_id FROM squads WHERE id = ?), '')",
        DB_ARGS(squad, task, db_text(e->owner), box, execution, task, squad), error);
    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    if (labels->squad == NULL)
        labels->squad = g_strdup(db_rows_text(rows, 0));
    labels->owner = g_strdup(db_rows_text(rows, 1));
    return true;
}

/* What is about a task is about its squad too, and what is in an agent's box about its work and its task,
 * whoever tells it: those who follow these see all of it. */
static bool
find_labels(DbTx *tx, const EventSpec *e, Labels *ret, GError **error)
{
    *ret = (Labels){g_strdup(e->task_id), g_strdup(e->squad_id), g_strdup(e->execution_id), NULL};
    return find_execution(tx, e, ret, error) && find_squad_and_owner(tx, e, ret, error);
}

/* In valid JSON a line break can only stand between tokens; one line suits every stream. */
static char *
write_data(const EventSpec *e, bool says_who)
{
    const char *data = e->data != NULL ? e->data : "{}";

    if (says_who)
        return g_strdelimit(g_strdup(data), "\r\n", ' ');
    const char *rest = strchr(data, '{') + 1;
    const char *comma = rest[strspn(rest, " \t\r\n")] != '}' ? "," : "";

    return g_strdelimit(
        g_strconcat("{\"seen_by\":\"", event_seen_by(e->kind, e->actor), "\"", comma, rest, NULL), "\r\n",
        ' ');
}

bool
event_append(DbTx *tx, const EventSpec *event, gint64 *ret_seq, GError **error)
{
    EventWriter *w = tx->events;
    guint8 hash[EVENT_HASH_LEN];

    g_assert(w != NULL); /* a read job cannot append */
    g_auto(Labels) labels = {0};
    bool says_who = false;

    if (!check_event(event, &says_who, error) || (!w->known && !load_head(tx, error)) ||
        !find_labels(tx, event, &labels, error))
        return false;
    g_autofree char *data = write_data(event, says_who);
    EventRow row = {
        .seq = w->seq + 1,
        .at_us = clock_wall_us(),
        .kind = event->kind,
        .actor = event->actor,
        .task_id = labels.task,
        .squad_id = labels.squad,
        .box_id = event->box_id,
        .execution_id = labels.execution,
        .data = data,
        .owner = labels.owner,
    };
    event_row_hash(&row, w->hash, hash);
    if (!insert(tx, &row, hash, error))
        return false;
    w->seq = row.seq;
    memcpy(w->hash, hash, EVENT_HASH_LEN);
    keep_pending(w, event_new(&row));
    if (ret_seq != NULL)
        *ret_seq = row.seq;
    return true;
}
