/* SPDX-License-Identifier: Apache-2.0 */
/* Facts are numbered without gaps, so the place of one in the ring follows from its number.
 *
 * A box may ask for the same place thousands of times: the first verdict is told at once, those
 * like it (kind, box, host, port) within FACT_WINDOW_US are counted, and told as one fact with a
 * "count" when the window is over.  When the ring is full, verdicts are counted without end.
 *
 * A box that asks for ever new places has FACT_WINDOWS_PER_BOX of its own; what is beyond them is
 * counted by kind in one more ("others"), so that it does not take the room of the other boxes. */
#include "door/fact.h"

#include <string.h>

#include "base/clock.h"

enum {
    FACT_RESERVE = 1024, /* beyond FACTS_MAX, for what must not be forgotten */
    FACT_SLOTS = FACTS_MAX + FACT_RESERVE,
    FACT_WINDOWS_MAX = 4096, /* and as many again of "others" */
    FACT_WINDOWS_PER_BOX = 64,
    FACT_WORD_MAX = 256, /* of a fact that was cut down */
};
#define FACT_WINDOW_US (10 * G_USEC_PER_SEC)

typedef struct Window {
    char *box;     /* whose place it takes; NULL: one of "others" */
    Json *sample;  /* of those that were not told yet; NULL: none */
    guint64 count; /* of them */
    gint64 until_us;
} Window;

struct FactLog {
    Json *ring[FACT_SLOTS];
    guint64 first, next; /* numbers: the oldest that is kept, and of the one to come */
    GHashTable *windows; /* char* -> Window* */
    GHashTable *per_box; /* box -> how many of them are its own, as a pointer */
    guint64 forgotten;   /* told with the next fact */
    void (*on_new)(void *data);
    void *data;
};

static void
window_free(gpointer data)
{
    Window *window = data;

    json_decref(window->sample);
    g_free(window->box);
    g_free(window);
}

FactLog *
fact_log_new(void)
{
    FactLog *log = g_new0(FactLog, 1);

    log->first = log->next = 1;
    log->windows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, window_free);
    log->per_box = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return log;
}

void
fact_log_free(FactLog *log)
{
    if (log == NULL)
        return;
    for (guint64 n = log->first; n < log->next; n++)
        json_decref(log->ring[n % FACT_SLOTS]);
    g_hash_table_unref(log->windows);
    g_hash_table_unref(log->per_box);
    g_free(log);
}

static guint64
length(const FactLog *log)
{
    return log->next - log->first;
}

bool
fact_log_is_full(const FactLog *log)
{
    return length(log) >= FACTS_MAX;
}

/* Of one that is too long, what it is about is kept. */
static Json *
cut_down(Json *fact)
{
    static const char *const kept[] = {"kind", "box", "time_us", "count"};

    if (json_dumpb(fact, NULL, 0, JSON_COMPACT) <= FACT_SIZE_MAX)
        return fact;
    Json *small = json_pack("{s:b}", "cut", 1);

    for (size_t i = 0; i < G_N_ELEMENTS(kept); i++) {
        Json *member = json_object_get(fact, kept[i]);

        if (!json_is_string(member) || json_string_length(member) < FACT_WORD_MAX)
            json_object_set(small, kept[i], member);
    }
    json_decref(fact);
    return small;
}

/* Takes `fact`. */
static void
append(FactLog *log, Json *fact)
{
    if (length(log) == FACT_SLOTS) {
        log->forgotten++;
        json_decref(fact);
        return;
    }
    fact = cut_down(fact);
    json_object_set_new(fact, "n", json_integer((json_int_t)log->next));
    if (json_object_get(fact, "time_us") == NULL)
        json_object_set_new(fact, "time_us", json_integer(clock_wall_us()));
    if (log->forgotten > 0)
        json_object_set_new(fact, "forgotten", json_integer((json_int_t)log->forgotten));
    log->forgotten = 0;
    log->ring[log->next++ % FACT_SLOTS] = fact;
    if (log->on_new != NULL)
        log->on_new(log->data);
}

/* ---- counting what is the same ---- */

static const char *
text_of(Json *fact, const char *name)
{
    const char *text = json_string_value(json_object_get(fact, name));

    return text != NULL ? text : "";
}

static char *
key_of(Json *fact)
{
    return g_strdup_printf("%s %s %s %" JSON_INTEGER_FORMAT, text_of(fact, "kind"), text_of(fact, "box"),
                           text_of(fact, "host"), json_integer_value(json_object_get(fact, "port")));
}

static char *
key_of_others(Json *fact)
{
    return g_strdup_printf("%s %s", text_of(fact, "kind"), text_of(fact, "box"));
}

/* It stands for many places, and must not name one. */
static void
make_others(Json *fact)
{
    static const char *const of_one[] = {"port", "method", "rule", "source", "why", "address", "sni"};

    for (size_t i = 0; i < G_N_ELEMENTS(of_one); i++)
        json_object_del(fact, of_one[i]);
    json_object_set_new(fact, "host", json_string("*"));
    json_object_set_new(fact, "others", json_true());
}

static guint
windows_of(const FactLog *log, const char *box)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(log->per_box, box));
}

static void
set_windows_of(FactLog *log, const char *box, guint n)
{
    if (n == 0)
        g_hash_table_remove(log->per_box, box);
    else
        g_hash_table_insert(log->per_box, g_strdup(box), GUINT_TO_POINTER(n));
}

static void
add_number(Json *to, Json *from, const char *name)
{
    Json *more = json_object_get(from, name);
    Json *sum = json_object_get(to, name);

    if (json_is_integer(more))
        json_object_set_new(to, name, json_integer(json_integer_value(sum) + json_integer_value(more)));
}

/* Takes `fact`. */
static void
count(Window *window, Json *fact)
{
    window->count++;
    if (window->sample == NULL) {
        window->sample = fact;
        json_object_set_new(fact, "time_us", json_integer(clock_wall_us()));
        return;
    }
    add_number(window->sample, fact, "bytes_in");
    add_number(window->sample, fact, "bytes_out");
    json_decref(fact);
}

static void
tell_window(FactLog *log, Window *window)
{
    json_object_set_new(window->sample, "count", json_integer((json_int_t)window->count));
    append(log, g_steal_pointer(&window->sample));
    window->count = 0;
}

static gboolean
close_window(gpointer key, gpointer value, gpointer data)
{
    FactLog *log = data;
    Window *window = value;

    if (clock_mono_us() < window->until_us || (window->sample != NULL && fact_log_is_full(log)))
        return FALSE;
    if (window->sample == NULL) {
        if (window->box != NULL)
            set_windows_of(log, window->box, windows_of(log, window->box) - 1);
        return TRUE;
    }
    tell_window(log, window);
    window->until_us = clock_mono_us() + FACT_WINDOW_US;
    return FALSE;
}

void
fact_log_settle(FactLog *log)
{
    g_hash_table_foreach_remove(log->windows, close_window, log);
}

/* False: there are as many as may be. */
static bool
has_room(FactLog *log, const char *box)
{
    if (windows_of(log, box) >= FACT_WINDOWS_PER_BOX)
        return false;
    if (g_hash_table_size(log->windows) >= FACT_WINDOWS_MAX)
        fact_log_settle(log);
    return g_hash_table_size(log->windows) < FACT_WINDOWS_MAX;
}

/* Takes `key`. */
static Window *
add_window(FactLog *log, char *key, const char *box)
{
    Window *window = g_new0(Window, 1);

    window->until_us = clock_mono_us() + FACT_WINDOW_US;
    window->box = g_strdup(box);
    g_hash_table_insert(log->windows, key, window);
    if (box != NULL)
        set_windows_of(log, box, windows_of(log, box) + 1);
    return window;
}

/* Takes `fact`. */
static void
add_other(FactLog *log, Json *fact)
{
    g_autofree char *key = key_of_others(fact);
    Window *window = g_hash_table_lookup(log->windows, key);

    if (window == NULL && g_hash_table_size(log->windows) >= 2 * FACT_WINDOWS_MAX) {
        log->forgotten++;
        json_decref(fact);
        return;
    }
    if (window == NULL)
        window = add_window(log, g_steal_pointer(&key), NULL);
    make_others(fact);
    count(window, fact);
}

/* Takes `fact`. */
static void
add_verdict(FactLog *log, Json *fact)
{
    g_autofree char *key = key_of(fact);
    Window *window = g_hash_table_lookup(log->windows, key);

    if (window != NULL) {
        count(window, fact);
        return;
    }
    if (!has_room(log, text_of(fact, "box"))) {
        add_other(log, fact);
        return;
    }
    window = add_window(log, g_steal_pointer(&key), text_of(fact, "box"));
    if (fact_log_is_full(log))
        count(window, fact);
    else
        append(log, fact);
}

void
fact_log_add(FactLog *log, Json *fact)
{
    if (g_str_has_prefix(text_of(fact, "kind"), "door."))
        add_verdict(log, fact);
    else
        append(log, fact);
}

/* ---- reading ---- */

Json *
fact_log_next(FactLog *log, guint64 after)
{
    guint64 n = MAX(after + 1, log->first);

    return n < log->next ? log->ring[n % FACT_SLOTS] : NULL;
}

void
fact_log_ack(FactLog *log, guint64 upto)
{
    while (log->first < log->next && log->first <= upto)
        json_decref(log->ring[log->first++ % FACT_SLOTS]);
}

void
fact_log_on_new(FactLog *log, void (*func)(void *data), void *data)
{
    log->on_new = func;
    log->data = data;
}
