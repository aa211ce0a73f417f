/* SPDX-License-Identifier: Apache-2.0 */
#include "door/ledger.h"

#include <string.h>

#include "base/log.h"
#include "store/events.h"

enum { RETRY_MS = 1000 };

static const char setting[] = "door.facts"; /* INSTANCE:NUMBER of the last one written */

/* One transaction; its content is the thread's until it is done. */
typedef struct Batch {
    DoorLedger *ledger; /* a reference */
    char *instance;
    GPtrArray *facts; /* Json* */
    guint64 upto;
    guint64 visit;
} Batch;

struct DoorLedger {
    guint refs; /* the owner, and the batch under way */
    bool freed;
    DoorLedgerSpec spec;
    char *instance;
    guint64 visit;   /* counts door_ledger_begin() */
    GPtrArray *held; /* Json*: not yet in a batch */
    bool under_way;
    LoopTimer retry;
};

static void write_held(DoorLedger *ledger);

static void
ledger_unref(DoorLedger *ledger)
{
    if (--ledger->refs > 0)
        return;
    g_ptr_array_unref(ledger->held);
    g_free(ledger->instance);
    g_free(ledger);
}

static GPtrArray *
facts_new(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)json_decref);
}

static guint64
number_of(const Json *fact)
{
    return (guint64)json_integer_value(json_object_get(fact, "n"));
}

/* ---- in the store's thread ---- */

static bool
read_last(DbTx *tx, const char *instance, guint64 *ret_last, GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT value FROM settings WHERE name = ?", DB_ARGS(db_text(setting)), error);
    bool row;
    size_t n = strlen(instance);

    *ret_last = 0;
    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    const char *text = row ? db_rows_text(rows, 0) : NULL;

    if (text != NULL && strncmp(text, instance, n) == 0 && text[n] == ':')
        *ret_last = g_ascii_strtoull(text + n + 1, NULL, 10);
    return true;
}

static bool
write_last(DbTx *tx, const Batch *batch, GError **error)
{
    g_autofree char *value = g_strdup_printf("%s:%" G_GUINT64_FORMAT, batch->instance, batch->upto);

    return db_exec(tx,
                   "INSERT INTO settings (name, value) VALUES (?, ?) "
                   "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                   DB_ARGS(db_text(setting), db_text(value)), error);
}

static const char *
text_of(const Json *fact, const char *name)
{
    return json_string_value(json_object_get(fact, name));
}

static bool
write_fact(DbTx *tx, Json *fact, GError **error)
{
    static const char *const not_data[] = {"say", "n", "kind", "box", "task", "squad"};
    const char *kind = text_of(fact, "kind");

    /* A door of another version may know more than we do. */
    if (kind == NULL || !event_kind_is_known(kind))
        return true;
    g_autoptr(Json) data = json_copy(fact);

    for (size_t i = 0; i < G_N_ELEMENTS(not_data); i++)
        json_object_del(data, not_data[i]);
    g_autofree char *text = json_encode(data);
    EventSpec event = {.kind = kind,
                       .actor = "door",
                       .box_id = text_of(fact, "box"),
                       .task_id = text_of(fact, "task"),
                       .squad_id = text_of(fact, "squad"),
                       .data = text};

    return event_append(tx, &event, NULL, error);
}

static bool
batch_work(DbTx *tx, void *data, GError **error)
{
    Batch *batch = data;
    const DoorLedgerSpec *spec = &batch->ledger->spec;
    guint64 last;

    if (!read_last(tx, batch->instance, &last, error))
        return false;
    for (guint i = 0; i < batch->facts->len; i++) {
        Json *fact = batch->facts->pdata[i];

        if (number_of(fact) <= last)
            continue;
        if (!write_fact(tx, fact, error) || (spec->also != NULL && !spec->also(tx, fact, error)))
            return false;
    }
    return batch->upto <= last || write_last(tx, batch, error);
}

/* ---- on the loop ---- */

static void
batch_done(void *data, const GError *error)
{
    Batch *batch = data;
    DoorLedger *ledger = batch->ledger;

    ledger->under_way = false;
    if (ledger->freed)
        return;
    if (batch->visit != ledger->visit) {
        write_held(ledger); /* what the door of now told meanwhile */
        return;
    }
    if (error != NULL) {
        log_warn("door", "what the door told could not be written", log_gerror(error));
        for (guint i = 0; i < ledger->held->len; i++)
            g_ptr_array_add(batch->facts, json_incref(ledger->held->pdata[i]));
        g_ptr_array_unref(ledger->held);
        ledger->held = g_steal_pointer(&batch->facts);
        batch->facts = facts_new();
        loop_timer_set(ledger->spec.loop, &ledger->retry, RETRY_MS);
        return;
    }
    ledger->spec.stored(batch->upto, ledger->spec.ctx);
    write_held(ledger);
}

static void
batch_free(gpointer data)
{
    Batch *batch = data;

    g_ptr_array_unref(batch->facts);
    g_free(batch->instance);
    ledger_unref(batch->ledger);
    g_free(batch);
}

static void
write_held(DoorLedger *ledger)
{
    if (ledger->under_way || ledger->freed || ledger->held->len == 0 || ledger->retry.queue != NULL)
        return;
    Batch *batch = g_new0(Batch, 1);

    ledger->refs++;
    *batch = (Batch){.ledger = ledger,
                     .instance = g_strdup(ledger->instance),
                     .facts = ledger->held,
                     .upto = number_of(ledger->held->pdata[ledger->held->len - 1]),
                     .visit = ledger->visit};
    ledger->held = facts_new();
    ledger->under_way = true;
    db_write(ledger->spec.db, batch_work, batch_done, batch, batch_free);
}

static void
on_retry(LoopTimer *timer)
{
    write_held((DoorLedger *)(void *)((char *)timer - offsetof(DoorLedger, retry)));
}

void
door_ledger_begin(DoorLedger *ledger, const char *instance)
{
    ledger->visit++;
    g_free(ledger->instance);
    ledger->instance = g_strdup(instance);
    g_ptr_array_set_size(ledger->held, 0);
    loop_timer_cancel(ledger->spec.loop, &ledger->retry);
}

bool
door_ledger_add(DoorLedger *ledger, Json *fact)
{
    /* A copy: it goes to another thread, which shares nothing with us. */
    g_ptr_array_add(ledger->held, json_deep_copy(fact));
    bool more = ledger->held->len < LEDGER_HELD_MAX;

    write_held(ledger);
    return more;
}

DoorLedger *
door_ledger_new(const DoorLedgerSpec *spec)
{
    DoorLedger *ledger = g_new0(DoorLedger, 1);

    ledger->refs = 1;
    ledger->spec = *spec;
    ledger->instance = g_strdup("");
    ledger->held = facts_new();
    ledger->retry.expired = on_retry;
    return ledger;
}

void
door_ledger_free(DoorLedger *ledger)
{
    if (ledger == NULL)
        return;
    ledger->freed = true;
    loop_timer_cancel(ledger->spec.loop, &ledger->retry);
    ledger_unref(ledger);
}
