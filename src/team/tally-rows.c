/* SPDX-License-Identifier: Apache-2.0 */
#include "team/tally-rows.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "store/events.h"

#define DAY_US (G_GINT64_CONSTANT(24) * 3600 * G_USEC_PER_SEC)

enum {
    DECIMAL = 10,
    COMMANDS_MAX = 10 * 1000, /* of one box, that are looked at */
    OLD_MAX = 200,            /* that go with one page */
};

static const char place_name[] = "facts.seq";

/* ---- sums ---- */

void
tally_sums_init(TallySums *sums)
{
    *sums = (TallySums){.errors = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)};
    for (guint i = 0; i < FACT_MAX; i++)
        sums->rates[i].median = sums->rates[i].percentile = -1;
}

void
tally_sums_clear(TallySums *sums)
{
    g_clear_pointer(&sums->errors, g_hash_table_unref);
}

static void
add_error(TallySums *sums, const char *class, gint64 n)
{
    gint64 *count = g_hash_table_lookup(sums->errors, class);

    if (count == NULL) {
        count = g_new0(gint64, 1);
        g_hash_table_insert(sums->errors, g_strdup(class), count);
    }
    *count += n;
}

void
tally_sums_add(TallySums *sums, const TallySums *more)
{
    GHashTableIter iter;
    gpointer class, n;

    for (guint i = 0; i < FACT_MAX; i++)
        rate_add(&sums->rates[i], &more->rates[i]);
    g_hash_table_iter_init(&iter, more->errors);
    while (g_hash_table_iter_next(&iter, &class, &n))
        add_error(sums, class, *(const gint64 *)n);
}

static void
count(TallySums *sums, const Fact *fact)
{
    const Rate one = {.n = fact->n,
                      .good = fact->good,
                      .sum = fact->value,
                      .max = fact->value,
                      .values = fact->value > 0 ? 1 : 0};

    rate_add(&sums->rates[fact->name], &one);
    if (fact->name == FACT_ERROR)
        add_error(sums, fact->class, fact->n);
}

/* ---- the place ---- */

bool
tally_place_load(DbTx *tx, gint64 *ret_seq, GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT value FROM settings WHERE name = ?", DB_ARGS(db_text(place_name)), error);
    bool found = false;

    *ret_seq = 0;
    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    if (found)
        *ret_seq = g_ascii_strtoll(db_rows_text(rows, 0), NULL, DECIMAL);
    return true;
}

static bool
save_place(DbTx *tx, gint64 seq, GError **error)
{
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, seq);

    return db_exec(tx,
                   "INSERT INTO settings (name, value) VALUES (?, ?) "
                   "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                   DB_ARGS(db_text(place_name), db_text(text)), error);
}

/* ---- whose it is ---- */

typedef struct Whose {
    char *owner, *squad_id, *repository_id;
} Whose;

static void
whose_clear(Whose *whose)
{
    g_free(whose->owner);
    g_free(whose->squad_id);
    g_free(whose->repository_id);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Whose, whose_clear)

/* Of the task, which checks know by their pull request only; else of the box. */
static bool
find_whose(DbTx *tx, const Event *event, const Json *data, Whose *ret, GError **error)
{
    const char *repository = row_text(data, "repository_id");
    g_autoptr(DbRows) rows = db_query(
        tx,
        "SELECT t.owner, t.squad_id, t.repository_id, 0 FROM tasks t WHERE t.id = COALESCE(?, (SELECT "
        "task_id "
        "FROM threads WHERE repository_id = ? AND number = ?)) UNION ALL SELECT owner, NULL, NULL, 1 "
        "FROM sandboxes WHERE e2b_id = ? ORDER BY 4 LIMIT 1",
        DB_ARGS(db_text(event->task_id), db_text(repository), db_int(row_int(data, "number")),
                db_text(event->box_id)),
        error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    *ret = (Whose){.owner = g_strdup(found ? db_rows_text(rows, 0) : ""),
                   .squad_id = g_strdup(found ? db_rows_text(rows, 1) : NULL),
                   .repository_id = g_strdup(found ? db_rows_text(rows, 2) : NULL)};
    if (ret->squad_id == NULL)
        ret->squad_id = g_strdup(event->squad_id != NULL ? event->squad_id : "");
    if (ret->repository_id == NULL)
        ret->repository_id = g_strdup(repository != NULL ? repository : "");
    return true;
}

/* ---- how much a box was used ---- */

/* In ms, of the `lived` before the event. */
static bool
read_busy(DbTx *tx, const Event *event, gint64 lived, gint64 *ret_busy, GError **error)
{
    gint64 end = event->at_us / 1000;
    g_autoptr(GArray) spans = g_array_new(FALSE, FALSE, sizeof(FactSpan));
    g_autoptr(DbRows)
        rows = db_query(tx,
                        "SELECT at_us, data FROM events WHERE box_id = ? AND seq < ? AND kind "
                        "= 'command.ended' ORDER BY seq LIMIT ?",
                        DB_ARGS(db_text(event->box_id), db_int(event->seq), db_int(COMMANDS_MAX)), error);
    bool more = rows != NULL;

    while (more && db_rows_next(rows, &more, error) && more) {
        const char *text = db_rows_text(rows, 1);
        g_autoptr(Json) data = json_decode(text, strlen(text), NULL);
        gint64 to = db_rows_int(rows, 0) / 1000;
        FactSpan span = {to - row_int(data, "duration_ms"), to};

        g_array_append_val(spans, span);
    }
    if (rows == NULL || more)
        return false;
    *ret_busy = fact_covered((FactSpan *)(void *)spans->data, spans->len, end - lived, end);
    return true;
}

static bool
add_use(DbTx *tx, const Event *event, FactList *list, GError **error)
{
    for (guint i = 0; i < list->len; i++) {
        gint64 busy, lived = list->items[i].value;

        if (list->items[i].name != FACT_BOXES || lived <= 0 || event->box_id == NULL)
            continue;
        if (!read_busy(tx, event, lived, &busy, error))
            return false;
        list->items[list->len++] = (Fact){.name = FACT_USE, .class = "", .n = lived, .good = busy};
        break;
    }
    return true;
}

/* ---- facts ---- */

static bool
insert(DbTx *tx, const Event *event, const Fact *fact, const Whose *whose, GError **error)
{
    return db_exec(tx,
                   "INSERT INTO facts (seq, name, class, at_us, n, good, value, owner, squad_id, "
                   "repository_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   DB_ARGS(db_int(event->seq), db_text(rate_specs[fact->name].name), db_text(fact->class),
                           db_int(event->at_us), db_int(fact->n), db_int(fact->good), db_int(fact->value),
                           db_text(whose->owner), db_text(whose->squad_id), db_text(whose->repository_id)),
                   error);
}

static bool
put_event(DbTx *tx, const Event *event, TallySums *sums, GError **error)
{
    g_autoptr(Json) whole = json_decode(event->json, event->json_len, error);
    const Json *data = json_object_get(whole, "data");
    const FactEvent said = {.kind = event->kind,
                            .has_task = event->task_id != NULL,
                            .has_box = event->box_id != NULL,
                            .data = data};
    g_auto(Whose) whose = {0};
    FactList list;

    if (whole == NULL)
        return false;
    fact_read(&said, &list);
    if (list.len == 0)
        return true;
    if (!find_whose(tx, event, data, &whose, error) || !add_use(tx, event, &list, error))
        return false;
    for (guint i = 0; i < list.len; i++) {
        if (!insert(tx, event, &list.items[i], &whose, error))
            return false;
        count(sums, &list.items[i]);
    }
    return true;
}

static bool
drop_old(DbTx *tx, GError **error)
{
    return db_exec(tx,
                   "DELETE FROM facts WHERE seq IN (SELECT seq FROM facts WHERE at_us < ? ORDER BY at_us "
                   "LIMIT ?)",
                   DB_ARGS(db_int(clock_wall_us() - FACTS_KEEP_DAYS * DAY_US), db_int(OLD_MAX)), error);
}

bool
tally_put(DbTx *tx, const TallyPage *page, TallySums *sums, GError **error)
{
    gint64 place;

    if (!tally_place_load(tx, &place, error))
        return false;
    if (place != page->from)
        return err_set(error, ERR_CONFLICT, "the log was counted up to another event");
    for (guint i = 0; i < page->events->len; i++) {
        if (!put_event(tx, page->events->pdata[i], sums, error))
            return false;
    }
    return drop_old(tx, error) && save_place(tx, page->to, error);
}

/* ---- all of them ---- */

Rate
tally_rate_read(DbRows *rows)
{
    return (Rate){.n = db_rows_int(rows, 2),
                  .good = db_rows_int(rows, 3),
                  .sum = db_rows_int(rows, 4),
                  .max = db_rows_int(rows, 5),
                  .values = db_rows_int(rows, 6)};
}

bool
tally_sums_load(DbTx *tx, TallySums *sums, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx, "SELECT " TALLY_RATE_COLUMNS " FROM facts GROUP BY name, class",
                                      DB_NO_ARGS, error);
    bool more = rows != NULL;

    while (more && db_rows_next(rows, &more, error) && more) {
        FactName name = fact_name_of(db_rows_text(rows, 0));
        const Rate rate = tally_rate_read(rows);

        if (name == FACT_MAX)
            continue;
        rate_add(&sums->rates[name], &rate);
        if (name == FACT_ERROR)
            add_error(sums, db_rows_text(rows, 1), rate.n);
    }
    return rows != NULL && !more;
}
