/* SPDX-License-Identifier: Apache-2.0 */
#include "api/refusal.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/events.h"
#include "json/json.h"

enum { TEXT_MAX = 200 };

/* One address that was refused for one kind of reason a moment ago. */
typedef struct Source {
    const char *kind, *why; /* literals of the callers' */
    char *address;
    gint64 quiet_until_us;
    guint held_back;
    char *method, *path, *origin; /* of the first that was held back */
} Source;

struct RefusalLog {
    Db *db;
    GHashTable *sources; /* "kind address" -> Source*, both owned */
    guint timer;
};

static void
forget_example(Source *s)
{
    g_clear_pointer(&s->method, g_free);
    g_clear_pointer(&s->path, g_free);
    g_clear_pointer(&s->origin, g_free);
}

static void
source_free(gpointer data)
{
    Source *s = data;

    forget_example(s);
    g_free(s->address);
    g_free(s);
}

RefusalLog *
refusal_log_new(Db *db)
{
    RefusalLog *log = g_new0(RefusalLog, 1);

    log->db = db;
    log->sources = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, source_free);
    return log;
}

void
refusal_log_free(RefusalLog *log)
{
    if (log == NULL)
        return;
    if (log->timer != 0)
        g_source_remove(log->timer);
    g_hash_table_unref(log->sources);
    g_free(log);
}

static Source *
find_source(RefusalLog *log, const Refusal *r)
{
    g_autofree char *name = g_strdup_printf("%s %s", r->kind, r->address);
    Source *s = g_hash_table_lookup(log->sources, name);

    if (s != NULL || g_hash_table_size(log->sources) >= REFUSAL_SOURCES_MAX)
        return s;
    s = g_new0(Source, 1);
    s->kind = r->kind;
    s->address = g_strdup(r->address);
    g_hash_table_insert(log->sources, g_steal_pointer(&name), s);
    return s;
}

/* What the outside sent may be any bytes; JSON wants UTF-8. */
static char *
printable(const char *text)
{
    g_autofree char *cut = g_strndup(text != NULL ? text : "", TEXT_MAX);

    return g_utf8_make_valid(cut, -1);
}

static bool
write_event(DbTx *tx, void *data, GError **error)
{
    EventSpec *event = data;

    return event_append(tx, event, NULL, error);
}

static void
event_free(gpointer data)
{
    EventSpec *event = data;

    g_free((char *)(guintptr)event->data);
    g_free(event);
}

static void
write_down(RefusalLog *log, const Refusal *r, guint count)
{
    g_autofree char *path = printable(r->path);
    g_autofree char *origin = printable(r->origin);
    g_autoptr(Json) object = json_pack("{s:s, s:s, s:s, s:s, s:i}", "address", r->address, "method",
                                       r->method, "path", path, "why", r->why, "count", (int)count);
    EventSpec *event = g_new0(EventSpec, 1);

    if (r->origin != NULL)
        json_object_set_new(object, "origin", json_string(origin));
    event->kind = r->kind; /* a literal of the callers' */
    event->actor = "coop";
    event->data = json_encode(object);
    db_write(log->db, write_event, NULL, event, event_free);
    log_warn("api", r->kind, log_str("address", r->address), log_str("path", r->path), log_str("why", r->why),
             log_int("count", count));
}

/* ---- holding back ---- */

static void
hold_back(Source *s, const Refusal *r)
{
    if (s->held_back++ > 0)
        return;
    s->why = r->why;
    s->method = g_strdup(r->method);
    s->path = printable(r->path);
    s->origin = r->origin != NULL ? printable(r->origin) : NULL;
}

static void
write_held_back(RefusalLog *log, Source *s)
{
    Refusal r = {
        .kind = s->kind,
        .address = s->address,
        .method = s->method,
        .path = s->path,
        .why = s->why,
        .origin = s->origin,
    };

    write_down(log, &r, s->held_back);
    s->held_back = 0;
    forget_example(s);
}

/* Whoever was quiet for long enough is forgotten; whoever was not is told of once more. */
static gboolean
on_timer(gpointer data)
{
    RefusalLog *log = data;
    gint64 now = clock_mono_us();
    GHashTableIter iter;
    gpointer source;

    g_hash_table_iter_init(&iter, log->sources);
    while (g_hash_table_iter_next(&iter, NULL, &source)) {
        Source *s = source;

        if (s->quiet_until_us > now)
            continue;
        if (s->held_back == 0) {
            g_hash_table_iter_remove(&iter);
            continue;
        }
        write_held_back(log, s);
        s->quiet_until_us = now + (gint64)REFUSAL_QUIET_S * G_USEC_PER_SEC;
    }
    if (g_hash_table_size(log->sources) > 0)
        return G_SOURCE_CONTINUE;
    log->timer = 0;
    return G_SOURCE_REMOVE;
}

void
refusal_note(RefusalLog *log, const Refusal *refusal)
{
    Source *s = find_source(log, refusal);

    if (s == NULL)
        return; /* too many at once to tell them apart; the counters in /metrics still move */
    if (s->quiet_until_us != 0) {
        hold_back(s, refusal);
        return;
    }
    write_down(log, refusal, 1);
    s->quiet_until_us = clock_mono_us() + (gint64)REFUSAL_QUIET_S * G_USEC_PER_SEC;
    if (log->timer == 0)
        log->timer = g_timeout_add_seconds(1, on_timer, log);
}

void
refusal_flush(RefusalLog *log)
{
    GHashTableIter iter;
    gpointer source;

    g_hash_table_iter_init(&iter, log->sources);
    while (g_hash_table_iter_next(&iter, NULL, &source)) {
        if (((Source *)source)->held_back > 0)
            write_held_back(log, source);
    }
}
