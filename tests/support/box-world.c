/* SPDX-License-Identifier: Apache-2.0 */
#include "support/box-world.h"

#include <string.h>

#include "base/err.h"
#include "box/host-private.h"

enum { HOUR_MS = 3600 * 1000, ROUNDS = 4 };

static void
on_degraded(const char *part, const char *reason, void *ctx)
{
    World *w = ctx;
    char **place = &w->degraded[strcmp(part, "keeper") == 0 ? 0 : 1];

    g_free(*place);
    *place = g_strdup(reason);
}

World *
world_new_bare(void)
{
    World *w = g_new0(World, 1);

    fake_boxes_reset();
    w->store = store_bench_new();
    /* One reader: then a read that has come back stands for all before it. */
    store_bench_open(w->store, &(DbSpec){.readers = 1});
    w->loop = loop_new(NULL);
    w->spec = (BoxHostSpec){
        .loop = w->loop,
        .db = w->store->db,
        .events = w->store->log,
        .home = w->store->dir,
        .keeper_socket = "/nowhere",
        .default_template = "base",
        .limits =
            {.memory_bytes = 1 << 30, .disk_bytes = 1 << 30, .inodes = 65536, .pids = 256, .cpu_milli = 1000},
        .limits_max = {.memory_bytes = G_GUINT64_CONSTANT(4) << 30,
                       .disk_bytes = G_GUINT64_CONSTANT(10) << 30,
                       .inodes = 1 << 20,
                       .pids = 1024,
                       .cpu_milli = 2000},
        .lifetime_ms = HOUR_MS,
        .idle_ms = HOUR_MS / 2,
        .boxes_per_key = 20,
        .boxes_max = 40,
        .keep_rows_ms = 24 * HOUR_MS,
        .degraded = on_degraded,
        .ctx = w,
    };
    return w;
}

void
world_start(World *w)
{
    w->host = box_host_new(&w->spec);
}

static void
on_loaded(void *data, const GError *error)
{
    g_assert_no_error(error);
    *(bool *)data = true;
}

void
world_load(World *w)
{
    bool loaded = false;

    box_host_load(w->host, on_loaded, &loaded);
    while (!loaded)
        g_main_context_iteration(NULL, TRUE);
    world_settle(w);
}

World *
world_new(void)
{
    World *w = world_new_bare();

    world_start(w);
    world_load(w);
    return w;
}

void
world_free(World *w)
{
    box_host_free(w->host);
    store_bench_close(w->store);
    loop_free(w->loop);
    store_bench_free(w->store);
    g_free(w->degraded[0]);
    g_free(w->degraded[1]);
    g_free(w);
}

void
world_restart(World *w)
{
    g_clear_pointer(&w->host, box_host_free);
    world_start(w);
    world_load(w);
}

static bool
nothing(DbTx *tx, void *data, GError **error)
{
    return true;
}

/* A write behind all others is done when they are; what they cause comes in the next round. */
void
world_settle(World *w)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (w->host != NULL)
            host_run_later(w->host);
        while (g_main_context_iteration(NULL, FALSE))
            ;
        g_assert_true(store_write(w->store->db, nothing, NULL, NULL));
        g_assert_true(store_read(w->store->db, nothing, NULL, NULL));
    }
}

void
world_tick(World *w, gint64 seconds)
{
    fake_clock_forward(seconds);
    host_tick(w->host);
    world_settle(w);
}

void
world_upkeep(World *w)
{
    host_upkeep(w->host);
    world_settle(w);
}

/* ---- calls ---- */

void
made_clear(Made *made)
{
    box_unref(made->box);
    g_clear_error(&made->error);
}

static void
on_made(Box *box, bool created, const GError *error, void *data)
{
    Made *made = data;

    g_assert_false(made->done);
    made->done = true;
    made->created = created;
    made->box = box != NULL ? box_ref(box) : NULL;
    made->error = error != NULL ? g_error_copy(error) : NULL;
}

void
world_begin(World *w, const BoxSpec *spec, Made *ret_made)
{
    *ret_made = (Made){0};
    box_host_create(w->host, spec, on_made, ret_made);
    g_assert_false(ret_made->done); /* never inside the call */
}

void
world_create(World *w, const BoxSpec *spec, Made *ret_made)
{
    world_begin(w, spec, ret_made);
    world_settle(w);
    g_assert_true(ret_made->done);
}

Box *
world_box(World *w, const char *owner)
{
    g_auto(Made) made = {0};

    world_create(w, &(BoxSpec){.owner = owner, .actor = "local"}, &made);
    g_assert_no_error(made.error);
    return made.box;
}

void
ended_clear(Ended *ended)
{
    g_clear_error(&ended->error);
}

void
on_box_done(Box *box, const GError *error, void *data)
{
    Ended *ended = data;

    g_assert_false(ended->done);
    ended->done = true;
    ended->error = error != NULL ? g_error_copy(error) : NULL;
}

/* ---- rows ---- */

typedef struct Rows {
    bool done;
    Json *list;
} Rows;

static void
on_rows(Json *rows, const GError *error, void *data)
{
    Rows *r = data;

    g_assert_no_error(error);
    r->done = true;
    r->list = json_incref(rows);
}

Json *
world_row(World *w, const char *id)
{
    Rows rows = {0};

    box_host_row(w->host, id, NULL, on_rows, &rows);
    while (!rows.done)
        g_main_context_iteration(NULL, TRUE);
    Json *row = json_incref(json_array_get(rows.list, 0));

    json_decref(rows.list);
    return row;
}

Json *
world_commands(World *w, const char *id)
{
    Rows rows = {0};

    box_host_commands(w->host, id, 100, on_rows, &rows);
    while (!rows.done)
        g_main_context_iteration(NULL, TRUE);
    return rows.list;
}

typedef struct Kinds {
    bool done;
    GString *text;
} Kinds;

static void
on_page(const EventPage *page, const GError *error, void *data)
{
    Kinds *kinds = data;

    g_assert_no_error(error);
    for (guint i = 0; i < page->events->len; i++)
        g_string_append_printf(kinds->text, i > 0 ? " %s" : "%s", ((Event *)page->events->pdata[i])->kind);
    kinds->done = true;
}

char *
world_events(World *w, const char *id)
{
    Kinds kinds = {.text = g_string_new(NULL)};
    EventFilter filter = {.box_id = id};

    event_log_read(w->store->log, &filter, 0, 100, on_page, &kinds);
    while (!kinds.done)
        g_main_context_iteration(NULL, TRUE);
    return g_string_free(kinds.text, FALSE);
}

void
assert_state(Box *box, BoxState state, const char *reason)
{
    BoxInfo info;

    box_info(box, &info);
    g_assert_cmpstr(box_state_name(info.state, false), ==, box_state_name(state, false));
    g_assert_cmpstr(info.reason, ==, reason);
}

void
assert_row(World *w, const char *id, const char *state, const char *reason)
{
    g_autoptr(Json) row = world_row(w, id);

    g_assert_nonnull(row);
    g_assert_cmpstr(json_string_value(json_object_get(row, "state")), ==, state);
    g_assert_cmpstr(json_string_value(json_object_get(row, "reason")), ==, reason);
}
