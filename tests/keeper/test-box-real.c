/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of boxes with a real keeper, real boxes and the real init in them.  With an
 * argument it is a server that lives through everything once, to be killed at a failpoint. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "box/host.h"
#include "support/store.h"

enum { WATCHDOG_S = 280, MIB = 1 << 20, READY_BYTES = 6, RECORD_BYTES = 64 };

typedef struct Real {
    char *folder, *socket, *state, *store;
    GPid keeper;
    StoreBench *bench;
    Loop *loop;
    BoxHost *host;
    guint pool;
} Real;

/* ---- the keeper ---- */

/* A test that fails takes its keeper along. */
static volatile GPid keeper_of_test;

static void
on_abort(int signal)
{
    if (keeper_of_test > 0)
        kill(keeper_of_test, SIGTERM);
    _exit(1);
}

static bool
possible(void)
{
    g_autofree char *mounts = NULL;

    if (geteuid() != 0) {
        g_test_skip("boxes of root are tested as root");
        return false;
    }
    /* In a chroot no user namespace can be made. */
    g_assert_true(g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL));
    if (!g_regex_match_simple("^\\d+ \\d+ \\S+ \\S+ / ", mounts, G_REGEX_MULTILINE, 0)) {
        g_test_skip("user namespaces cannot be made inside a chroot");
        return false;
    }
    return true;
}

static void
keeper_start(Real *r)
{
    const char *argv[] = {g_getenv("COOP_KEEPER"),
                          "--socket",
                          r->socket,
                          "--state",
                          r->state,
                          "--templates",
                          r->store,
                          "--init",
                          g_getenv("COOP_INIT"),
                          "--id-base",
                          "1617166336",
                          NULL};
    char ready[READY_BYTES];
    int out;
    g_autoptr(GError) error = NULL;

    g_spawn_async_with_pipes(NULL, (char **)(gpointer)argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL,
                             &r->keeper, NULL, &out, NULL, &error);
    g_assert_no_error(error);
    keeper_of_test = r->keeper;
    g_assert_cmpint(read(out, ready, sizeof ready), ==, READY_BYTES);
    close(out);
}

static void
keeper_end(Real *r, int how)
{
    int status;

    g_assert_cmpint(kill(r->keeper, how), ==, 0);
    g_assert_cmpint(waitpid(r->keeper, &status, 0), ==, r->keeper);
}

static guint
boxes_on_host(Real *r)
{
    g_autofree char *path = g_build_filename(r->state, "records", NULL);
    g_autofree char *bytes = NULL;
    gsize size;
    guint n = 0;

    g_assert_true(g_file_get_contents(path, &bytes, &size, NULL));
    for (gsize at = 0; at + RECORD_BYTES <= size; at += RECORD_BYTES)
        n += bytes[at] != 0; /* its version */
    return n;
}

static void
make_layer(Real *r)
{
    static const char *const folders[] = {"bin", "etc", "tmp"};
    g_autofree char *layer = g_build_filename(r->store, "00aa", NULL);
    g_autofree char *probe = g_build_filename(layer, "bin/probe", NULL);
    g_autofree char *bytes = NULL;
    gsize n;

    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *path = g_build_filename(layer, folders[i], NULL);

        g_assert_cmpint(g_mkdir_with_parents(path, 0755), ==, 0);
        g_assert_cmpint(chmod(path, strcmp(folders[i], "tmp") == 0 ? 01777 : 0755), ==, 0);
    }
    g_assert_true(g_file_get_contents(g_getenv("COOP_BOX_PROBE"), &bytes, &n, NULL));
    g_assert_true(g_file_set_contents(probe, bytes, (gssize)n, NULL));
    g_assert_cmpint(chmod(probe, 0755), ==, 0);
}

/* ---- the server ---- */

static void
on_loaded(void *data, const GError *error)
{
    g_assert_no_error(error);
    *(bool *)data = true;
}

static void
host_start(Real *r)
{
    BoxHostSpec spec = {
        .loop = r->loop,
        .db = r->bench->db,
        .events = r->bench->log,
        .home = r->bench->dir,
        .keeper_socket = r->socket,
        .default_template = "base",
        .limits =
            {.memory_bytes = 64 * MIB, .disk_bytes = 64 * MIB, .inodes = 4096, .pids = 64, .cpu_milli = 1000},
        .limits_max =
            {.memory_bytes = 64 * MIB, .disk_bytes = 64 * MIB, .inodes = 4096, .pids = 64, .cpu_milli = 1000},
        .lifetime_ms = 3600 * 1000,
        .idle_ms = 3600 * 1000,
        .boxes_per_key = 100,
        .boxes_max = 100,
        .pool = r->pool,
        .keep_rows_ms = 3600 * 1000,
    };
    bool loaded = false;

    r->host = box_host_new(&spec);
    box_host_load(r->host, on_loaded, &loaded);
    while (!loaded)
        g_main_context_iteration(NULL, TRUE);
}

static void
host_restart(Real *r)
{
    box_host_free(r->host);
    host_start(r);
}

static Real *
real_new(guint pool)
{
    Real *r = g_new0(Real, 1);

    r->folder = g_strdup("/tmp/coop-real-XXXXXX");
    g_assert_nonnull(g_mkdtemp(r->folder));
    g_assert_cmpint(chmod(r->folder, 0755), ==, 0);
    r->socket = g_build_filename(r->folder, "s", NULL);
    r->state = g_build_filename(r->folder, "state", NULL);
    r->store = g_build_filename(r->folder, "store", NULL);
    r->pool = pool;
    make_layer(r);
    keeper_start(r);
    r->bench = store_bench_new_open();
    r->loop = loop_new(NULL);
    host_start(r);
    return r;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

/* Whatever a test did, nothing stays on the host. */
static void
real_free(Real *r)
{
    box_host_free(r->host);
    keeper_end(r, SIGTERM);
    g_assert_cmpuint(boxes_on_host(r), ==, 0);
    store_bench_close(r->bench);
    loop_free(r->loop);
    store_bench_free(r->bench);
    nftw(r->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    g_free(r->folder);
    g_free(r->socket);
    g_free(r->state);
    g_free(r->store);
    g_free(r);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Real, real_free)

/* ---- calls that are waited for ---- */

typedef struct Call {
    bool done, created;
    Box *box;
    GError *error;
} Call;

static void
call_clear(Call *call)
{
    box_unref(call->box);
    g_clear_error(&call->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Call, call_clear)

static void
on_created(Box *box, bool created, const GError *error, void *data)
{
    Call *call = data;

    *call = (Call){.done = true,
                   .created = created,
                   .box = box != NULL ? box_ref(box) : NULL,
                   .error = error != NULL ? g_error_copy(error) : NULL};
}

static void
on_done(Box *box, const GError *error, void *data)
{
    Call *call = data;

    call->done = true;
    call->error = error != NULL ? g_error_copy(error) : NULL;
}

static void
wait_for(const Call *call)
{
    while (!call->done)
        g_main_context_iteration(NULL, TRUE);
}

static void
create(Real *r, const BoxSpec *spec, Call *ret_call)
{
    *ret_call = (Call){0};
    box_host_create(r->host, spec, on_created, ret_call);
    wait_for(ret_call);
    g_assert_no_error(ret_call->error);
}

static void
kill_box(Box *box)
{
    g_auto(Call) call = {0};

    box_kill(box, "killed", "local", on_done, &call);
    wait_for(&call);
    g_assert_no_error(call.error);
}

static Run *
start(Box *box, unsigned flags, guint timeout_ms, const char *verb, const char *word)
{
    const char *argv[] = {"/bin/probe", verb, word, NULL};
    RunSpec spec = {.flags = flags, .argv = argv, .user = "1000", .cwd = "/", .timeout_ms = timeout_ms};
    g_autoptr(GError) error = NULL;
    Run *run = box_start(box, &spec, "local", &error);

    g_assert_no_error(error);
    return run;
}

static const RunEnd *
end_of(Run *run)
{
    while (!run_has_ended(run))
        g_main_context_iteration(NULL, TRUE);
    return run_end(run);
}

static const char *
id_of(Box *box)
{
    BoxInfo info;

    box_info(box, &info);
    return info.id;
}

static gint64
count(Real *r, const char *table, const char *where)
{
    g_autofree char *sql = g_strdup_printf("SELECT count(*) FROM %s WHERE %s", table, where);

    return store_read_int(r->bench->db, sql);
}

static void
until_count(Real *r, const char *table, const char *where, gint64 want)
{
    while (count(r, table, where) != want)
        g_main_context_iteration(NULL, TRUE);
}

/* ---- tests ---- */

static void
test_life(void)
{
    if (!possible())
        return;
    g_autoptr(Real) r = real_new(0);
    g_auto(Call) call = {0};
    BoxHostStats stats;

    create(r, &(BoxSpec){.owner = "k1"}, &call);
    g_autoptr(Run) good = start(call.box, 0, 0, "stat", "/bin");
    g_autoptr(Run) bad = start(call.box, 0, 0, "stat", "/nothing");

    g_assert_cmpint(end_of(good)->code, ==, 0);
    g_assert_cmpuint(end_of(good)->out_bytes, ==, 4);
    g_assert_cmpint(end_of(bad)->reason, ==, RUN_EXIT);
    g_assert_cmpint(end_of(bad)->code, ==, ENOENT);
    until_count(r, "commands", "ended_us <> 0", 2);
    g_assert_cmpint(count(r, "commands", "out_bytes = 4 AND exit_code = 0"), ==, 1);
    g_assert_cmpint(count(r, "commands", "exit_code = 2 AND reason = 'exit'"), ==, 1);
    g_autoptr(Run) running = start(call.box, 0, 0, "pause", NULL);

    kill_box(call.box);
    g_assert_cmpuint(boxes_on_host(r), ==, 0);
    g_assert_cmpint(count(r, "sandboxes", "status = 'terminated' AND reason = 'killed'"), ==, 1);
    g_assert_cmpint(end_of(running)->reason, ==, RUN_STOPPED);
    until_count(r, "commands", "reason = 'stopped'", 1);
    box_host_stats(r->host, &stats);
    g_assert_cmpuint(stats.live, ==, 0);
}

static void
test_memory(void)
{
    if (!possible())
        return;
    g_autoptr(Real) r = real_new(0);
    g_auto(Call) call = {0};

    create(r, &(BoxSpec){.owner = "k1"}, &call);
    g_autoptr(Run) bomb = start(call.box, 0, 0, "memory", NULL);

    g_assert_cmpint(end_of(bomb)->reason, ==, RUN_OOM);
    g_autoptr(Run) victim = start(call.box, 0, 0, "pause", NULL);

    while (run_pid(victim) == 0)
        g_main_context_iteration(NULL, TRUE);
    run_signal(victim, SIGKILL);
    g_assert_cmpint(end_of(victim)->reason, ==, RUN_SIGNAL); /* not everything that is killed */
    g_autoptr(Run) after = start(call.box, 0, 0, "stat", "/bin");

    g_assert_cmpint(end_of(after)->code, ==, 0);
    kill_box(call.box);
}

static void
test_pause(void)
{
    if (!possible())
        return;
    g_autoptr(Real) r = real_new(0);
    g_auto(Call) call = {0}, paused = {0}, resumed = {0}, again = {0};
    g_autoptr(GError) error = NULL;
    static const char *const argv[] = {"/bin/probe", "stat", "/bin", NULL};

    create(r, &(BoxSpec){.owner = "k1"}, &call);
    box_pause(call.box, "local", on_done, &paused);
    wait_for(&paused);
    g_assert_no_error(paused.error);
    g_assert_null(box_start(call.box, &(RunSpec){.argv = argv}, NULL, &error));
    g_assert_cmpint(err_kind(error), ==, ERR_CONFLICT);
    host_restart(r); /* stays as it is */
    Box *box = box_host_find(r->host, id_of(call.box), NULL);
    BoxInfo info;

    box_info(box, &info);
    g_assert_cmpint(info.state, ==, BOX_PAUSED);
    box_resume(box, "local", on_done, &resumed);
    wait_for(&resumed);
    g_assert_no_error(resumed.error);
    g_autoptr(Run) run = start(box, 0, 0, "stat", "/bin");

    g_assert_cmpint(end_of(run)->code, ==, 0);
    box_pause(box, "local", on_done, &again);
    wait_for(&again);
    kill_box(box);
    g_assert_cmpuint(boxes_on_host(r), ==, 0);
}

static void
test_many(void)
{
    enum { MANY = 50 };
    if (!possible())
        return;
    g_autoptr(Real) r = real_new(0);
    Call made[MANY] = {0}, ended[MANY] = {0};

    for (int i = 0; i < MANY; i++)
        box_host_create(r->host, &(BoxSpec){.owner = "k1"}, on_created, &made[i]);
    for (int i = 0; i < MANY; i++) {
        wait_for(&made[i]);
        g_assert_no_error(made[i].error);
    }
    g_assert_cmpuint(boxes_on_host(r), ==, MANY);
    until_count(r, "sandboxes", "status = 'ready'", MANY);
    for (int i = 0; i < MANY; i++)
        box_kill(made[i].box, "killed", NULL, on_done, &ended[i]);
    for (int i = 0; i < MANY; i++) {
        wait_for(&ended[i]);
        g_assert_no_error(ended[i].error);
        call_clear(&made[i]);
    }
    g_assert_cmpuint(boxes_on_host(r), ==, 0);
    g_assert_cmpint(count(r, "sandboxes", "status = 'terminated'"), ==, MANY);
}

static guint
pooled(Real *r)
{
    BoxHostStats stats;

    box_host_stats(r->host, &stats);
    return stats.pooled;
}

static void
test_pool(void)
{
    if (!possible())
        return;
    g_autoptr(Real) r = real_new(2);
    g_auto(Call) call = {0};
    BoxInfo info;

    while (pooled(r) < 2)
        g_main_context_iteration(NULL, TRUE);
    create(r, &(BoxSpec){.owner = "k1"}, &call);
    box_info(call.box, &info);
    g_assert_true(info.from_pool);
    g_autoptr(Run) run = start(call.box, 0, 0, "stat", "/bin");

    g_assert_cmpint(end_of(run)->code, ==, 0);
    while (pooled(r) < 2)
        g_main_context_iteration(NULL, TRUE);
    r->pool = 0;
    host_restart(r); /* the pool is nobody's then */
    while (boxes_on_host(r) > 1)
        g_main_context_iteration(NULL, TRUE);
    g_assert_nonnull(box_host_find(r->host, info.id, "k1"));
    kill_box(box_host_find(r->host, info.id, "k1"));
}

static void
test_server_restart(void)
{
    if (!possible())
        return;
    g_autoptr(Real) r = real_new(0);
    g_auto(Call) call = {0};

    create(r, &(BoxSpec){.owner = "k1", .lease = "l"}, &call);
    g_autoptr(Run) goes_on = start(call.box, 0, 0, "pause", NULL);
    g_autoptr(Run) ends_alone = start(call.box, 0, 300, "pause", NULL);
    g_autoptr(Run) takes_input = start(call.box, START_TTY | START_STDIN, 0, "cat", "/dev/tty");

    while (run_pid(takes_input) == 0)
        g_main_context_iteration(NULL, TRUE);
    host_restart(r);
    g_auto(Call) again = {0};

    create(r, &(BoxSpec){.owner = "k1", .lease = "l"}, &again);
    g_assert_false(again.created);
    g_assert_cmpstr(id_of(again.box), ==, id_of(call.box));
    Run *input = box_find_run(again.box, run_id(takes_input));

    g_assert_nonnull(input);
    g_assert_cmpuint(run_write(input, "hello\n", 6), ==, 6);
    run_close_input(input);
    run_signal(box_find_run(again.box, run_id(goes_on)), SIGTERM);
    until_count(r, "commands", "ended_us <> 0", 3);
    g_assert_cmpint(count(r, "commands", "reason = 'signal' AND code = 15"), ==, 1);
    g_assert_cmpint(count(r, "commands", "reason = 'timeout'"), ==, 1);
    g_assert_cmpint(count(r, "commands", "reason = 'exit' AND code = 0 AND out_bytes = 14"), ==, 1);
    kill_box(again.box);
}

static void
test_orphans(void)
{
    if (!possible())
        return;
    g_autoptr(Real) r = real_new(0);
    g_auto(Call) orphan = {0}, lost = {0};

    create(r, &(BoxSpec){.owner = "k1"}, &orphan);
    g_clear_pointer(&r->host, box_host_free);
    g_assert_true(store_write_sql(r->bench->db, "DELETE FROM sandboxes", NULL));
    host_start(r);
    while (boxes_on_host(r) > 0)
        g_main_context_iteration(NULL, TRUE);
    create(r, &(BoxSpec){.owner = "k1"}, &lost);
    g_clear_pointer(&r->host, box_host_free);
    keeper_end(r, SIGTERM);
    keeper_start(r);
    host_start(r);
    until_count(r, "sandboxes", "status = 'error' AND reason = 'lost'", 1);
}

static void
test_expiry(void)
{
    if (!possible())
        return;
    g_autoptr(Real) r = real_new(0);
    g_auto(Call) call = {0};

    create(r, &(BoxSpec){.owner = "k1", .lifetime_ms = 1000}, &call);
    until_count(r, "sandboxes", "status = 'terminated' AND reason = 'expired'", 1);
    g_assert_cmpuint(boxes_on_host(r), ==, 0);
    g_assert_cmpint(count(r, "events", "kind = 'box.expired'"), ==, 1);
}

static void
test_keeper_killed(void)
{
    if (!possible())
        return;
    g_autoptr(Real) r = real_new(0);
    g_auto(Call) call = {0}, next = {0};

    create(r, &(BoxSpec){.owner = "k1"}, &call);
    g_autoptr(Run) run = start(call.box, 0, 0, "pause", NULL);

    while (run_pid(run) == 0)
        g_main_context_iteration(NULL, TRUE);
    keeper_end(r, SIGKILL);
    keeper_start(r);
    until_count(r, "sandboxes", "status = 'error' AND reason = 'lost'", 1);
    g_assert_cmpint(end_of(run)->reason, ==, RUN_LOST);
    until_count(r, "commands", "reason = 'lost'", 1);
    create(r, &(BoxSpec){.owner = "k1"}, &next);
    kill_box(next.box);
}

/* ---- a server that is killed ---- */

static int
be_server(char *path, char *socket)
{
    Real r = {.socket = socket, .loop = loop_new(NULL)};
    StoreBench bench = {.path = path};
    g_auto(Call) call = {0};

    bench.dir = g_path_get_dirname(path);
    store_bench_open(&bench, NULL);
    r.bench = &bench;
    host_start(&r);
    create(&r, &(BoxSpec){.owner = "k1"}, &call);
    g_autoptr(Run) run = start(call.box, 0, 0, "stat", "/nothing");

    until_count(&r, "commands", "ended_us <> 0", 1);
    kill_box(call.box);
    return 0;
}

static void
crash_at(Real *r, const char *point)
{
    const char *argv[] = {"/proc/self/exe", "--server", r->bench->path, r->socket, NULL};
    g_autofree char *fail_at = g_strconcat(point, ":1", NULL);
    g_auto(GStrv) env = g_environ_setenv(g_get_environ(), "COOP_FAIL_AT", fail_at, TRUE);
    g_autoptr(GError) error = NULL;
    int status;

    g_spawn_sync(NULL, (char **)(gpointer)argv, env, 0, NULL, NULL, NULL, NULL, &status, &error);
    g_assert_no_error(error);
    g_test_message("%s: %d", point, status);
    g_assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void
kill_each(Box *box, void *data)
{
    box_kill(box, "killed", NULL, on_done, data);
}

/* Whatever the moment: boxes and rows agree, and what a command did is known.  Lost is only one
 * that may not have reached its box. */
static void
check_after(Real *r, bool may_be_lost)
{
    BoxHostStats stats;
    g_auto(Call) ended = {0};

    store_bench_open(r->bench, NULL);
    host_start(r);
    /* One that nobody was told of is on its way out. */
    for (;;) {
        box_host_stats(r->host, &stats);
        if (boxes_on_host(r) == stats.live && count(r, "sandboxes", "ended_us = 0") == stats.live)
            break;
        g_main_context_iteration(NULL, TRUE);
    }
    until_count(r, "commands", "ended_us = 0", 0);
    box_host_stats(r->host, &stats);
    g_assert_cmpint(count(r, "commands", "reason = 'lost'"), <=, may_be_lost);
    g_assert_cmpint(count(r, "commands", "reason <> 'lost' AND exit_code <> 2"), ==, 0);
    g_assert_cmpuint(stats.live, <=, 1);
    box_host_each(r->host, NULL, kill_each, &ended);
    if (stats.live > 0)
        wait_for(&ended);
    g_assert_no_error(ended.error);
    g_assert_cmpuint(boxes_on_host(r), ==, 0);
    g_assert_cmpint(count(r, "sandboxes", "ended_us = 0"), ==, 0);
    g_clear_pointer(&r->host, box_host_free);
    g_assert_true(store_write_sql(r->bench->db, "DELETE FROM sandboxes", NULL));
}

static void
test_server_killed(void)
{
    static const char *const points[] = {
        "box-create-sent", "box-create-made", "box-create-row", "box-start-sent", "box-start-row",
        "box-end-row",     "box-kill-sent",   "box-kill-gone",  "box-kill-row",
    };

    if (!possible())
        return;
    if (g_strcmp0(g_getenv("COOP_HAS_FAILPOINTS"), "1") != 0) {
        g_test_skip("a release build has no failpoints");
        return;
    }
    g_autoptr(Real) r = real_new(0);

    g_clear_pointer(&r->host, box_host_free);
    for (size_t i = 0; i < G_N_ELEMENTS(points); i++) {
        store_bench_close(r->bench);
        crash_at(r, points[i]);
        check_after(r, g_str_has_prefix(points[i], "box-start-"));
    }
}

int
main(int argc, char **argv)
{
    alarm(WATCHDOG_S);
    if (argc == 4 && strcmp(argv[1], "--server") == 0)
        return be_server(argv[2], argv[3]);
    g_test_init(&argc, &argv, NULL);
    signal(SIGABRT, on_abort);
    signal(SIGALRM, on_abort);
    g_test_add_func("/real/life", test_life);
    g_test_add_func("/real/memory", test_memory);
    g_test_add_func("/real/pause", test_pause);
    g_test_add_func("/real/many", test_many);
    g_test_add_func("/real/pool", test_pool);
    g_test_add_func("/real/server-restart", test_server_restart);
    g_test_add_func("/real/orphans", test_orphans);
    g_test_add_func("/real/expiry", test_expiry);
    g_test_add_func("/real/keeper-killed", test_keeper_killed);
    g_test_add_func("/real/server-killed", test_server_killed);
    return g_test_run();
}
