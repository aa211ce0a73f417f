/* SPDX-License-Identifier: Apache-2.0 */
/* Which suites run.
 *
 * The rows decide: a scan reads those that are queued or running, oldest first, and compares them with
 * what is under way here.  A running one that nobody runs was cut by the end of a server; one that is
 * under way and has no such row any more was cancelled. */
#include "forge/checks.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "forge/checks-private.h"

enum { TICK_MS = 5000, US_PER_MS = 1000 };

typedef struct Listener {
    ChecksFunc func;
    void *data;
} Listener;

/* Between two tries. */
typedef struct Rest {
    gint64 since_us, until_us;
} Rest;

/* ---- life ---- */

Checks *
checks_ref(Checks *checks)
{
    checks->refs++;
    return checks;
}

void
checks_unref(Checks *c)
{
    if (--c->refs > 0)
        return;
    g_hash_table_unref(c->tries);
    g_hash_table_unref(c->resting);
    g_clear_pointer(&c->waiting, json_decref);
    g_array_unref(c->listeners);
    g_free(c);
}

static void
on_tick(LoopTimer *timer)
{
    checks_scan((Checks *)timer);
}

Checks *
checks_new(const ChecksSpec *spec)
{
    Checks *c = g_new0(Checks, 1);

    *c = (Checks){.timer = {.expired = on_tick}, .refs = 1, .spec = *spec};
    if (c->spec.at_once == 0)
        c->spec.at_once = CHECKS_AT_ONCE;
    c->tries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)suite_try_cancel);
    c->resting = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    c->listeners = g_array_new(FALSE, FALSE, sizeof(Listener));
    return c;
}

void
checks_free(Checks *c)
{
    if (c == NULL)
        return;
    c->stopped = true;
    loop_timer_cancel(c->spec.forge->spec.loop, &c->timer);
    g_clear_pointer(&c->cursor, event_cursor_free);
    g_hash_table_remove_all(c->tries);
    checks_unref(c);
}

/* ---- listeners ---- */

void
checks_listen(Checks *c, ChecksFunc func, void *data)
{
    const Listener listener = {func, data};

    g_assert(c->listeners->len < CHECKS_LISTENERS_MAX);
    g_array_append_val(c->listeners, listener);
}

void
checks_unlisten(Checks *c, ChecksFunc func, void *data)
{
    for (guint i = c->listeners->len; i > 0; i--) {
        const Listener *l = &g_array_index(c->listeners, Listener, i - 1);

        if (l->func == func && l->data == data)
            g_array_remove_index(c->listeners, i - 1);
    }
}

static void
tell(Checks *c, Repo *repo, const char *id, const char *state)
{
    g_autoptr(GArray) all = g_array_copy(c->listeners);

    for (guint i = 0; i < all->len; i++) {
        const Listener *l = &g_array_index(all, Listener, i);

        l->func(repo, id, state, l->data);
    }
}

/* ---- scanning ---- */

typedef struct Scan {
    Checks *checks;
    Json *rows;
} Scan;

static bool
read_rows(DbTx *tx, void *data, GError **error)
{
    Scan *s = data;
    g_autoptr(DbRows) rows = db_query(
        tx,
        "SELECT id, repository_id, number, base_oid, head_oid, created_us, tries FROM check_suites "
        "WHERE state IN ('queued', 'running') ORDER BY created_us, id LIMIT ?",
        DB_ARGS(db_int(CHECKS_QUEUE_MAX)), error);
    bool more = rows != NULL;

    while (more) {
        if (!db_rows_next(rows, &more, error))
            return false;
        if (more)
            json_array_append_new(
                s->rows,
                json_pack("{s:s, s:s, s:I, s:s, s:s, s:I, s:I}", "id", db_rows_text(rows, 0), "repository_id",
                          db_rows_text(rows, 1), "number", (json_int_t)db_rows_int(rows, 2), "base_oid",
                          db_rows_text(rows, 3), "head_oid", db_rows_text(rows, 4), "created_us",
                          (json_int_t)db_rows_int(rows, 5), "tries", (json_int_t)db_rows_int(rows, 6)));
    }
    return rows != NULL;
}

/* The table's entry goes after its key's owner was told. */
static void
drop_try(Checks *c, SuiteTry *try, const char *state)
{
    g_autoptr(Repo) repo = repo_ref(suite_try_repo(try));
    g_autofree char *id = g_strdup(suite_try_id(try));

    g_hash_table_remove(c->tries, id);
    if (state != NULL)
        tell(c, repo, id, state);
}

static void
drop_cancelled(Checks *c, const Json *rows)
{
    g_autoptr(GHashTable) live = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) gone = g_ptr_array_new();
    GHashTableIter iter;
    gpointer id, try;
    size_t i;
    Json *row;

    json_array_foreach(rows, i, row) g_hash_table_add(live, (gpointer)(guintptr)row_text(row, "id"));
    g_hash_table_iter_init(&iter, c->tries);
    while (g_hash_table_iter_next(&iter, &id, &try)) {
        if (!g_hash_table_contains(live, id) && !suite_try_is_ending(try))
            g_ptr_array_add(gone, try);
    }
    for (guint n = 0; n < gone->len; n++)
        drop_try(c, gone->pdata[n], "cancelled");
}

static bool
is_resting(Checks *c, const char *id)
{
    const Rest *rest = g_hash_table_lookup(c->resting, id);

    return rest != NULL && clock_mono_us() < rest->until_us;
}

static void
start_waiting(Checks *c, const Json *rows)
{
    size_t i;
    Json *row;

    g_clear_pointer(&c->waiting, json_decref);
    c->waiting = json_array();
    json_array_foreach(rows, i, row)
    {
        const char *id = row_text(row, "id");
        Repo *repo = forge_find_id(c->spec.forge, row_text(row, "repository_id"));

        if (repo == NULL || g_hash_table_contains(c->tries, id))
            continue;
        if (g_hash_table_size(c->tries) >= c->spec.at_once || is_resting(c, id)) {
            json_array_append(c->waiting, row);
            continue;
        }
        SuiteTry *try = suite_try_start(c, repo, row);

        g_hash_table_insert(c->tries, (gpointer)(guintptr)suite_try_id(try), try);
    }
    if (json_array_size(c->waiting) > 0)
        loop_timer_set(c->spec.forge->spec.loop, &c->timer, TICK_MS);
}

static void
on_rows(void *data, const GError *error)
{
    Scan *s = data;
    Checks *c = s->checks;

    c->scanning = false;
    if (c->stopped)
        return;
    if (error != NULL) {
        log_warn("checks", "the suites cannot be read", log_gerror(error));
        loop_timer_set(c->spec.forge->spec.loop, &c->timer, TICK_MS);
        return;
    }
    drop_cancelled(c, s->rows);
    start_waiting(c, s->rows);
    if (c->again)
        checks_scan(c);
}

static void
scan_free(void *data)
{
    Scan *s = data;

    json_decref(s->rows);
    checks_unref(s->checks);
    g_free(s);
}

void
checks_scan(Checks *c)
{
    if (c->stopped || c->cursor == NULL)
        return;
    c->again = c->scanning;
    if (c->scanning)
        return;
    Scan *s = g_new0(Scan, 1);

    *s = (Scan){checks_ref(c), json_array()};
    c->scanning = true;
    db_read(c->spec.forge->spec.db, read_rows, on_rows, s, scan_free);
}

void
checks_cancelled(Checks *c, Repo *repo, const char *id)
{
    SuiteTry *try = g_hash_table_lookup(c->tries, id);

    if (c->stopped)
        return;
    if (try == NULL)
        tell(c, repo, id, "cancelled");
    else if (!suite_try_is_ending(try)) /* else its end finds the row, and tells */
        drop_try(c, try, "cancelled");
    checks_scan(c);
}

bool
checks_may_wait(Checks *c, const char *id, gint64 max_us)
{
    const Rest *rest = g_hash_table_lookup(c->resting, id);

    return rest == NULL || clock_mono_us() - rest->since_us < max_us;
}

/* Since when it waits stays from rest to rest. */
static void
rest_for(Checks *c, const char *id, guint ms)
{
    const Rest *old = g_hash_table_lookup(c->resting, id);
    gint64 now_us = clock_mono_us();
    Rest rest = {old != NULL ? old->since_us : now_us, now_us + (gint64)ms * US_PER_MS};

    g_hash_table_insert(c->resting, g_strdup(id), g_memdup2(&rest, sizeof rest));
}

void
checks_try_over(Checks *c, SuiteTry *try, const char *state, guint rest_ms)
{
    if (state == NULL && rest_ms > 0)
        rest_for(c, suite_try_id(try), rest_ms);
    else
        g_hash_table_remove(c->resting, suite_try_id(try));
    checks_ref(c);
    drop_try(c, try, state);
    checks_scan(c);
    checks_unref(c);
}

/* ---- beginning ---- */

static void on_wake(void *data);

static void
follow(Checks *c)
{
    static const char *const kinds[] = {"pr.*", NULL};

    g_clear_pointer(&c->cursor, event_cursor_free);
    c->cursor = event_cursor_new(c->spec.forge->spec.events, &(EventFilter){.kinds = kinds}, -1, on_wake, c);
    event_cursor_is_own(c->cursor);
}

/* What it is about does not matter: the rows are. */
static void
on_wake(void *data)
{
    Checks *c = data;
    EventStep step;

    do {
        g_autoptr(Event) event = NULL;

        step = event_cursor_next(c->cursor, &event);
    } while (step == EVENT_READY || step == EVENT_RESYNC);
    if (step == EVENT_FAILED) {
        follow(c);
        loop_timer_set(c->spec.forge->spec.loop, &c->timer, TICK_MS);
        return;
    }
    checks_scan(c);
}

void
checks_start(Checks *c)
{
    g_hash_table_remove_all(c->tries);
    g_hash_table_remove_all(c->resting);
    if (c->spec.boxes != NULL)
        clean_box_sweep(c->spec.boxes);
    follow(c);
    on_wake(c);
}

/* ---- for people ---- */

const char *
checks_key_hex(const Checks *c)
{
    return c->spec.key != NULL ? receipt_key_hex(c->spec.key) : NULL;
}

static Json *
queue_row(Checks *c, const Json *row, const char *state)
{
    Repo *repo = forge_find_id(c->spec.forge, row_text(row, "repository_id"));
    gint64 number = row_int(row, "number");
    g_autofree char *name = repo != NULL ? g_strdup_printf("%s/%s", repo->owner, repo->name) : g_strdup("");
    g_autofree char *what = number > 0 ? g_strdup_printf("checks of #%" G_GINT64_FORMAT, number)
                                       : g_strdup_printf("checks of %.10s", row_text(row, "head_oid"));

    return json_pack("{s:s, s:s, s:s, s:I, s:I}", "repository", name, "what", what, "state", state,
                     "waiting_ms",
                     (json_int_t)(MAX(clock_wall_us() - row_int(row, "created_us"), 0) / US_PER_MS), "tries",
                     (json_int_t)row_int(row, "tries"));
}

Json *
checks_queue_json(Checks *c)
{
    Json *list = json_array(), *row;
    GHashTableIter iter;
    gpointer try;
    size_t i;

    g_hash_table_iter_init(&iter, c->tries);
    while (g_hash_table_iter_next(&iter, NULL, &try)) {
        g_autoptr(Json) running = suite_try_json(try);

        json_array_append_new(list, queue_row(c, running, "running"));
    }
    json_array_foreach(c->waiting, i, row) json_array_append_new(list, queue_row(c, row, "waiting"));
    return list;
}
