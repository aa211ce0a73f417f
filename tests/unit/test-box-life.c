/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a box: time, pause, kill, and ends of its own. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "support/box-world.h"

enum { MINUTE = 60, HOUR = 3600 };

static Box *
box_of(World *w, const BoxSpec *spec)
{
    g_auto(Made) made = {0};

    world_create(w, spec, &made);
    g_assert_no_error(made.error);
    return made.box;
}

static char *
id_of(Box *box)
{
    BoxInfo info;

    box_info(box, &info);
    return g_strdup(info.id);
}

/* ---- time ---- */

static void
test_idle(void)
{
    g_autoptr(World) w = world_new();
    Box *quiet = world_box(w, "k1"), *touched = world_box(w, "k1"), *running = world_box(w, "k1");
    g_autofree char *quiet_id = id_of(quiet);
    g_autofree char *touched_id = id_of(touched);
    g_autofree char *running_id = id_of(running);

    world_tick(w, 29 * MINUTE);
    box_touch(touched);
    fake_link_active(fake_link_of(running_id));
    world_tick(w, 59);
    g_assert_nonnull(box_host_find(w->host, quiet_id, NULL));
    world_tick(w, 1);
    g_assert_null(box_host_find(w->host, quiet_id, NULL));
    g_assert_nonnull(box_host_find(w->host, touched_id, NULL));
    g_assert_nonnull(box_host_find(w->host, running_id, NULL));
    assert_row(w, quiet_id, "terminated", "expired");
    g_assert_false(fake_keeper_has(quiet_id));
    g_autofree char *events = world_events(w, quiet_id);

    g_assert_cmpstr(events, ==, "box.created box.ready box.warned box.expired");
}

static void
test_deadline(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *id = id_of(world_box(w, "k1"));

    for (int i = 0; i < 59; i++) {
        world_tick(w, MINUTE);
        box_touch(box_host_find(w->host, id, NULL));
    }
    world_tick(w, 59);
    g_assert_nonnull(box_host_find(w->host, id, NULL));
    world_tick(w, 1); /* however busy it was */
    assert_row(w, id, "terminated", "expired");
}

static guint
warnings_of(World *w, const char *id)
{
    g_autofree char *events = world_events(w, id);
    g_auto(GStrv) parts = g_strsplit(events, "box.warned", -1);

    return g_strv_length(parts) - 1;
}

/* Once, and again when use or renewal have moved the end away. */
static void
test_warning(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *idle = id_of(world_box(w, "k1"));
    g_autofree char *brief = id_of(box_of(w, &(BoxSpec){.owner = "k1", .lifetime_ms = 8000}));
    g_autofree char *briefest = id_of(box_of(w, &(BoxSpec){.owner = "k1", .lifetime_ms = 1000}));
    const struct {
        const char *id;
        int seconds; /* further on */
        bool touch;
        guint warnings; /* by then */
    } steps[] = {
        {briefest, 0, false, 1}, {brief, 5, false, 0},          {brief, 1, false, 1}, {brief, 1, false, 1},
        {idle, 0, false, 0},     {idle, 28 * MINUTE, false, 0}, {idle, 53, false, 1}, {idle, 1, true, 1},
        {idle, 2, false, 1},     {idle, 28 * MINUTE, false, 1}, {idle, 59, false, 2}, {idle, 1, false, 2},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        world_tick(w, steps[i].seconds);
        g_test_message("step %d", (int)i);
        g_assert_cmpuint(warnings_of(w, steps[i].id), ==, steps[i].warnings);
        if (steps[i].touch)
            box_touch(box_host_find(w->host, steps[i].id, NULL));
    }
    world_tick(w, MINUTE);
    assert_row(w, idle, "terminated", "expired");
    assert_row(w, brief, "terminated", "expired");
}

/* One that is used each time its end is near is told of once in a while only. */
static void
test_warning_again_and_again(void)
{
    g_autoptr(World) w = world_new();
    Box *box = box_of(w, &(BoxSpec){.owner = "k1", .idle_ms = 10 * 1000});
    g_autofree char *id = id_of(box);

    for (int i = 0; i < 30; i++) {
        world_tick(w, 8);
        box_touch(box);
        world_tick(w, 1);
    }
    g_assert_cmpuint(warnings_of(w, id), ==, 1);
    for (int i = 0; i < 60; i++) {
        world_tick(w, 8);
        box_touch(box);
        world_tick(w, 1);
    }
    g_assert_cmpuint(warnings_of(w, id), ==, 2);
}

static void
test_warning_after_restart(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *id = id_of(box_of(w, &(BoxSpec){.owner = "k1", .lifetime_ms = 8000}));

    world_tick(w, 6);
    g_assert_cmpuint(warnings_of(w, id), ==, 1);
    world_restart(w);
    world_tick(w, 1);
    g_assert_cmpuint(warnings_of(w, id), ==, 1);
    g_auto(Ended) renewed = {0};

    box_renew(box_host_find(w->host, id, NULL), 8000, NULL, on_box_done, &renewed);
    world_tick(w, 1);
    world_tick(w, 5);
    g_assert_cmpuint(warnings_of(w, id), ==, 2);
}

static void
test_wall_clock(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    BoxInfo info;

    fake_clock_jump(100 * HOUR);
    world_tick(w, 1);
    assert_state(box, BOX_READY, NULL);
    box_info(box, &info);
    g_assert_cmpint(info.expires_us - clock_wall_us(), ==, (gint64)(30 * MINUTE - 1) * G_USEC_PER_SEC);
    g_assert_cmpint(info.uptime_ms, ==, 1000);
    fake_clock_jump(-200 * HOUR);
    world_restart(w);
    world_tick(w, 1);
    g_autoptr(Json) list = json_array();
    BoxHostStats stats;

    box_host_stats(w->host, &stats);
    g_assert_cmpuint(stats.live, ==, 1);
    world_tick(w, 40 * MINUTE);
    box_host_stats(w->host, &stats);
    g_assert_cmpuint(stats.live, ==, 0);
}

static void
test_deadline_after_restart(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *id = id_of(box_of(w, &(BoxSpec){.owner = "k1", .lifetime_ms = HOUR * 1000}));

    world_tick(w, 25 * MINUTE);
    world_restart(w);
    world_tick(w, 25 * MINUTE);
    box_touch(box_host_find(w->host, id, NULL));
    world_tick(w, 10 * MINUTE);
    assert_row(w, id, "terminated", "expired");
}

static void
test_renew(void)
{
    static const gint64 bad[] = {0, -1, 999, BOX_LIFE_MAX_MS + 1};
    g_autoptr(World) w = world_new();
    Box *box = box_of(w, &(BoxSpec){.owner = "k1", .idle_ms = BOX_LIFE_MAX_MS});
    g_autofree char *id = id_of(box);
    g_auto(Ended) ended = {0};

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_auto(Ended) refused = {0};

        box_renew(box, bad[i], NULL, on_box_done, &refused);
        world_settle(w);
        g_assert_cmpint(err_kind(refused.error), ==, ERR_INVALID);
    }
    world_tick(w, 59 * MINUTE);
    box_renew(box, 2 * HOUR * 1000, NULL, on_box_done, &ended);
    world_settle(w);
    g_assert_true(ended.done && ended.error == NULL);
    world_tick(w, 119 * MINUTE);
    assert_state(box, BOX_READY, NULL);
    for (int i = 0; i < 30; i++) { /* again and again, but not for ever */
        Box *live = box_host_find(w->host, id, NULL);

        if (live != NULL)
            box_renew(live, 2 * HOUR * 1000, NULL, NULL, NULL);
        world_tick(w, HOUR - 2);
    }
    assert_row(w, id, "terminated", "expired");
}

static void
test_keep(void)
{
    g_autoptr(World) w = world_new();
    BoxSpec spec = {.owner = "k1", .keep = true};
    Box *box = box_of(w, &spec);
    g_autofree char *id = id_of(box);
    g_auto(Ended) resumed = {0};

    world_tick(w, 31 * MINUTE);
    assert_state(box, BOX_PAUSED, NULL);
    g_assert_cmpuint(fake_keeper_calls(KEEPER_FREEZE), ==, 1);
    assert_row(w, id, "paused", NULL);
    world_tick(w, 2 * HOUR);
    assert_state(box, BOX_PAUSED, NULL);
    box_resume(box, NULL, on_box_done, &resumed); /* somebody wants it after all */
    world_settle(w);
    g_assert_no_error(resumed.error);
    world_tick(w, 29 * MINUTE);
    assert_state(box, BOX_READY, NULL);
    world_tick(w, 2 * MINUTE);
    assert_state(box, BOX_PAUSED, NULL);
    world_tick(w, 24 * HOUR);
    assert_row(w, id, "terminated", "expired");
    g_autofree char *events = world_events(w, id);

    g_assert_cmpstr(events, ==,
                    "box.created box.ready box.expired box.resumed box.warned box.expired box.killed");
}

static void
test_keep_without_freezer(void)
{
    g_autoptr(World) w = world_new();
    BoxSpec spec = {.owner = "k1", .keep = true};
    g_autofree char *id = id_of(box_of(w, &spec));

    fake_keeper_fail(KEEPER_FREEZE, ERR_UNAVAILABLE);
    world_tick(w, 31 * MINUTE);
    assert_row(w, id, "terminated", "expired");
}

/* ---- pause ---- */

static void
test_pause(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);
    g_auto(Ended) paused = {0}, twice = {0}, resumed = {0}, again = {0}, killed = {0};
    g_autoptr(GError) error = NULL;
    static const char *const argv[] = {"true", NULL};
    RunSpec spec = {.argv = argv};

    box_pause(box, "local", on_box_done, &paused);
    box_pause(box, "local", on_box_done, &twice);
    g_assert_null(box_start(box, &spec, NULL, &error)); /* on its way there already */
    g_assert_cmpint(err_kind(error), ==, ERR_CONFLICT);
    g_clear_error(&error);
    world_settle(w);
    g_assert_true(paused.done && paused.error == NULL);
    g_assert_cmpint(err_kind(twice.error), ==, ERR_CONFLICT);
    assert_row(w, id, "paused", NULL);
    g_assert_null(box_start(box, &spec, NULL, &error));
    g_assert_cmpint(err_kind(error), ==, ERR_CONFLICT);
    world_tick(w, 40 * MINUTE); /* put aside is not idle */
    assert_state(box, BOX_PAUSED, NULL);
    box_resume(box, "local", on_box_done, &resumed);
    world_settle(w);
    assert_state(box, BOX_READY, NULL);
    box_pause(box, "local", on_box_done, &again);
    world_settle(w);
    box_kill(box, "killed", "local", on_box_done, &killed);
    world_settle(w);
    g_assert_true(killed.done && killed.error == NULL);
    assert_row(w, id, "terminated", "killed");
    g_autofree char *events = world_events(w, id);

    g_assert_cmpstr(events, ==, "box.created box.ready box.paused box.resumed box.paused box.killed");
}

static void
test_pause_fails(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_auto(Ended) paused = {0}, late = {0};

    fake_keeper_fail(KEEPER_FREEZE, ERR_UNAVAILABLE);
    box_pause(box, NULL, on_box_done, &paused);
    world_settle(w);
    g_assert_cmpint(err_kind(paused.error), ==, ERR_UNAVAILABLE);
    assert_state(box, BOX_READY, NULL);
    /* Killed while it is being frozen. */
    fake_keeper_hold(KEEPER_FREEZE);
    box_pause(box, NULL, on_box_done, &late);
    box_kill(box, "killed", NULL, NULL, NULL);
    world_settle(w);
    fake_keeper_release(KEEPER_FREEZE);
    world_settle(w);
    g_assert_cmpint(err_kind(late.error), ==, ERR_CONFLICT);
}

/* ---- kill ---- */

static void
test_kill(void)
{
    g_autoptr(World) w = world_new();
    g_autoptr(Box) box = box_ref(world_box(w, "k1"));
    g_autofree char *id = id_of(box);
    g_auto(Ended) a = {0}, b = {0}, c = {0};

    fake_keeper_hold(KEEPER_KILL);
    box_kill(box, "killed", "key:k1", on_box_done, &a);
    box_kill(box, "other", "key:k2", on_box_done, &b);
    world_settle(w);
    assert_state(box, BOX_STOPPING, NULL);
    assert_row(w, id, "stopping", "killed"); /* for a server that comes after a kill -9 */
    g_assert_false(a.done || b.done);
    g_assert_cmpuint(fake_keeper_calls(KEEPER_KILL), ==, 1);
    g_assert_cmpuint(fake_links_stopped(), ==, 1);
    fake_keeper_release(KEEPER_KILL);
    world_settle(w);
    g_assert_true(a.done && b.done && a.error == NULL && b.error == NULL);
    assert_state(box, BOX_TERMINATED, "killed");
    assert_row(w, id, "terminated", "killed");
    box_kill(box, "again", NULL, on_box_done, &c);
    g_assert_false(c.done);
    world_settle(w);
    g_assert_true(c.done && c.error == NULL);
    g_autofree char *events = world_events(w, id);

    g_assert_cmpstr(events, ==, "box.created box.ready box.killed");
    g_autoptr(Json) row = world_row(w, id);

    g_assert_true(json_is_string(json_object_get(row, "ended_at")));
    /* What it was given may have been secret. */
    g_assert_cmpint(store_read_int(w->store->db, "SELECT count(*) FROM sandboxes WHERE env <> '[]'"), ==, 0);
}

/* Who comes after a kill -9 has to know why the box is gone. */
static void
test_kill_follows_its_row(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    StoreGate gate = {0};
    g_auto(Ended) ended = {0};

    db_write(w->store->db, store_gate_work, NULL, &gate, NULL);
    store_gate_wait(&gate);
    box_kill(box, "killed", NULL, on_box_done, &ended);
    /* A LIST that is still to be judged when the row is there would ask for the end a second time. */
    for (int i = 0; i < 2; i++) {
        fake_keeper_lose(false); /* and is there again, with a LIST */
        while (g_main_context_iteration(NULL, FALSE))
            ;
        g_assert_cmpuint(fake_keeper_calls(KEEPER_KILL), ==, 0);
        g_assert_cmpuint(fake_links_stopped(), ==, 0);
    }
    store_gate_open(&gate);
    world_settle(w);
    g_assert_true(ended.done && ended.error == NULL);
    g_assert_cmpuint(fake_keeper_calls(KEEPER_KILL), ==, 1);
}

static void
test_kill_while_creating(void)
{
    g_autoptr(World) w = world_new();
    BoxSpec spec = {.owner = "k1", .lease = "l"};
    g_auto(Made) made = {0}, next = {0};
    g_auto(Ended) killed = {0};

    fake_keeper_hold(KEEPER_CREATE);
    world_begin(w, &spec, &made);
    world_settle(w);
    g_autofree char *id = g_strdup(fake_keeper_last(KEEPER_CREATE)->box);

    fake_keeper_fail(KEEPER_CREATE, ERR_CANCELLED); /* as the keeper does */
    box_kill(box_host_find(w->host, id, NULL), "killed", NULL, on_box_done, &killed);
    fake_keeper_release(KEEPER_CREATE);
    world_settle(w);
    g_assert_cmpint(err_kind(made.error), ==, ERR_CONFLICT);
    g_assert_true(killed.done && killed.error == NULL);
    assert_row(w, id, "terminated", "killed");
    world_create(w, &spec, &next);
    g_assert_true(next.created);
}

static void
test_stuck(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);
    g_auto(Ended) ended = {0};

    fake_keeper_hold(KEEPER_KILL);
    box_kill(box, "killed", NULL, on_box_done, &ended);
    world_settle(w);
    world_tick(w, 10);
    g_assert_false(ended.done);
    world_tick(w, 1);
    g_assert_cmpint(err_kind(ended.error), ==, ERR_TIMEOUT);
    assert_state(box, BOX_ERROR, "stuck");
    assert_row(w, id, "error", "stuck");
    g_assert_true(box_host_find(w->host, id, NULL) == box); /* something of it is there */
    world_upkeep(w);
    g_assert_cmpuint(fake_keeper_calls(KEEPER_KILL), ==, 2);
    fake_keeper_release(KEEPER_KILL);
    world_settle(w);
    g_assert_null(box_host_find(w->host, id, NULL));
    assert_row(w, id, "terminated", "killed");
}

static void
test_kill_while_keeper_is_away(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);
    g_auto(Ended) ended = {0};

    fake_keeper_lose(true);
    box_kill(box, "killed", NULL, on_box_done, &ended);
    world_tick(w, 5);
    g_assert_false(ended.done);
    fake_keeper_return();
    world_settle(w);
    g_assert_true(ended.done && ended.error == NULL);
    assert_row(w, id, "terminated", "killed");
    g_assert_cmpuint(fake_keeper_live(), ==, 0);
}

/* ---- ends of its own ---- */

static void
test_gone(void)
{
    static const struct {
        int exit_code;
        guint oom_kills;
        const char *reason;
    } rows[] = {{0, 0, "exited"}, {139, 0, "exited"}, {137, 1, "oom"}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(World) w = world_new();
        g_autoptr(Box) box = box_ref(world_box(w, "k1"));
        g_autofree char *id = id_of(box);

        fake_keeper_gone(id, rows[i].exit_code, rows[i].oom_kills);
        world_settle(w);
        assert_state(box, BOX_ERROR, rows[i].reason);
        assert_row(w, id, "error", rows[i].reason);
        g_assert_null(box_host_find(w->host, id, NULL));
        g_autofree char *events = world_events(w, id);

        g_assert_cmpstr(events, ==, "box.created box.ready box.failed");
    }
}

/* A counter that had moved before does not make an ordinary end one of memory. */
static void
test_gone_after_oom(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);
    static const char *const argv[] = {"true", NULL};
    g_autoptr(Run) run = box_start(box, &(RunSpec){.argv = argv}, NULL, NULL);

    fake_keeper_set_oom(2);
    fake_run_ask_oom(fake_link_of(id), run_id(run));
    world_settle(w);
    fake_keeper_gone(id, 0, 2);
    world_settle(w);
    assert_row(w, id, "error", "exited");
}

static void
test_broken_channel(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *id = id_of(world_box(w, "k1"));

    fake_link_close(fake_link_of(id));
    world_tick(w, 2);
    g_assert_nonnull(box_host_find(w->host, id, NULL)); /* the keeper may have a word */
    world_tick(w, 1);
    assert_row(w, id, "error", "broken");
    g_assert_false(fake_keeper_has(id));
}

static void
test_health(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *id = id_of(world_box(w, "k1"));

    fake_link_set_alive(false);
    world_upkeep(w);
    world_upkeep(w);
    fake_link_set_alive(true);
    world_upkeep(w);
    fake_link_set_alive(false);
    world_upkeep(w);
    world_upkeep(w);
    g_assert_nonnull(box_host_find(w->host, id, NULL));
    world_upkeep(w);
    assert_row(w, id, "error", "unresponsive");
    g_assert_false(fake_keeper_has(id));
}

static void
test_storage(void)
{
    static const struct {
        int error;
        bool goes_on;
    } rows[] = {{ENOSPC, true}, {EIO, false}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(World) w = world_new();
        Box *box = world_box(w, "k1");
        g_autofree char *id = id_of(box);
        KeeperAnswer trouble = {.verb = KEEPER_TROUBLE, .stage = TROUBLE_STORAGE, .error = rows[i].error};
        g_auto(Ended) resumed = {0}, killed = {0};
        g_autoptr(GError) error = NULL;
        static const char *const argv[] = {"true", NULL};

        g_strlcpy(trouble.box, id, sizeof trouble.box);
        fake_keeper_tell(&trouble);
        fake_keeper_tell(&trouble);
        world_settle(w);
        assert_state(box, BOX_ERROR, "storage");
        assert_row(w, id, "error", "storage");
        g_assert_true(box_host_find(w->host, id, NULL) == box);
        g_assert_null(box_start(box, &(RunSpec){.argv = argv}, NULL, &error));
        g_assert_cmpint(err_kind(error), ==, ERR_CONFLICT);
        world_tick(w, 31 * MINUTE); /* nobody can use it, so it is not idle */
        assert_state(box, BOX_ERROR, "storage");
        box_resume(box, NULL, on_box_done, &resumed);
        world_settle(w);
        g_assert_cmpint(resumed.error == NULL, ==, rows[i].goes_on);
        g_assert_cmpuint(fake_keeper_calls(KEEPER_THAW), ==, rows[i].goes_on);
        if (rows[i].goes_on) {
            assert_state(box, BOX_READY, NULL);
            fake_keeper_tell(&trouble);
            world_settle(w);
        }
        world_restart(w); /* the keeper tells it again */
        fake_keeper_tell(&trouble);
        world_settle(w);
        assert_row(w, id, "error", "storage");
        box_kill(box_host_find(w->host, id, NULL), "killed", NULL, on_box_done, &killed);
        world_settle(w);
        g_assert_true(killed.done && killed.error == NULL);
        assert_row(w, id, "terminated", "killed");
    }
}

static void
test_storage_expires(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *id = id_of(world_box(w, "k1"));
    KeeperAnswer trouble = {.verb = KEEPER_TROUBLE, .stage = TROUBLE_STORAGE, .error = EIO};

    g_strlcpy(trouble.box, id, sizeof trouble.box);
    fake_keeper_tell(&trouble);
    world_tick(w, HOUR);
    assert_row(w, id, "terminated", "expired");
}

/* The store fails at the worst moment; the end is written when it can be. */
static void
test_end_is_written_later(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);
    g_auto(Ended) ended = {0};

    g_assert_true(store_write_sql(w->store->db,
                                  "CREATE TRIGGER refuse BEFORE UPDATE ON sandboxes "
                                  "BEGIN SELECT RAISE(ABORT, 'refused'); END",
                                  NULL));
    box_kill(box, "killed", "key:k1", on_box_done, &ended);
    world_settle(w);
    g_assert_true(ended.done && ended.error == NULL);
    g_assert_null(box_host_find(w->host, id, NULL));
    assert_row(w, id, "ready", NULL);
    g_assert_true(store_write_sql(w->store->db, "DROP TRIGGER refuse", NULL));
    for (int i = 0; i < 10; i++)
        world_tick(w, 1);
    assert_row(w, id, "terminated", "killed");
    g_autofree char *events = world_events(w, id);

    g_assert_cmpstr(events, ==, "box.created box.ready box.killed");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/life/idle", test_idle);
    g_test_add_func("/life/deadline", test_deadline);
    g_test_add_func("/life/warning", test_warning);
    g_test_add_func("/life/warning-again-and-again", test_warning_again_and_again);
    g_test_add_func("/life/warning-after-restart", test_warning_after_restart);
    g_test_add_func("/life/wall-clock", test_wall_clock);
    g_test_add_func("/life/deadline-after-restart", test_deadline_after_restart);
    g_test_add_func("/life/renew", test_renew);
    g_test_add_func("/life/keep", test_keep);
    g_test_add_func("/life/keep-without-freezer", test_keep_without_freezer);
    g_test_add_func("/life/pause", test_pause);
    g_test_add_func("/life/pause-fails", test_pause_fails);
    g_test_add_func("/life/kill", test_kill);
    g_test_add_func("/life/kill-follows-its-row", test_kill_follows_its_row);
    g_test_add_func("/life/kill-while-creating", test_kill_while_creating);
    g_test_add_func("/life/stuck", test_stuck);
    g_test_add_func("/life/kill-while-keeper-is-away", test_kill_while_keeper_is_away);
    g_test_add_func("/life/gone", test_gone);
    g_test_add_func("/life/gone-after-oom", test_gone_after_oom);
    g_test_add_func("/life/broken-channel", test_broken_channel);
    g_test_add_func("/life/health", test_health);
    g_test_add_func("/life/storage", test_storage);
    g_test_add_func("/life/storage-expires", test_storage_expires);
    g_test_add_func("/life/end-is-written-later", test_end_is_written_later);
    return g_test_run();
}
