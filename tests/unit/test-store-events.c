/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "store/event-filter.h"
#include "store/event-ring.h"
#include "store/tx.h"
#include "support/store.h"
#include "json/json.h"

/* ---- vocabulary ---- */

static void
test_kinds(void)
{
    static const char *const known[] = {"agent.joined",   "box.created", "tests.reported", "tool.used",
                                        "server.started", "key.refused", "backup.restored"};
    static const char *const unknown[] = {"", "box", "box.*", "box.creatde", "zebra.seen", "BOX.CREATED"};
    const char *const *kinds = event_kinds();

    for (size_t i = 1; kinds[i] != NULL; i++)
        g_assert_cmpstr(kinds[i - 1], <, kinds[i]);
    for (size_t i = 0; kinds[i] != NULL; i++)
        g_assert_true(event_kind_is_known(kinds[i]));
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++)
        g_assert_true(event_kind_is_known(known[i]));
    for (size_t i = 0; i < G_N_ELEMENTS(unknown); i++)
        g_assert_false(event_kind_is_known(unknown[i]));
}

/* ---- filter ---- */

static void
test_filter(void)
{
    static const char *const exact[] = {"box.created", "task.moved", NULL};
    static const char *const whole_area[] = {"box.*", NULL};
    static const char *const none[] = {NULL};
    static const char *const star[] = {"*", ".*", "box*", "bo.*", NULL};
    static const struct {
        EventFilter filter;
        bool created, created_elsewhere, killed, moved;
    } cases[] = {
        {{0}, true, true, true, true},
        {{.box_id = "b1"}, true, false, true, false},
        {{.box_id = "b1", .task_id = "t1"}, true, false, false, false},
        {{.task_id = "t1"}, true, true, false, true},
        {{.squad_id = "s1"}, false, false, false, true},
        {{.execution_id = "e1"}, false, false, true, false},
        {{.kinds = exact}, true, true, false, true},
        {{.kinds = whole_area}, true, true, true, false},
        {{.kinds = whole_area, .box_id = "b1"}, true, false, true, false},
        {{.kinds = none}, false, false, false, false},
        {{.kinds = star}, false, false, false, false},
        {{.box_id = ""}, false, false, false, false},
    };
    const EventRow created = {.kind = "box.created", .box_id = "b1", .task_id = "t1"};
    const EventRow created_elsewhere = {.kind = "box.created", .box_id = "b10", .task_id = "t1"};
    const EventRow killed = {.kind = "box.killed", .box_id = "b1", .execution_id = "e1"};
    const EventRow moved = {.kind = "task.moved", .task_id = "t1", .squad_id = "s1"};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        FilterCopy *copy = filter_copy_new(&cases[i].filter);

        g_test_message("case %zu", i);
        g_assert_true(filter_row_passes(copy, &created) == cases[i].created);
        g_assert_true(filter_row_passes(copy, &created_elsewhere) == cases[i].created_elsewhere);
        g_assert_true(filter_row_passes(copy, &killed) == cases[i].killed);
        g_assert_true(filter_row_passes(copy, &moved) == cases[i].moved);
        filter_copy_unref(copy);
    }
    g_assert_null(filter_copy_new(NULL));
}

/* ---- ring ---- */

static Event *
make_event(gint64 seq, size_t data_len)
{
    g_autofree char *fill = g_strnfill(data_len, 'x');
    g_autofree char *data = g_strdup_printf("{\"x\":\"%s\"}", fill);
    const EventRow row = {.seq = seq, .kind = "box.created", .actor = "local", .data = data};

    return event_new(&row);
}

static void
push_new(EventRing *ring, gint64 seq, size_t data_len)
{
    g_autoptr(Event) event = make_event(seq, data_len);

    event_ring_push(ring, event);
}

static void
test_ring_count(void)
{
    EventRing *ring = g_new0(EventRing, 1);

    g_assert_null(event_ring_get(ring, 1));
    for (gint64 seq = 10; seq < 10 + 2 * EVENT_RING_MAX; seq++)
        push_new(ring, seq, 1);
    g_assert_cmpuint(ring->len, ==, EVENT_RING_MAX);
    g_assert_null(event_ring_get(ring, 9 + EVENT_RING_MAX));
    g_assert_cmpint(event_ring_get(ring, 10 + EVENT_RING_MAX)->seq, ==, 10 + EVENT_RING_MAX);
    g_assert_cmpint(event_ring_get(ring, 9 + 2 * EVENT_RING_MAX)->seq, ==, 9 + 2 * EVENT_RING_MAX);
    g_assert_null(event_ring_get(ring, 10 + 2 * EVENT_RING_MAX));

    push_new(ring, 100000, 1); /* a gap: what is kept has none */
    g_assert_cmpuint(ring->len, ==, 1);
    g_assert_null(event_ring_get(ring, 99999));
    event_ring_clear(ring);
    g_assert_cmpuint(ring->bytes, ==, 0);
    g_free(ring);
}

static void
test_ring_bytes(void)
{
    EventRing *ring = g_new0(EventRing, 1);

    for (gint64 seq = 1; seq <= 100; seq++) {
        push_new(ring, seq, 200000);
        g_assert_cmpuint(ring->bytes, <=, EVENT_RING_BYTES_MAX);
        g_assert_nonnull(event_ring_get(ring, seq));
    }
    g_assert_cmpuint(ring->len, >=, 15);
    push_new(ring, 101, EVENT_RING_BYTES_MAX + 1);
    g_assert_cmpuint(ring->len, ==, 1);
    event_ring_clear(ring);
    g_free(ring);
}

/* ---- append ---- */

typedef struct Seen {
    bool done;
    GPtrArray *events;
    gint64 seq, next_after;
    bool more;
} Seen;

static void
on_page(const EventPage *page, const GError *error, void *data)
{
    Seen *seen = data;

    g_assert_no_error(error);
    seen->done = true;
    seen->events = g_ptr_array_ref(page->events);
    seen->seq = page->seq;
    seen->next_after = page->next_after;
    seen->more = page->more;
}

static Event *
read_one(EventLog *log, gint64 seq)
{
    Seen seen = {0};

    event_log_read(log, NULL, seq - 1, 1, on_page, &seen);
    while (!seen.done)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(seen.events->len, ==, 1);
    Event *event = event_ref(seen.events->pdata[0]);
    g_ptr_array_unref(seen.events);
    return event;
}

static void
test_json(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    const EventSpec plain = {.kind = "server.started", .actor = "coop"};
    const EventSpec full = {
        .kind = "task.moved",
        .actor = "key:\"<&>\\\n\x01Zo\xc3\xab",
        .task_id = "\"",
        .squad_id = "s",
        .box_id = "b",
        .execution_id = "e",
        .data = "{\r\n  \"from\": \"a\\nb\",\n \"n\": 0.10}",
    };

    g_assert_cmpint(store_append(b->db, &plain, 1), ==, 1);
    g_assert_cmpint(store_append(b->db, &full, 1), ==, 2);

    g_autoptr(Event) first = read_one(b->log, 1);
    char at[CLOCK_ISO_LEN + 1];
    clock_format_iso(first->at_us, at);
    g_autofree char *want = g_strdup_printf("{\"seq\":1,\"at\":\"%s\",\"kind\":\"server.started\",\"actor\":"
                                            "\"coop\",\"data\":{\"seen_by\":\"coop\"}}",
                                            at);
    g_assert_cmpstr(first->json, ==, want);
    g_assert_cmpuint(first->json_len, ==, strlen(want));
    g_assert_null(first->task_id);

    g_autoptr(Event) second = read_one(b->log, 2);
    g_assert_cmpstr(second->kind, ==, "task.moved");
    g_assert_cmpstr(second->actor, ==, full.actor);
    g_assert_cmpstr(second->execution_id, ==, "e");
    g_assert_null(strchr(second->json, '\n'));
    g_assert_null(strchr(second->json, '\r'));
    g_assert_nonnull(strstr(second->json, "\"n\": 0.10"));
    g_autoptr(Json) parsed = json_decode(second->json, second->json_len, NULL);
    g_assert_nonnull(parsed);
    g_assert_cmpstr(json_string_value(json_object_get(parsed, "actor")), ==, full.actor);
    g_assert_cmpstr(json_string_value(json_object_get(parsed, "task_id")), ==, "\"");
    g_assert_cmpstr(json_string_value(json_object_get(parsed, "squad_id")), ==, "s");
    g_assert_cmpstr(json_string_value(json_object_get(json_object_get(parsed, "data"), "from")), ==, "a\nb");
}

static void
test_seen_by(void)
{
    static const struct {
        const char *kind, *actor, *data, *want;
    } cases[] = {
        {"box.created", "key:1", NULL, "{\"seen_by\":\"coop\"}"},
        {"box.created", "key:1", " {\n} ", "{\"seen_by\":\"coop\" } "},
        {"commit.pushed", "agent:1", "{\"a\":{}}", "{\"seen_by\":\"coop\",\"a\":{}}"},
        {"review.submitted", "agent:1", "{\"a\": 1}", "{\"seen_by\":\"agent\",\"a\": 1}"},
        {"review.submitted", "key:1", "{\"a\": 1}", "{\"seen_by\":\"person\",\"a\": 1}"},
        {"review.submitted", "coop", "{\"a\": 1}", "{\"seen_by\":\"coop\",\"a\": 1}"},
        {"tool.used", "agent:1", "{\"a\":1,\"seen_by\":\"agent\"}", "{\"a\":1,\"seen_by\":\"agent\"}"},
        {"tool.used", "coop", "{\"a\":{\"seen_by\":\"agent\"}}",
         "{\"seen_by\":\"coop\",\"a\":{\"seen_by\":\"agent\"}}"},
    };
    g_autoptr(StoreBench) b = store_bench_new_open();

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const EventSpec spec = {.kind = cases[i].kind, .actor = cases[i].actor, .data = cases[i].data};

        store_append(b->db, &spec, 1);
        g_autoptr(Event) event = read_one(b->log, (gint64)i + 1);
        const char *data = strstr(event->json, "\"data\":") + strlen("\"data\":");
        g_autofree char *got = g_strndup(data, strlen(data) - 1);

        g_assert_cmpstr(got, ==, cases[i].want);
    }
}

static bool
append_given(DbTx *tx, void *data, GError **error)
{
    return event_append(tx, data, NULL, error);
}

static void
test_bad_input(void)
{
    g_autofree char *deep = g_strnfill(3000, '[');
    g_autofree char *long_name = g_strnfill(300, 'a');
    g_autofree char *fill = g_strnfill(EVENT_DATA_MAX, 'a');
    g_autofree char *big = g_strdup_printf("{\"a\":\"%s\"}", fill);
    const struct {
        const char *actor, *task_id, *data;
        ErrKind kind;
    } cases[] = {
        {"local", NULL, "", ERR_INVALID},
        {"local", NULL, "[]", ERR_INVALID},
        {"local", NULL, "null", ERR_INVALID},
        {"local", NULL, "\"a\"", ERR_INVALID},
        {"local", NULL, "{}{}", ERR_INVALID},
        {"local", NULL, "{\"a\":1,\"a\":2}", ERR_INVALID},
        {"local", NULL, "{\"a\":\"\xff\"}", ERR_INVALID},
        {"local", NULL, "{\"a\":1", ERR_INVALID},
        {"local", NULL, deep, ERR_INVALID},
        {"local", NULL, big, ERR_LIMIT},
        {"\xff", NULL, NULL, ERR_INVALID},
        {"local", long_name, NULL, ERR_INVALID},
    };
    g_autoptr(StoreBench) b = store_bench_new_open();

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        EventSpec event = {.kind = "box.created",
                           .actor = cases[i].actor,
                           .task_id = cases[i].task_id,
                           .data = cases[i].data};
        g_autoptr(GError) error = NULL;

        g_assert_false(store_write(b->db, append_given, &event, &error));
        g_test_message("%zu: %s", i, error->message);
        g_assert_cmpstr(err_kind_name(err_kind(error)), ==, err_kind_name(cases[i].kind));
    }
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM events"), ==, 0);
}

static void
test_unknown_kind_asserts(void)
{
    if (g_test_subprocess()) {
        const EventSpec event = {.kind = "box.creatde", .actor = "local"};
        EventWriter writer = {0};
        DbTx tx = {.events = &writer};

        event_append(&tx, &event, NULL, NULL);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*event_kind_is_known*");
}

/* ---- rollback and order ---- */

static bool
append_and_fail(DbTx *tx, void *data, GError **error)
{
    const EventSpec event = {.kind = "box.failed", .actor = "coop"};

    for (int i = 0; i < 3; i++)
        g_assert_true(event_append(tx, &event, NULL, error));
    return err_set(error, ERR_DENIED, "no");
}

static bool
append_one(DbTx *tx, void *data, GError **error)
{
    const EventSpec event = {.kind = "box.created", .actor = "coop"};

    return event_append(tx, &event, data, error);
}

static void
test_rollback_leaves_no_event(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    StoreGate gate = {0};
    gint64 seqs[3] = {0}, events;

    db_write(b->db, store_gate_work, NULL, &gate, NULL);
    store_gate_wait(&gate);
    db_write(b->db, append_and_fail, NULL, NULL, NULL);
    db_write(b->db, append_one, NULL, &seqs[0], NULL);
    db_write(b->db, append_and_fail, NULL, NULL, NULL);
    db_write(b->db, append_one, NULL, &seqs[1], NULL);
    store_gate_open(&gate);
    g_assert_false(store_write(b->db, append_and_fail, NULL, NULL)); /* alone in its commit */
    g_assert_true(store_write(b->db, append_one, &seqs[2], NULL));

    for (gint64 i = 0; i < 3; i++)
        g_assert_cmpint(seqs[i], ==, i + 1);
    g_assert_cmpint(event_log_last_seq(b->log), ==, 3);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM events WHERE kind = 'box.failed'"), ==, 0);
    g_assert_cmpint(store_verify(b->log, &events), ==, 0);
    g_assert_cmpint(events, ==, 3);
    EventStats stats;
    event_log_stats(b->log, &stats);
    g_assert_cmpuint(stats.ring_events, ==, 3);
}

typedef struct Order {
    EventLog *log;
    gint64 seq;
    guint done;
} Order;

static bool
order_work(DbTx *tx, void *data, GError **error)
{
    return append_one(tx, &((Order *)data)->seq, error);
}

static void
order_done(void *data, const GError *error)
{
    Order *o = data;

    g_assert_no_error(error);
    g_assert_cmpint(event_log_last_seq(o->log), >=, o->seq);
    o->done++;
}

static void
test_published_before_done(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    Order orders[50];

    for (guint i = 0; i < G_N_ELEMENTS(orders); i++) {
        orders[i] = (Order){.log = b->log};
        db_write(b->db, order_work, order_done, &orders[i], NULL);
    }
    while (orders[G_N_ELEMENTS(orders) - 1].done == 0)
        g_main_context_iteration(NULL, TRUE);
    for (guint i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_assert_cmpint(orders[i].seq, ==, i + 1);
        g_assert_cmpuint(orders[i].done, ==, 1);
    }
}

/* ---- chain ---- */

static void
test_verify_finds_tampering(void)
{
    static const struct {
        const char *sql;
        gint64 bad_seq;
    } cases[] = {
        {"UPDATE events SET data = replace(data, 'a', 'b') WHERE seq = 1700", 1700},
        {"UPDATE events SET at_us = at_us + 1 WHERE seq = 2", 2},
        {"UPDATE events SET kind = 'box.killed' WHERE seq = 1", 1},
        {"UPDATE events SET actor = 'x' WHERE seq = 3000", 3000},
        {"UPDATE events SET task_id = box_id, box_id = NULL WHERE seq = 5", 5},
        {"UPDATE events SET squad_id = '' WHERE seq = 5", 5},
        {"UPDATE events SET execution_id = NULL WHERE seq = 5", 5},
        {"UPDATE events SET hash = zeroblob(32) WHERE seq = 1000", 1000},
        {"UPDATE events SET hash = x'00' WHERE seq = 1001", 1001},
        {"DELETE FROM events WHERE seq = 1500", 1500},
        {"DELETE FROM events WHERE seq <= 10", 1},
        {"DELETE FROM events WHERE seq > 2990", 2991},
    };
    const EventSpec event = {
        .kind = "box.created", .actor = "coop", .box_id = "b", .execution_id = "e", .data = "{\"n\":\"a\"}"};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(StoreBench) b = store_bench_new_open();
        gint64 events;

        g_test_message("%s", cases[i].sql);
        store_append(b->db, &event, 3000);
        g_assert_cmpint(store_verify(b->log, &events), ==, 0);
        g_assert_cmpint(events, ==, 3000);
        store_tamper(b->path, cases[i].sql);
        g_assert_cmpint(store_verify(b->log, &events), ==, cases[i].bad_seq);
        g_assert_cmpint(events, ==, cases[i].bad_seq - 1);
    }
}

static void
test_chain_goes_on_after_reopen(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    const EventSpec event = {.kind = "box.created", .actor = "coop"};

    for (gint64 i = 1; i <= 3; i++) {
        g_assert_cmpint(store_append(b->db, &event, 1), ==, i);
        store_bench_close(b);
        store_bench_open(b, NULL);
        g_assert_cmpint(event_log_last_seq(b->log), ==, i);
        g_assert_cmpint(event_log_first_seq(b->log), ==, 1);
    }
    g_assert_cmpint(store_verify(b->log, NULL), ==, 0);
}

/* ---- retention ---- */

static void
test_prune(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    const EventSpec event = {.kind = "box.created", .actor = "coop"};
    gint64 events;

    store_prune(b->log, G_MAXINT64); /* nothing there yet */
    store_append(b->db, &event, 2100);
    g_autoptr(Event) border = read_one(b->log, 1250);
    store_tamper(b->path, "UPDATE events SET at_us = at_us - 1000000000 WHERE seq < 1250");

    store_prune(b->log, border->at_us - 500000000);
    g_assert_cmpint(event_log_first_seq(b->log), ==, 1250);
    g_assert_cmpint(store_read_int(b->db, "SELECT min(seq) FROM events"), ==, 1250);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM events"), ==, 851);
    g_assert_cmpint(store_verify(b->log, &events), ==, 0);
    g_assert_cmpint(events, ==, 851);

    store_prune(b->log, border->at_us - 500000000); /* nothing more to do */
    g_assert_cmpint(event_log_first_seq(b->log), ==, 1250);

    store_prune(b->log, G_MAXINT64);
    g_assert_cmpint(event_log_first_seq(b->log), ==, 2100);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM events"), ==, 1);
    g_assert_cmpint(store_verify(b->log, &events), ==, 0);
    g_assert_cmpint(events, ==, 1);

    g_assert_cmpint(store_append(b->db, &event, 1), ==, 2101);
    g_assert_cmpint(store_verify(b->log, NULL), ==, 0);
    store_tamper(b->path, "UPDATE settings SET value = '2099 ' || lower(hex(zeroblob(32)))"
                          " WHERE name = 'events.anchor'");
    g_assert_cmpint(store_verify(b->log, NULL), ==, 2100);
}

/* A clock that was set back must not make retention leave holes. */
static void
test_prune_stops_at_first_young(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    const EventSpec event = {.kind = "box.created", .actor = "coop"};

    store_append(b->db, &event, 10);
    store_tamper(b->path, "UPDATE events SET at_us = CASE seq WHEN 4 THEN 2000 ELSE 1000 END");
    store_prune(b->log, 1500);
    g_assert_cmpint(event_log_first_seq(b->log), ==, 4);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM events"), ==, 7);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/events/kinds", test_kinds);
    g_test_add_func("/events/filter", test_filter);
    g_test_add_func("/events/ring/count", test_ring_count);
    g_test_add_func("/events/ring/bytes", test_ring_bytes);
    g_test_add_func("/events/json", test_json);
    g_test_add_func("/events/seen-by", test_seen_by);
    g_test_add_func("/events/bad-input", test_bad_input);
    g_test_add_func("/events/unknown-kind", test_unknown_kind_asserts);
    g_test_add_func("/events/rollback", test_rollback_leaves_no_event);
    g_test_add_func("/events/published-before-done", test_published_before_done);
    g_test_add_func("/events/verify", test_verify_finds_tampering);
    g_test_add_func("/events/chain-reopen", test_chain_goes_on_after_reopen);
    g_test_add_func("/events/prune", test_prune);
    g_test_add_func("/events/prune-clock", test_prune_stops_at_first_young);
    return g_test_run();
}
