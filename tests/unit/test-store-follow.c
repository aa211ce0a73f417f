/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "store/event-log.h"
#include "support/store.h"

/* A follower that reads whenever it is woken and checks that what it gets has no gap and no
 * repetition. */
typedef struct Follower {
    EventCursor *cursor;
    gint64 last; /* seq of the last event */
    gint64 step; /* expected distance; 0: any that grows */
    guint events;
    guint wakes;
    guint resyncs;
    guint failures;
    bool waiting;
    bool idle; /* woken, but does not read */
} Follower;

static void
follower_drain(Follower *f)
{
    for (;;) {
        g_autoptr(Event) event = NULL;

        switch (event_cursor_next(f->cursor, &event)) {
        case EVENT_READY:
            if (f->step != 0)
                g_assert_cmpint(event->seq, ==, f->last + f->step);
            g_assert_cmpint(event->seq, >, f->last);
            g_assert_cmpint(event_cursor_seq(f->cursor), ==, event->seq);
            f->last = event->seq;
            f->events++;
            break;
        case EVENT_WAIT:
            f->waiting = true;
            return;
        case EVENT_RESYNC:
            f->resyncs++;
            f->last = event_cursor_seq(f->cursor);
            break;
        case EVENT_FAILED:
            f->failures++;
            return;
        }
    }
}

static void
follower_wake(void *data)
{
    Follower *f = data;

    g_assert_true(f->waiting); /* once for each EVENT_WAIT */
    f->waiting = false;
    f->wakes++;
    if (!f->idle)
        follower_drain(f);
}

static void
follower_start(Follower *f, EventLog *log, const EventFilter *filter, gint64 after)
{
    f->cursor = event_cursor_new(log, filter, after, follower_wake, f);
    f->last = event_cursor_seq(f->cursor);
    follower_drain(f);
}

static void
follower_until(Follower *f, gint64 seq)
{
    while (event_cursor_seq(f->cursor) < seq)
        g_main_context_iteration(NULL, TRUE);
}

static const EventSpec created = {
    .kind = "box.created", .actor = "coop", .box_id = "b1", .data = "{\"n\":1}"};
static const EventSpec moved = {.kind = "task.moved", .actor = "coop", .task_id = "t1"};

static void
test_from_now_on(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    Follower f = {.step = 1};

    store_append(b->db, &created, 5);
    follower_start(&f, b->log, NULL, -1);
    g_assert_cmpuint(f.events, ==, 0);
    store_append(b->db, &created, 3);
    g_assert_cmpuint(f.events, ==, 3);
    g_assert_cmpuint(f.wakes, ==, 1);
    store_append(b->db, &created, 1);
    g_assert_cmpuint(f.events, ==, 4);
    g_assert_cmpuint(f.wakes, ==, 2);
    g_assert_cmpint(event_cursor_seq(f.cursor), ==, 9);
    event_cursor_free(f.cursor);
}

static void
test_from_ring(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    Follower f = {.step = 1};

    store_append(b->db, &created, 50);
    follower_start(&f, b->log, NULL, 20);
    g_assert_cmpuint(f.events, ==, 30); /* without going through the loop */
    event_cursor_free(f.cursor);

    /* After a restart the newest are in memory again. */
    store_bench_close(b);
    store_bench_open(b, NULL);
    f = (Follower){.step = 1};
    follower_start(&f, b->log, NULL, 0);
    g_assert_cmpuint(f.events, ==, 50);
    event_cursor_free(f.cursor);
}

static void
test_filtered(void)
{
    static const char *const kinds[] = {"task.*", NULL};
    const EventFilter filter = {.kinds = kinds};
    g_autoptr(StoreBench) b = store_bench_new_open();
    Follower f = {0};

    follower_start(&f, b->log, &filter, -1);
    for (int i = 0; i < 10; i++)
        store_append(b->db, &created, 10);
    g_assert_cmpuint(f.wakes, ==, 0);
    g_assert_cmpint(event_cursor_seq(f.cursor), ==, 100); /* does not fall behind */
    store_append(b->db, &moved, 1);
    g_assert_cmpuint(f.events, ==, 1);
    g_assert_cmpint(f.last, ==, 101);
    event_cursor_free(f.cursor);
}

static void
test_behind_ring(void)
{
    static const EventFilter all = {0}, box = {.box_id = "b1"}, nobody = {.box_id = "b"};
    static const char *const task_kinds[] = {"task.moved", NULL};
    static const EventFilter task = {.kinds = task_kinds};
    static const struct {
        const EventFilter *filter;
        gint64 step, after;
        guint events;
    } cases[] = {
        {&all, 1, 0, 12010}, {&all, 1, 7000, 5010}, {&box, 0, 0, 12000},
        {&nobody, 0, 0, 0},  {&task, 0, 0, 10},     {&task, 0, 3000, 7},
    };
    g_autoptr(StoreBench) b = store_bench_new_open();

    for (int i = 0; i < 10; i++) {
        store_append(b->db, &moved, 1);
        store_append(b->db, &created, 1200);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Follower f = {.step = cases[i].step};

        g_test_message("case %zu", i);
        follower_start(&f, b->log, cases[i].filter, cases[i].after);
        follower_until(&f, 12010);
        g_assert_cmpuint(f.events, ==, cases[i].events);
        g_assert_cmpuint(f.resyncs + f.failures, ==, 0);
        event_cursor_free(f.cursor);
    }
}

/* ---- catching up while a writer appends ---- */

typedef struct Pump {
    Db *db;
    guint left;
    gint64 last;
} Pump;

static bool
pump_work(DbTx *tx, void *data, GError **error)
{
    Pump *p = data;

    for (int i = 0; i < 300; i++) {
        if (!event_append(tx, &created, &p->last, error))
            return false;
    }
    return true;
}

static void
pump_done(void *data, const GError *error)
{
    Pump *p = data;

    g_assert_no_error(error);
    if (--p->left > 0)
        db_write(p->db, pump_work, pump_done, p, NULL);
}

static void
test_catch_up_while_appending(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    Follower f[8];
    Pump pump = {.db = b->db, .left = 30};

    store_append(b->db, &created, 9000);
    for (guint i = 0; i < G_N_ELEMENTS(f); i++) {
        f[i] = (Follower){.step = 1};
        follower_start(&f[i], b->log, NULL, (gint64)i * 1000);
    }
    db_write(b->db, pump_work, pump_done, &pump, NULL);
    while (pump.left > 0)
        g_main_context_iteration(NULL, TRUE);
    for (guint i = 0; i < G_N_ELEMENTS(f); i++) {
        follower_until(&f[i], pump.last);
        g_assert_cmpint(f[i].last, ==, 18000);
        g_assert_cmpuint(f[i].events, ==, 18000 - i * 1000);
        event_cursor_free(f[i].cursor);
    }
}

/* One commit larger than the ring: the followers at the end are behind it at once. */
static void
test_commit_larger_than_ring(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    Follower f = {.step = 1};
    EventStats stats;

    follower_start(&f, b->log, NULL, -1);
    store_append(b->db, &created, 2 * EVENT_RING_MAX);
    follower_until(&f, 2 * EVENT_RING_MAX);
    g_assert_cmpuint(f.events, ==, 2 * EVENT_RING_MAX);
    event_log_stats(b->log, &stats);
    g_assert_cmpuint(stats.ring_events, <=, EVENT_RING_MAX);
    g_assert_cmpuint(stats.ring_bytes, <=, EVENT_RING_BYTES_MAX);
    g_assert_cmpuint(stats.cursors, ==, 1);
    g_assert_cmpint(stats.last_seq, ==, 2 * EVENT_RING_MAX);
    event_cursor_free(f.cursor);
}

/* ---- resync ---- */

static void
test_resync_after_prune(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    Follower f = {.step = 1};

    store_append(b->db, &created, 6000);
    store_prune(b->log, G_MAXINT64);
    follower_start(&f, b->log, NULL, 10);
    g_assert_cmpuint(f.resyncs, ==, 1);
    g_assert_cmpint(event_cursor_seq(f.cursor), ==, 6000);
    store_append(b->db, &created, 1);
    g_assert_cmpuint(f.events, ==, 1);
    event_cursor_free(f.cursor);
}

/* Retention that wins against a page read which is under way. */
static void
test_resync_during_read(void)
{
    g_autoptr(StoreBench) b = store_bench_new();
    StoreGate gate = {0};
    Follower f = {.step = 1};

    store_bench_open(b, &(DbSpec){.readers = 1});
    store_append(b->db, &created, 6000);
    db_read(b->db, store_gate_work, NULL, &gate, NULL);
    store_gate_wait(&gate);
    follower_start(&f, b->log, NULL, 10); /* its read waits behind the gate */
    store_prune(b->log, G_MAXINT64);
    store_gate_open(&gate);
    follower_until(&f, 6000);
    g_assert_cmpuint(f.resyncs, ==, 1);
    g_assert_cmpuint(f.events, ==, 0);
    event_cursor_free(f.cursor);
}

static void
test_resync_from_the_future(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    Follower f = {.step = 1};

    store_append(b->db, &created, 3);
    follower_start(&f, b->log, NULL, 4);
    g_assert_cmpuint(f.resyncs, ==, 1);
    g_assert_cmpint(event_cursor_seq(f.cursor), ==, 3);
    store_append(b->db, &created, 1);
    g_assert_cmpuint(f.events, ==, 1);
    event_cursor_free(f.cursor);
}

/* A restore has begun when the page arrives: the cursor waits for the word of its end, and
 * goes on if the content stayed. */
static void
test_restore_begins_meanwhile(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    Follower f = {.step = 1};

    store_append(b->db, &created, 6000);
    follower_start(&f, b->log, NULL, 0);
    guint generation = (guint)g_atomic_int_add(&b->db->generation, 1) + 1;
    while (b->log->reading > 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(f.events + f.wakes, ==, 0);
    b->db->listener.replaced(NULL, generation, b->db->listener.data);
    follower_until(&f, 6000);
    g_assert_cmpuint(f.events, ==, 6000);
    g_assert_cmpuint(f.resyncs, ==, 0);
    event_cursor_free(f.cursor);
}

/* ---- trouble ---- */

typedef struct Passage {
    StoreGate gate; /* first: the job's data is the gate */
    bool left;
} Passage;

static void
on_gate_left(void *data, const GError *error)
{
    g_assert_no_error(error);
    ((Passage *)data)->left = true;
}

static void
test_failed_read_can_be_repeated(void)
{
    g_autoptr(StoreBench) b = store_bench_new();
    Passage p = {0};
    Follower f = {.step = 1};

    store_bench_open(b, &(DbSpec){.readers = 1, .queue_max = 1});
    store_append(b->db, &created, 6000);
    db_read(b->db, store_gate_work, NULL, &p, NULL);
    store_gate_wait(&p.gate);
    db_read(b->db, store_gate_work, on_gate_left, &p, NULL); /* the queue is full */
    follower_start(&f, b->log, NULL, 0);
    while (f.failures == 0)
        g_main_context_iteration(NULL, TRUE);
    store_gate_open(&p.gate);
    while (!p.left)
        g_main_context_iteration(NULL, TRUE);
    follower_drain(&f);
    follower_until(&f, 6000);
    g_assert_cmpuint(f.events, ==, 6000);
    event_cursor_free(f.cursor);
}

typedef struct Suicide {
    EventCursor *cursors[3];
    guint wakes;
} Suicide;

static void
free_all(void *data)
{
    Suicide *s = data;

    s->wakes++;
    for (size_t i = 0; i < G_N_ELEMENTS(s->cursors); i++)
        g_clear_pointer(&s->cursors[i], event_cursor_free);
}

static void
test_free_inside_wake(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();

    for (int behind = 0; behind < 2; behind++) {
        Suicide s = {0};

        for (size_t i = 0; i < G_N_ELEMENTS(s.cursors); i++) {
            g_autoptr(Event) event = NULL;

            s.cursors[i] = event_cursor_new(b->log, NULL, behind ? 0 : -1, free_all, &s);
            g_assert_cmpint(event_cursor_next(s.cursors[i], &event), ==, EVENT_WAIT);
        }
        store_append(b->db, &created, 2 * EVENT_RING_MAX);
        while (s.wakes == 0)
            g_main_context_iteration(NULL, TRUE);
        g_assert_cmpuint(s.wakes, ==, 1);
        g_assert_cmpint(store_read_int(b->db, "SELECT 1"), ==, 1);
    }
}

static void
test_close_with_reads_under_way(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    Follower f[20];

    store_append(b->db, &created, 6000);
    for (guint i = 0; i < G_N_ELEMENTS(f); i++) {
        f[i] = (Follower){.step = 1};
        follower_start(&f[i], b->log, NULL, 0);
    }
    event_cursor_free(f[0].cursor);
    store_bench_close(b);
    for (guint i = 1; i < G_N_ELEMENTS(f); i++) {
        g_autoptr(Event) event = NULL;

        g_assert_cmpint(event_cursor_next(f[i].cursor, &event), ==, EVENT_FAILED);
        event_cursor_free(f[i].cursor);
    }
}

/* Slow readers by the hundred: the pages they do not consume are bounded together, and none
 * loses its place. */
static void
test_pages_are_bounded(void)
{
    enum { N = 300 };
    g_autofree char *fill = g_strnfill(1000, 'x');
    g_autofree char *data = g_strdup_printf("{\"x\":\"%s\"}", fill);
    const EventSpec big = {.kind = "box.created", .actor = "coop", .data = data};
    g_autoptr(StoreBench) b = store_bench_new_open();
    g_autofree Follower *f = g_new0(Follower, N);
    guint woken = 0;
    size_t most = 0;

    store_append(b->db, &big, EVENT_RING_MAX + 500);
    for (guint i = 0; i < N; i++) {
        f[i] = (Follower){.step = 1, .idle = true};
        follower_start(&f[i], b->log, NULL, i % 100);
    }
    while (woken < N) {
        g_main_context_iteration(NULL, TRUE);
        most = MAX(most, b->log->paged_bytes);
        woken = 0;
        for (guint i = 0; i < N; i++)
            woken += f[i].wakes;
    }
    g_assert_cmpuint(most, >, 8 * 1024 * 1024);
    g_assert_cmpuint(most, <, 17 * 1024 * 1024);
    for (guint i = 0; i < N; i += 101) {
        f[i].idle = false;
        follower_drain(&f[i]);
        follower_until(&f[i], EVENT_RING_MAX + 500);
        g_assert_cmpuint(f[i].events, ==, EVENT_RING_MAX + 500 - i % 100);
    }
    for (guint i = 0; i < N; i++)
        event_cursor_free(f[i].cursor);
    g_assert_cmpuint(b->log->paged_bytes, ==, 0);
}

static void
test_many_idle(void)
{
    enum { N = 10000 };
    g_autoptr(StoreBench) b = store_bench_new_open();
    const EventFilter other = {.box_id = "b2"};
    g_autofree Follower *f = g_new0(Follower, N);

    for (guint i = 0; i < N; i++)
        follower_start(&f[i], b->log, i % 2 == 0 ? &other : NULL, -1);
    store_append(b->db, &created, 10);
    for (guint i = 0; i < N; i++) {
        g_assert_cmpuint(f[i].events, ==, i % 2 == 0 ? 0 : 10);
        g_assert_cmpint(event_cursor_seq(f[i].cursor), ==, 10);
        event_cursor_free(f[i].cursor);
    }
}

/* ---- pages ---- */

typedef struct Page {
    bool done;
    guint events;
    gint64 first, last, seq, next_after;
    bool more;
} Page;

static void
on_page(const EventPage *page, const GError *error, void *data)
{
    guint n = page->events->len;

    g_assert_no_error(error);
    *(Page *)data = (Page){
        .done = true,
        .events = n,
        .first = n > 0 ? ((Event *)page->events->pdata[0])->seq : 0,
        .last = n > 0 ? ((Event *)page->events->pdata[n - 1])->seq : 0,
        .seq = page->seq,
        .next_after = page->next_after,
        .more = page->more,
    };
}

static Page
read_page(EventLog *log, const EventFilter *filter, gint64 after, guint limit)
{
    Page page = {0};

    event_log_read(log, filter, after, limit, on_page, &page);
    while (!page.done)
        g_main_context_iteration(NULL, TRUE);
    return page;
}

static void
test_pages(void)
{
    static const char *const task_kinds[] = {"task.*", NULL};
    static const EventFilter task = {.kinds = task_kinds}, box = {.box_id = "b1"};
    static const struct {
        const EventFilter *filter;
        gint64 after;
        guint limit;
        guint events;
        gint64 first, last, next_after;
        bool more;
    } cases[] = {
        {NULL, 0, 10, 10, 1, 10, 10, true},
        {NULL, -5, 0, 1, 1, 1, 1, true},
        {NULL, 0, 100000, EVENT_PAGE_MAX, 1, EVENT_PAGE_MAX, EVENT_PAGE_MAX, true},
        {NULL, 10002, 10, 2, 10003, 10004, 10004, false},
        {NULL, 9994, 10, 10, 9995, 10004, 10004, false},
        {NULL, 10004, 10, 0, 0, 0, 10004, false},
        {NULL, 99999, 10, 0, 0, 0, 10004, false},
        {&task, 0, 10, 4, 1, 7504, 10004, false},
        {&task, 0, 4, 4, 1, 7504, 10004, false},
        {&task, 0, 3, 3, 1, 5003, 7503, true},
        {&task, 2502, 1, 1, 5003, 5003, 7503, true},
        {&task, 7504, 1, 0, 0, 0, 10004, false},
        {&box, 0, 1, 1, 2, 2, 2, true},
        {&box, 2500, 2, 2, 2501, 2503, 2503, true},
    };
    g_autoptr(StoreBench) b = store_bench_new_open();

    for (int i = 0; i < 4; i++) {
        store_append(b->db, &moved, 1);
        store_append(b->db, &created, 2500);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Page page = read_page(b->log, cases[i].filter, cases[i].after, cases[i].limit);

        g_test_message("case %zu", i);
        g_assert_cmpint(page.seq, ==, 10004);
        g_assert_cmpuint(page.events, ==, cases[i].events);
        g_assert_cmpint(page.first, ==, cases[i].first);
        g_assert_cmpint(page.last, ==, cases[i].last);
        g_assert_cmpint(page.next_after, ==, cases[i].next_after);
        g_assert_true(page.more == cases[i].more);
    }
}

static void
test_page_bytes(void)
{
    g_autofree char *fill = g_strnfill(30000, 'x');
    g_autofree char *data = g_strdup_printf("{\"x\":\"%s\"}", fill);
    const EventSpec big = {.kind = "box.created", .actor = "coop", .data = data};
    g_autoptr(StoreBench) b = store_bench_new_open();

    store_append(b->db, &big, 50);
    Page page = read_page(b->log, NULL, 0, 50);
    g_assert_cmpuint(page.events, ==, 34); /* 1 MiB */
    g_assert_true(page.more);
    g_assert_cmpint(page.next_after, ==, 34);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/follow/from-now-on", test_from_now_on);
    g_test_add_func("/follow/from-ring", test_from_ring);
    g_test_add_func("/follow/filtered", test_filtered);
    g_test_add_func("/follow/behind-ring", test_behind_ring);
    g_test_add_func("/follow/catch-up", test_catch_up_while_appending);
    g_test_add_func("/follow/large-commit", test_commit_larger_than_ring);
    g_test_add_func("/follow/resync/pruned", test_resync_after_prune);
    g_test_add_func("/follow/resync/pruned-meanwhile", test_resync_during_read);
    g_test_add_func("/follow/resync/future", test_resync_from_the_future);
    g_test_add_func("/follow/restore-begun", test_restore_begins_meanwhile);
    g_test_add_func("/follow/failed-read", test_failed_read_can_be_repeated);
    g_test_add_func("/follow/free-inside-wake", test_free_inside_wake);
    g_test_add_func("/follow/close", test_close_with_reads_under_way);
    g_test_add_func("/follow/pages-bounded", test_pages_are_bounded);
    g_test_add_func("/follow/many-idle", test_many_idle);
    g_test_add_func("/events/page/cases", test_pages);
    g_test_add_func("/events/page/bytes", test_page_bytes);
    return g_test_run();
}
