/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and their rows, and what a restarted server, or one whose keeper came back, finds. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "support/box-world.h"

static const char *const argv_of_test[] = {"/bin/sh", "-c", "make test", NULL};

static char *
id_of(Box *box)
{
    BoxInfo info;

    box_info(box, &info);
    return g_strdup(info.id);
}

static guint32
start(Box *box)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Run) run = box_start(box, &(RunSpec){.argv = argv_of_test}, "key:k1", &error);

    g_assert_no_error(error);
    return run_id(run);
}

static void
assert_command(World *w, const char *id, size_t at, const char *reason, int exit_code)
{
    g_autoptr(Json) list = world_commands(w, id);
    Json *row = json_array_get(list, at);

    g_assert_nonnull(row);
    g_assert_cmpstr(json_string_value(json_object_get(row, "reason")), ==, reason);
    if (reason != NULL)
        g_assert_cmpint(json_integer_value(json_object_get(row, "exit_code")), ==, exit_code);
}

/* ---- commands ---- */

static void
test_command(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);
    guint32 run = start(box);
    BoxInfo info;

    box_info(box, &info);
    g_assert_true(info.busy);
    g_assert_cmpuint(info.executions, ==, 1);
    g_autoptr(Json) early = box_command_row(box, run); /* before the store has it */

    g_assert_cmpstr(json_string_value(json_object_get(early, "command")), ==, "make test");
    g_assert_true(json_is_null(json_object_get(early, "reason")));
    world_settle(w);
    assert_command(w, id, 0, NULL, 0);
    fake_run_end(fake_link_of(id), run, RUN_EXIT, 3);
    g_assert_nonnull(box_find_run(box, run)); /* init keeps it until it is written down */
    world_settle(w);
    g_assert_null(box_find_run(box, run));
    assert_command(w, id, 0, "exit", 3);
    g_assert_null(box_command_row(box, run));
    box_info(box, &info);
    g_assert_false(info.busy);
    g_autofree char *events = world_events(w, id);

    g_assert_cmpstr(events, ==, "box.created box.ready command.started command.ended");
    g_autoptr(Json) list = world_commands(w, id);
    static const struct {
        const char *name, *value;
    } texts[] = {{"command", "make test"}, {"user", "user"}, {"cwd", "/home/user"}, {"actor", "key:k1"}};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_assert_cmpstr(json_string_value(json_object_get(json_array_get(list, 0), texts[i].name)), ==,
                        texts[i].value);
    g_assert_cmpint(json_integer_value(json_object_get(json_array_get(list, 0), "stdout_bytes")), ==, 5);
    BoxHostStats stats;

    box_host_stats(w->host, &stats);
    g_assert_cmpuint(stats.runs_started, ==, 1);
    g_assert_cmpuint(stats.runs_by_reason[RUN_EXIT], ==, 1);
}

static void
test_surroundings(void)
{
    static const char *const of_box[] = {"A=box", "B=box", NULL};
    static const char *const of_run[] = {"B=run", "C=run", NULL};
    g_autoptr(World) w = world_new();
    g_auto(Made) made = {0};

    world_create(w, &(BoxSpec){.owner = "k1", .env = of_box}, &made);
    g_autoptr(Run) a = box_start(made.box, &(RunSpec){.argv = argv_of_test, .env = of_run}, NULL, NULL);
    g_autofree char *env = fake_link_dup_last_env();

    g_assert_cmpstr(env, ==, "PATH=/bin HOME=/home/user A=box B=run C=run");
    g_assert_cmpstr(fake_link_last_user(), ==, "user");
    g_assert_cmpstr(fake_link_last_cwd(), ==, "/home/user");
    g_autoptr(Run)
        b = box_start(made.box, &(RunSpec){.argv = argv_of_test, .user = "root", .cwd = "/tmp"}, NULL, NULL);

    g_assert_cmpstr(fake_link_last_user(), ==, "root");
    g_assert_cmpstr(fake_link_last_cwd(), ==, "/tmp");
    world_restart(w); /* from the row */
    g_autofree char *id = id_of(made.box);
    g_autoptr(Run)
        c = box_start(box_host_find(w->host, id, NULL), &(RunSpec){.argv = argv_of_test}, NULL, NULL);
    g_autofree char *again = fake_link_dup_last_env();

    g_assert_cmpstr(again, ==, "PATH=/bin HOME=/home/user A=box B=box");
}

static void
test_builtin_is_no_command(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);
    g_autoptr(Run) run = box_start(box, &(RunSpec){.argv = argv_of_test, .flags = START_BUILTIN}, NULL, NULL);
    BoxInfo info;

    fake_run_end(fake_link_of(id), run_id(run), RUN_EXIT, 0);
    world_settle(w);
    g_assert_null(box_find_run(box, run_id(run)));
    g_autoptr(Json) list = world_commands(w, id);

    g_assert_cmpuint(json_array_size(list), ==, 0);
    box_info(box, &info);
    g_assert_cmpuint(info.executions, ==, 0);
}

static void
test_oom(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);
    guint32 a = start(box), b = start(box), c = start(box);
    BoxLink *link = fake_link_of(id);

    fake_keeper_hold(KEEPER_STAT);
    fake_keeper_set_oom(1);
    fake_run_ask_oom(link, a);
    fake_run_ask_oom(link, b); /* one kill of the kernel's took both */
    world_settle(w);
    fake_keeper_release(KEEPER_STAT);
    world_settle(w);
    g_assert_true(fake_run_is_oom(link, a) && fake_run_is_oom(link, b));
    fake_run_ask_oom(link, c);
    world_settle(w);
    g_assert_false(fake_run_is_oom(link, c));
    assert_command(w, id, 0, "oom", 9);
    assert_command(w, id, 2, "signal", 9);
}

/* Nothing is forgotten before it is on the disk. */
static void
test_end_is_written_later(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);
    guint32 run = start(box);

    world_settle(w);
    g_assert_true(store_write_sql(w->store->db,
                                  "CREATE TRIGGER refuse BEFORE UPDATE ON commands "
                                  "BEGIN SELECT RAISE(ABORT, 'refused'); END",
                                  NULL));
    fake_run_end(fake_link_of(id), run, RUN_EXIT, 7);
    world_settle(w);
    g_assert_nonnull(box_find_run(box, run));
    g_autoptr(Json) row = box_command_row(box, run);

    g_assert_cmpint(json_integer_value(json_object_get(row, "exit_code")), ==, 7);
    g_assert_true(store_write_sql(w->store->db, "DROP TRIGGER refuse", NULL));
    for (int i = 0; i < 10; i++)
        world_tick(w, 1);
    g_assert_null(box_find_run(box, run));
    assert_command(w, id, 0, "exit", 7);
}

static void
test_start_was_not_written(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);

    g_assert_true(store_write_sql(w->store->db,
                                  "CREATE TRIGGER refuse BEFORE INSERT ON commands "
                                  "BEGIN SELECT RAISE(ABORT, 'refused'); END",
                                  NULL));
    guint32 run = start(box);

    world_settle(w);
    g_assert_true(store_write_sql(w->store->db, "DROP TRIGGER refuse", NULL));
    fake_run_end(fake_link_of(id), run, RUN_EXIT, 7);
    world_settle(w);
    assert_command(w, id, 0, "exit", 7); /* the end brings the whole row */
}

static void
test_end_is_told_once(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);
    guint32 run = start(box);

    fake_run_end(fake_link_of(id), run, RUN_EXIT, 1);
    fake_run_end(fake_link_of(id), run, RUN_EXIT, 2);
    world_settle(w);
    assert_command(w, id, 0, "exit", 1);
    g_autofree char *events = world_events(w, id);

    g_assert_cmpstr(events, ==, "box.created box.ready command.started command.ended");
}

/* ---- restart of the server ---- */

static void
test_running_command(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);
    guint32 run = start(box);

    world_settle(w);
    world_restart(w);
    Box *found = box_host_find(w->host, id, "k1");

    g_assert_true(found != NULL && found != box);
    assert_state(found, BOX_READY, NULL);
    g_assert_nonnull(box_find_run(found, run));
    fake_run_end(fake_link_of(id), run, RUN_EXIT, 5);
    world_settle(w);
    assert_command(w, id, 0, "exit", 5);
    g_assert_cmpuint(start(found), >, run); /* ids are not used twice */
    world_settle(w);
    g_autofree char *events = world_events(w, id);

    g_assert_cmpstr(events, ==, "box.created box.ready command.started command.ended command.started");
}

static void
test_found_run(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *id = id_of(world_box(w, "k1"));

    world_restart(w);
    fake_link_find(fake_link_of(id), 4);
    world_settle(w);
    assert_command(w, id, 0, NULL, 0);
    fake_run_end(fake_link_of(id), 4, RUN_EXIT, 6);
    world_settle(w);
    assert_command(w, id, 0, "exit", 6);
}

/* Killed before it wrote anything, each life of the server leaves runs that only init knows. */
static void
test_run_ids_of_lives(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *id = id_of(world_box(w, "k1"));
    guint32 last = start(box_host_find(w->host, id, NULL));

    world_settle(w);
    for (int i = 0; i < 3; i++) {
        world_restart(w);
        g_autofree char *undo = g_strdup_printf(
            "UPDATE sandboxes SET last_run = %" G_GINT64_FORMAT,
            store_read_int(w->store->db, "SELECT last_run FROM sandboxes"));
        guint32 run = start(box_host_find(w->host, id, NULL));

        g_assert_cmpuint(run, >, last + FRAME_RUNS_MAX - 1);
        last = run;
        g_clear_pointer(&w->host, box_host_free);
        world_settle(w);
        g_assert_true(store_write_sql(w->store->db, undo, NULL));
        g_assert_true(store_write_sql(w->store->db, "DELETE FROM commands", NULL));
    }
}

static void
test_what_the_list_says(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *kept = id_of(world_box(w, "k1"));
    g_autofree char *lost = id_of(world_box(w, "k1"));
    g_autofree char *exited = id_of(world_box(w, "k1"));
    g_autofree char *killed = id_of(world_box(w, "k1"));
    guint32 run = start(box_host_find(w->host, lost, NULL));

    world_settle(w);
    g_assert_cmpuint(run, >, 0);
    g_clear_pointer(&w->host, box_host_free);
    fake_keeper_forget(lost);
    fake_keeper_gone(exited, 1, 0);
    fake_keeper_gone(killed, 137, 0);
    fake_keeper_add("nobodysboxnobodysbox");
    world_start(w);
    world_load(w);
    world_settle(w);
    assert_row(w, kept, "ready", NULL);
    assert_row(w, lost, "error", "lost");
    assert_command(w, lost, 0, "lost", 0);
    assert_row(w, exited, "error", "exited");
    assert_row(w, killed, "terminated", "killed");
    g_assert_cmpuint(fake_keeper_live(), ==, 1);
    g_assert_nonnull(box_host_find(w->host, kept, NULL));
}

/* States that a kill -9 leaves in the rows. */
static void
test_what_rows_say(void)
{
    static const struct {
        const char *sql; /* what the row says */
        bool there;
        const char *state, *reason; /* what becomes of it */
        const char *event;          /* the last; NULL: that it is ready */
    } rows[] = {
        {"status = 'creating'", true, "ready", NULL, NULL},
        {"status = 'creating'", false, "error", "interrupted", "box.failed"},
        {"status = 'stopping', reason = 'killed'", true, "terminated", "killed", "box.killed"},
        {"status = 'stopping', reason = 'abandoned'", true, "terminated", "abandoned", "box.killed"},
        {"status = 'stopping', reason = 'expired'", false, "terminated", "expired", "box.expired"},
        {"status = 'stopping', reason = 'unresponsive'", true, "error", "unresponsive", "box.failed"},
        {"status = 'stopping', reason = 'broken'", true, "error", "broken", "box.failed"},
        {"status = 'stopping', reason = 'interrupted'", false, "error", "interrupted", "box.failed"},
        {"status = 'error', reason = 'stuck'", true, "terminated", "killed", "box.killed"},
        {"status = 'error', reason = 'stuck'", false, "terminated", "killed", "box.killed"},
        {"status = 'paused'", true, "ready", NULL, "box.resumed"}, /* the keeper says: it is not frozen */
        {"status = 'paused'", false, "error", "lost", "box.failed"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(World) w = world_new();
        g_autofree char *id = id_of(world_box(w, "k1"));
        g_autofree char *sql = g_strconcat("UPDATE sandboxes SET ", rows[i].sql, NULL);

        g_clear_pointer(&w->host, box_host_free);
        g_assert_true(store_write_sql(w->store->db, sql, NULL));
        if (!rows[i].there)
            fake_keeper_forget(id);
        world_start(w);
        world_load(w);
        world_settle(w);
        g_test_message("%s, %s", rows[i].sql, rows[i].there ? "there" : "not there");
        assert_row(w, id, rows[i].state, rows[i].reason);
        g_autofree char *events = world_events(w, id);

        g_assert_true(g_str_has_suffix(events, rows[i].event != NULL ? rows[i].event : "box.ready"));
        g_assert_cmpint(fake_keeper_has(id), ==, g_strcmp0(rows[i].state, "ready") == 0);
    }
}

/* The server was killed when row and box were there and the caller had not heard: only by the words
 * of a lease can anybody find it. */
static void
test_untold(void)
{
    static const char untold[] = "aaaaaaaaaaaaaaaaaaaa";
    static const struct {
        const char *set, *state, *reason;
    } cases[] = {{"from_pool = 0", "error", "interrupted"},
                 {"from_pool = 1", "error", "interrupted"},
                 {"status = 'creating'", "error", "interrupted"},
                 {"lease = 'words'", "ready", NULL},
                 {"status = 'creating', lease = 'words'", "ready", NULL}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(World) w = world_new();
        g_autofree char *told = id_of(world_box(w, "k1"));
        g_autofree char *sql = g_strdup_printf("UPDATE sandboxes SET e2b_id = '%s', %s", untold,
                                               cases[i].set);

        world_restart(w);
        assert_row(w, told, "ready", NULL);
        g_clear_pointer(&w->host, box_host_free);
        g_assert_true(store_write_sql(w->store->db, sql, NULL));
        fake_keeper_add(untold);
        world_start(w);
        world_load(w);
        world_settle(w);
        g_test_message("%s", cases[i].set);
        assert_row(w, untold, cases[i].state, cases[i].reason);
        g_assert_cmpint(fake_keeper_has(untold), ==, cases[i].reason == NULL);
    }
}

static void
keep_error(void *data, const GError *error)
{
    *(int *)data = error != NULL ? (int)err_kind(error) : -1;
}

/* What one start could not use must not be what the next one goes by. */
static void
test_told_is_useless(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *path = g_build_filename(w->spec.home, "told", NULL);
    int kind = -2;

    g_clear_pointer(&w->host, box_host_free);
    g_assert_true(unlink(path) == 0 && symlink("elsewhere", path) == 0);
    world_start(w);
    world_load(w);
    g_assert_true(g_file_test(path, G_FILE_TEST_IS_REGULAR));
    g_clear_pointer(&w->host, box_host_free);
    g_assert_true(unlink(path) == 0 && mkdir(path, 0700) == 0);
    world_start(w);
    box_host_load(w->host, keep_error, &kind);
    while (kind == -2)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpint(kind, !=, -1);
    g_assert_cmpint(rmdir(path), ==, 0);
}

static void
test_reboot(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *id = id_of(world_box(w, "k1"));

    g_clear_pointer(&w->host, box_host_free);
    fake_keeper_forget(id);
    g_assert_true(store_write_sql(w->store->db,
                                  "UPDATE settings SET value = 'another' WHERE name = 'box.boot_id'", NULL));
    world_start(w);
    world_load(w);
    assert_row(w, id, "error", "interrupted");
    g_assert_cmpint(store_read_int(w->store->db, "SELECT count(*) FROM settings WHERE name = 'box.boot_id' "
                                                 "AND value <> 'another'"),
                    ==, 1);
}

static void
test_keeper_away_at_start(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *id = id_of(world_box(w, "k1"));
    g_auto(Made) made = {0};
    g_autoptr(GError) error = NULL;

    g_assert_null(w->degraded[0]);
    fake_keeper_lose(true);
    world_restart(w); /* is not held up */
    g_assert_cmpstr(w->degraded[0], ==, "the keeper of the boxes is away");
    Box *box = box_host_find(w->host, id, NULL);

    g_assert_nonnull(box);
    g_assert_null(box_start(box, &(RunSpec){.argv = argv_of_test}, NULL, &error));
    g_assert_cmpint(err_kind(error), ==, ERR_UNAVAILABLE);
    world_create(w, &(BoxSpec){.owner = "k1"}, &made);
    g_assert_cmpint(err_kind(made.error), ==, ERR_UNAVAILABLE);
    world_tick(w, 3 * 3600); /* nothing is judged without the keeper's word */
    assert_row(w, id, "ready", NULL);
    fake_keeper_return();
    world_settle(w);
    g_assert_null(w->degraded[0]);
    assert_state(box, BOX_READY, NULL);
    start(box);
    world_tick(w, 1); /* its hour is over */
    assert_row(w, id, "terminated", "expired");
}

/* ---- restart of the keeper ---- */

static void
test_keeper_comes_back(void)
{
    g_autoptr(World) w = world_new();
    g_autoptr(Box) stays = box_ref(world_box(w, "k1")), gone = box_ref(world_box(w, "k1"));
    g_autofree char *gone_id = id_of(gone);
    g_auto(Made) made = {0};

    fake_keeper_hold(KEEPER_CREATE);
    world_begin(w, &(BoxSpec){.owner = "k1"}, &made);
    world_settle(w);
    fake_keeper_add(fake_keeper_last(KEEPER_CREATE)->box); /* it was made, but nobody heard */
    fake_keeper_lose(true);
    world_settle(w);
    g_assert_cmpint(err_kind(made.error), ==, ERR_UNAVAILABLE);
    assert_state(gone, BOX_READY, NULL);
    fake_keeper_forget(gone_id);
    fake_keeper_return();
    world_settle(w);
    assert_state(stays, BOX_READY, NULL);
    assert_state(gone, BOX_ERROR, "lost");
    assert_row(w, gone_id, "error", "lost");
    g_assert_cmpuint(fake_keeper_live(), ==, 1);
}

/* A server before this one asked for it, and it was made after the LIST. */
static void
test_late_box(void)
{
    g_autoptr(World) w = world_new();
    KeeperAnswer answer = {.verb = KEEPER_BOX, .serial = 7, .box = "nobodysboxnobodysbox"};
    g_autofree char *id = id_of(world_box(w, "k1"));

    fake_keeper_add(answer.box);
    fake_keeper_tell(&answer);
    g_strlcpy(answer.box, id, sizeof answer.box);
    fake_keeper_tell(&answer);
    world_settle(w);
    g_assert_cmpuint(fake_keeper_live(), ==, 1);
    g_assert_true(fake_keeper_has(id));
}

/* ---- upkeep ---- */

static void
test_retention(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *ended = id_of(world_box(w, "k1"));
    g_autofree char *live = id_of(world_box(w, "k1"));
    g_autofree char *folder = box_host_dup_log_folder(w->host, ended);
    g_autofree char *file = g_build_filename(folder, "1.out", NULL);

    start(box_host_find(w->host, ended, NULL));
    g_assert_cmpint(mkdir(folder, 0700), ==, 0);
    g_assert_true(g_file_set_contents(file, "x", 1, NULL));
    box_kill(box_host_find(w->host, ended, NULL), "killed", NULL, NULL, NULL);
    world_settle(w);
    fake_clock_forward(24 * 3600 - 1);
    world_upkeep(w);
    assert_row(w, ended, "terminated", "killed");
    g_assert_cmpint(access(file, F_OK), ==, 0);
    fake_clock_forward(2);
    world_upkeep(w);
    g_assert_null(world_row(w, ended));
    g_autoptr(Json) commands = world_commands(w, ended);

    g_assert_cmpuint(json_array_size(commands), ==, 0);
    assert_row(w, live, "ready", NULL);
    while (access(folder, F_OK) == 0)
        g_main_context_iteration(NULL, TRUE);
}

static void
test_folders_of_nobody(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *id = id_of(world_box(w, "k1"));
    g_autofree char *mine = box_host_dup_log_folder(w->host, id);
    g_autofree char *nobodys = box_host_dup_log_folder(w->host, "nobodysboxnobodysbox");

    g_assert_null(box_host_dup_log_folder(w->host, "../../etc"));
    g_assert_cmpint(mkdir(mine, 0700), ==, 0);
    g_assert_cmpint(mkdir(nobodys, 0700), ==, 0);
    world_restart(w);
    while (access(nobodys, F_OK) == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpint(access(mine, F_OK), ==, 0);
}

static void
test_rows_of_nobody(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *id = id_of(world_box(w, "k1"));

    world_restart(w);
    g_assert_true(store_write_sql(w->store->db,
                                  "UPDATE sandboxes SET id = 'x', e2b_id = 'nobodysboxnobodysbox'", NULL));
    world_upkeep(w); /* young rows may belong to a create */
    assert_row(w, "nobodysboxnobodysbox", "ready", NULL);
    fake_clock_forward(300);
    world_upkeep(w);
    assert_row(w, "nobodysboxnobodysbox", "error", "lost");
    box_touch(box_host_find(w->host, id, NULL));
    for (int i = 0; i < 30; i++)
        world_tick(w, 1);
    assert_row(w, id, "ready", NULL); /* and what lives has a row again */
}

static void
test_last_use_is_lazy(void)
{
    g_autoptr(World) w = world_new();
    Box *box = world_box(w, "k1");
    g_autofree char *id = id_of(box);
    DbStats before, after;

    fake_clock_forward(7);
    for (int i = 0; i < 20; i++)
        box_touch(box);
    db_stats(w->store->db, &before);
    for (int i = 0; i < 29; i++)
        world_tick(w, 0);
    g_autoptr(Json) early = world_row(w, id);

    world_tick(w, 0);
    db_stats(w->store->db, &after);
    g_autoptr(Json) late = world_row(w, id);

    g_assert_cmpstr(json_string_value(json_object_get(early, "last_used_at")), ==,
                    json_string_value(json_object_get(early, "created_at")));
    g_assert_cmpstr(json_string_value(json_object_get(late, "last_used_at")), !=,
                    json_string_value(json_object_get(late, "created_at")));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/command/row", test_command);
    g_test_add_func("/command/surroundings", test_surroundings);
    g_test_add_func("/command/builtin", test_builtin_is_no_command);
    g_test_add_func("/command/oom", test_oom);
    g_test_add_func("/command/end-is-written-later", test_end_is_written_later);
    g_test_add_func("/command/start-was-not-written", test_start_was_not_written);
    g_test_add_func("/command/end-is-told-once", test_end_is_told_once);
    g_test_add_func("/restart/running-command", test_running_command);
    g_test_add_func("/restart/found-run", test_found_run);
    g_test_add_func("/restart/run-ids-of-lives", test_run_ids_of_lives);
    g_test_add_func("/restart/list", test_what_the_list_says);
    g_test_add_func("/restart/rows", test_what_rows_say);
    g_test_add_func("/restart/untold", test_untold);
    g_test_add_func("/restart/told-is-useless", test_told_is_useless);
    g_test_add_func("/restart/reboot", test_reboot);
    g_test_add_func("/restart/keeper-away", test_keeper_away_at_start);
    g_test_add_func("/restart/keeper-comes-back", test_keeper_comes_back);
    g_test_add_func("/restart/late-box", test_late_box);
    g_test_add_func("/upkeep/retention", test_retention);
    g_test_add_func("/upkeep/folders", test_folders_of_nobody);
    g_test_add_func("/upkeep/rows", test_rows_of_nobody);
    g_test_add_func("/upkeep/last-use", test_last_use_is_lazy);
    return g_test_run();
}
