/* SPDX-License-Identifier: Apache-2.0 */
#include "api/refusal.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/events.h"
#include "json/json.h"

enum { TEXT_MAX = 200 };

typedef struct Source {
    gint64 quiet_until_us;
    guint held_back;
} Source;

struct RefusalLog {
    Db *db;
    GHashTable *sources; /* "kind address" -> Source*, both owned */
};

RefusalLog *
refusal_log_new(Db *db)
{
    RefusalLog *log = g_new0(RefusalLog, 1);

    log->db = db;
    log->sources = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return log;
}

void
refusal_log_free(RefusalLog *log)
{
    if (log == NULL)
        return;
    g_hash_table_unref(log->sources);
    g_free(log);
}

static gboolean
is_over(gpointer key, gpointer source, gpointer now)
{
    return ((Source *)source)->quiet_until_us <= *(gint64 *)now;
}

static Source *
find_source(RefusalLog *log, const Refusal *r, gint64 now)
{
    g_autofree char *name = g_strdup_printf("%s %s", r->kind, r->address);
    Source *s = g_hash_table_lookup(log->sources, name);

    if (s != NULL)
        return s;
    if (g_hash_table_size(log->sources) >= REFUSAL_SOURCES_MAX)
        g_hash_table_foreach_remove(log->sources, is_over, &now);
    if (g_hash_table_size(log->sources) >= REFUSAL_SOURCES_MAX)
        return NULL;
    s = g_new0(Source, 1);
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

void
refusal_note(RefusalLog *log, const Refusal *refusal)
{
    gint64 now = clock_mono_us();
    Source *s = find_source(log, refusal, now);

    if (s == NULL)
        return; /* too many at once to tell them apart; the counters in /metrics still move */
    s->held_back++;
    if (s->quiet_until_us > now)
        return;
    write_down(log, refusal, s->held_back);
    s->held_back = 0;
    s->quiet_until_us = now + (gint64)REFUSAL_QUIET_S * G_USEC_PER_SEC;
}
