/* SPDX-License-Identifier: Apache-2.0 */
/* Making boxes: rows, leases, caps, the pool. */
#include <string.h>

#include "base/err.h"
#include "support/box-world.h"

static const BoxSpec plain = {.owner = "k1", .actor = "key:k1"};

static void
refuse_rows(World *w)
{
    g_assert_true(store_write_sql(w->store->db,
                                  "CREATE TRIGGER refuse BEFORE INSERT ON sandboxes "
                                  "BEGIN SELECT RAISE(ABORT, 'refused'); END",
                                  NULL));
}

static void
accept_rows(World *w)
{
    g_assert_true(store_write_sql(w->store->db, "DROP TRIGGER refuse", NULL));
}

static void
test_create(void)
{
    static const char *const env[] = {"A=1", "HOME=/x", NULL};
    g_autoptr(World) w = world_new();
    g_auto(Made) made = {0};
    BoxSpec spec = {.owner = "k1",
                    .actor = "key:k1",
                    .name = "mine",
                    .agent_id = "agent",
                    .task_id = "task",
                    .squad_id = "squad",
                    .repo_url = "https://x/y",
                    .lease = "lease",
                    .metadata = "{\"a\":1}",
                    .env = env,
                    .limits = {.pids = 99},
                    .lifetime_ms = 60000,
                    .idle_ms = 50000};
    BoxInfo info;

    world_create(w, &spec, &made);
    g_assert_no_error(made.error);
    g_assert_true(made.created);
    box_info(made.box, &info);
    g_assert_true(id_is_box(info.id));
    g_assert_true(id_is_uuid(info.uuid));
    g_assert_cmpint(info.state, ==, BOX_READY);
    g_assert_cmpuint(info.limits.pids, ==, 99);
    g_assert_cmpuint(info.limits.memory_bytes, ==, 1 << 30);
    g_assert_cmpint(info.expires_us - info.created_us, ==, 50 * G_USEC_PER_SEC);
    const KeeperRequest *r = fake_keeper_last(KEEPER_CREATE);

    g_assert_cmpstr(r->box, ==, info.id);
    g_assert_cmpstr(r->hostname, ==, info.id);
    g_assert_cmpuint(r->limits.pids, ==, 99);
    g_assert_cmpstr(r->layers[0], ==, "00aa");
    g_autoptr(Json) row = world_row(w, info.id);
    static const struct {
        const char *name, *value;
    } fields[] = {
        {"name", "mine"},      {"owner", "k1"},       {"agent_id", "agent"},       {"task_id", "task"},
        {"squad_id", "squad"}, {"lease", "lease"},    {"repo_url", "https://x/y"}, {"template", "base"},
        {"state", "ready"},    {"status", "RUNNING"}, {"template_hash", "base-0"}};

    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        g_assert_cmpstr(json_string_value(json_object_get(row, fields[i].name)), ==, fields[i].value);
    g_assert_cmpint(json_integer_value(json_object_get(json_object_get(row, "metadata"), "a")), ==, 1);
    g_autofree char *events = world_events(w, info.id);

    g_assert_cmpstr(events, ==, "box.created box.ready");
    g_autofree char *with_prefix = g_strconcat("sb-", info.id, NULL);

    g_assert_true(box_host_find(w->host, info.id, NULL) == made.box);
    g_assert_true(box_host_find(w->host, with_prefix, "k1") == made.box);
    g_assert_true(box_host_find(w->host, info.uuid, "k1") == made.box);
    g_assert_null(box_host_find(w->host, info.id, "k2"));
    g_assert_null(box_host_find(w->host, "nothing", NULL));
}

/* The row is committed while the keeper works, and only both together are an answer. */
static void
test_create_row_after_the_box(void)
{
    g_autoptr(World) w = world_new();
    g_auto(Made) made = {0};

    fake_keeper_hold(KEEPER_CREATE);
    world_begin(w, &plain, &made);
    world_settle(w);
    g_assert_false(made.done);
    const char *id = fake_keeper_last(KEEPER_CREATE)->box;

    g_autoptr(Json) early = world_row(w, id);

    g_assert_null(early);
    assert_state(box_host_find(w->host, id, NULL), BOX_CREATING, NULL);
    fake_keeper_release(KEEPER_CREATE);
    world_settle(w);
    g_assert_true(made.done && made.box != NULL);
    assert_row(w, id, "ready", NULL);
}

static void
test_create_waits_for_the_row(void)
{
    g_autoptr(World) w = world_new();
    g_auto(Made) made = {0};
    StoreGate gate = {0};

    db_write(w->store->db, store_gate_work, NULL, &gate, NULL);
    store_gate_wait(&gate);
    world_begin(w, &plain, &made);
    while (fake_keeper_live() == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_false(made.done);
    store_gate_open(&gate);
    world_settle(w);
    g_assert_nonnull(made.box);
}

/* A create whose caller starts a command as soon as the box takes one. */
typedef struct First {
    Made made;   /* first: what the host hands back */
    guint32 run; /* 0: not started */
} First;

static void
start_first(Box *box, void *data)
{
    static const char *const argv[] = {"true", NULL};
    RunSpec spec = {.argv = argv, .user = "", .cwd = ""};
    g_autoptr(GError) error = NULL;
    g_autoptr(Run) run = box_start(box, &spec, "key:k1", &error);

    g_assert_no_error(error);
    ((First *)data)->run = run_id(run);
}

static const BoxSpec with_first = {.owner = "k1", .actor = "key:k1", .usable = start_first};

/* The command runs while the store still waits at the gate. */
static void
begin_first(World *w, StoreGate *gate, First *ret_first)
{
    ret_first->run = 0;
    db_write(w->store->db, store_gate_work, NULL, gate, NULL);
    store_gate_wait(gate);
    world_begin(w, &with_first, &ret_first->made);
    while (ret_first->run == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_false(ret_first->made.done);
}

static void
check_first(World *w)
{
    First first;
    StoreGate gate = {0};
    BoxInfo info;

    begin_first(w, &gate, &first);
    store_gate_open(&gate);
    world_settle(w);
    g_assert_no_error(first.made.error);
    box_info(first.made.box, &info);
    g_assert_cmpuint(info.executions, ==, 1);
    g_autoptr(Json) commands = world_commands(w, info.id);
    g_autofree char *events = world_events(w, info.id);

    g_assert_cmpuint(json_array_size(commands), ==, 1);
    g_assert_cmpstr(events, ==, "box.created box.ready command.started");
    made_clear(&first.made);
}

static void
test_first_command(void)
{
    g_autoptr(World) w = world_new();

    check_first(w);
}

/* Its end does not overtake its start. */
static void
test_first_command_ends_first(void)
{
    g_autoptr(World) w = world_new();
    First first;
    StoreGate gate = {0};

    begin_first(w, &gate, &first);
    const char *id = fake_keeper_last(KEEPER_CREATE)->box;

    fake_run_end(fake_link_of(id), first.run, RUN_EXIT, 3);
    store_gate_open(&gate);
    world_settle(w);
    g_assert_nonnull(first.made.box);
    g_autofree char *events = world_events(w, id);

    g_assert_cmpstr(events, ==, "box.created box.ready command.started command.ended");
    made_clear(&first.made);
}

static void
test_first_command_store_refuses(void)
{
    g_autoptr(World) w = world_new();
    First first;
    StoreGate gate = {0};

    refuse_rows(w);
    begin_first(w, &gate, &first);
    store_gate_open(&gate);
    world_settle(w);
    g_assert_nonnull(first.made.error);
    g_assert_cmpuint(fake_keeper_live(), ==, 0);
    made_clear(&first.made);
}

static void
test_keeper_refuses(void)
{
    static const ErrKind kinds[] = {ERR_FULL, ERR_LIMIT, ERR_INTERNAL, ERR_UNAVAILABLE};

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(World) w = world_new();
        g_auto(Made) made = {0};

        fake_keeper_fail(KEEPER_CREATE, kinds[i]);
        world_create(w, &plain, &made);
        g_assert_cmpint(err_kind(made.error), ==, kinds[i]);
        const char *id = fake_keeper_last(KEEPER_CREATE)->box;

        g_assert_null(box_host_find(w->host, id, NULL));
        assert_row(w, id, "error", "failed");
        g_autofree char *events = world_events(w, id);

        g_assert_cmpstr(events, ==, "box.created box.failed");
    }
}

static void
test_store_refuses(void)
{
    g_autoptr(World) w = world_new();
    g_auto(Made) made = {0};
    BoxHostStats stats;

    refuse_rows(w);
    world_create(w, &plain, &made);
    g_assert_nonnull(made.error);
    g_assert_cmpuint(fake_keeper_live(), ==, 0);
    box_host_stats(w->host, &stats);
    g_assert_cmpuint(stats.live, ==, 0);
    accept_rows(w);
    for (int i = 0; i < 20; i++)
        world_tick(w, 1); /* the failure is written down as soon as it can be */
    assert_row(w, fake_keeper_last(KEEPER_CREATE)->box, "error", "failed");
}

static void
test_refusals(void)
{
    static const struct {
        BoxSpec spec;
        ErrKind kind;
    } rows[] = {
        {{.owner = "k1", .template = "none"}, ERR_NOT_FOUND},
        {{.owner = "k1", .name = "a b"}, ERR_INVALID},
        {{.owner = "k1", .limits = {.pids = 100000}}, ERR_INVALID},
    };
    g_autoptr(World) w = world_new();

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(Made) made = {0};

        world_create(w, &rows[i].spec, &made);
        g_assert_cmpint(err_kind(made.error), ==, rows[i].kind);
    }
    BoxSpec leased = {.owner = "k1", .lease = "l"};
    g_auto(Made) there = {0}, off = {0}, off_too = {0};

    world_create(w, &leased, &there);
    box_host_set_off(w->host, "the self-test got out");
    world_create(w, &leased, &off_too);
    g_assert_cmpint(err_kind(off_too.error), ==, ERR_UNAVAILABLE);
    world_create(w, &plain, &off);
    g_assert_cmpint(err_kind(off.error), ==, ERR_UNAVAILABLE);
    g_assert_nonnull(strstr(off.error->message, "got out"));
    box_host_set_off(w->host, NULL);
    world_box(w, "k1");
    g_assert_cmpuint(fake_keeper_calls(KEEPER_CREATE), ==, 2);
}

static void
test_no_room(void)
{
    g_autoptr(World) w = world_new_bare();
    g_auto(Made) memory = {0}, disk = {0};

    w->spec.memory_floor_bytes = G_MAXUINT64;
    world_start(w);
    world_load(w);
    world_create(w, &plain, &memory);
    g_assert_cmpint(err_kind(memory.error), ==, ERR_UNAVAILABLE);
    w->spec.memory_floor_bytes = 0;
    w->spec.disk_floor_bytes = G_MAXUINT64;
    world_restart(w);
    world_create(w, &plain, &disk);
    g_assert_cmpint(err_kind(disk.error), ==, ERR_FULL);
    g_assert_cmpuint(fake_keeper_calls(KEEPER_CREATE), ==, 0);
}

static void
test_caps(void)
{
    g_autoptr(World) w = world_new_bare();
    g_auto(Made) third = {0}, other = {0}, fifth = {0}, again = {0};

    w->spec.boxes_per_key = 2;
    w->spec.boxes_max = 3;
    world_start(w);
    world_load(w);
    Box *first = world_box(w, "k1");

    world_box(w, "k1");
    world_create(w, &plain, &third);
    g_assert_cmpint(err_kind(third.error), ==, ERR_LIMIT);
    world_create(w, &(BoxSpec){.owner = "k2"}, &other);
    g_assert_no_error(other.error);
    world_create(w, &(BoxSpec){.owner = "k3"}, &fifth);
    g_assert_cmpint(err_kind(fifth.error), ==, ERR_LIMIT);
    box_kill(first, "killed", "key:k1", NULL, NULL);
    world_settle(w);
    world_create(w, &plain, &again);
    g_assert_no_error(again.error);
}

/* What is being made counts too. */
static void
test_caps_at_once(void)
{
    g_autoptr(World) w = world_new_bare();
    Made made[10] = {0};
    guint good = 0;

    w->spec.boxes_per_key = 4;
    world_start(w);
    world_load(w);
    for (size_t i = 0; i < G_N_ELEMENTS(made); i++)
        world_begin(w, &plain, &made[i]);
    world_settle(w);
    for (size_t i = 0; i < G_N_ELEMENTS(made); i++) {
        g_assert_true(made[i].done);
        good += made[i].error == NULL;
        made_clear(&made[i]);
    }
    g_assert_cmpuint(good, ==, 4);
    g_assert_cmpuint(fake_keeper_live(), ==, 4);
}

static void
test_lease(void)
{
    g_autoptr(World) w = world_new();
    BoxSpec mine = {.owner = "k1", .lease = "agent/task"};
    BoxSpec theirs = {.owner = "k2", .lease = "agent/task"};
    BoxSpec other = {.owner = "k1", .lease = "agent/task2"};
    g_auto(Made) a = {0}, b = {0}, c = {0}, d = {0}, e = {0};

    world_create(w, &mine, &a);
    world_create(w, &mine, &b);
    g_assert_true(a.created && !b.created);
    g_assert_true(a.box == b.box);
    world_create(w, &theirs, &c);
    world_create(w, &other, &d);
    g_assert_true(c.created && d.created);
    g_assert_true(c.box != a.box && d.box != a.box && c.box != d.box);
    box_kill(a.box, "killed", NULL, NULL, NULL);
    world_create(w, &mine, &e); /* the old one is on its way out */
    g_assert_true(e.created && e.box != a.box);
    g_assert_cmpuint(fake_keeper_live(), ==, 3);
}

static void
test_lease_is_joined(void)
{
    g_autoptr(World) w = world_new();
    BoxSpec spec = {.owner = "k1", .lease = "l"};
    g_auto(Made) a = {0}, b = {0}, c = {0}, d = {0};

    fake_keeper_hold(KEEPER_CREATE);
    world_begin(w, &spec, &a);
    world_begin(w, &spec, &b);
    world_settle(w);
    fake_keeper_release(KEEPER_CREATE);
    world_settle(w);
    g_assert_true(a.created && !b.created && a.box == b.box && a.box != NULL);
    g_assert_cmpuint(fake_keeper_calls(KEEPER_CREATE), ==, 1);
    /* Who joins one that fails hears of it. */
    spec.lease = "m";
    fake_keeper_fail(KEEPER_CREATE, ERR_FULL);
    world_begin(w, &spec, &c);
    world_begin(w, &spec, &d);
    world_settle(w);
    g_assert_cmpint(err_kind(c.error), ==, ERR_FULL);
    g_assert_cmpint(err_kind(d.error), ==, ERR_FULL);
}

static void
test_lease_after_restart(void)
{
    g_autoptr(World) w = world_new();
    BoxSpec spec = {.owner = "k1", .lease = "l"};
    g_auto(Made) a = {0}, b = {0};
    BoxInfo before, after;

    world_create(w, &spec, &a);
    box_info(a.box, &before);
    world_restart(w);
    world_create(w, &spec, &b);
    g_assert_false(b.created);
    box_info(b.box, &after);
    g_assert_cmpstr(before.id, ==, after.id);
}

/* ---- the pool ---- */

static World *
pool_world(guint n)
{
    World *w = world_new_bare();

    w->spec.pool = n;
    w->spec.disks = 3;
    world_start(w);
    world_load(w);
    return w;
}

static guint
pooled(World *w)
{
    BoxHostStats stats;

    box_host_stats(w->host, &stats);
    return stats.pooled;
}

static void
test_pool(void)
{
    g_autoptr(World) w = pool_world(2);
    g_auto(Made) made = {0};
    BoxInfo info;
    DbStats before, after;

    g_assert_cmpuint(fake_keeper_last(KEEPER_PREPARE)->count, ==, 3);
    g_assert_cmpuint(pooled(w), ==, 2); /* of the default template, from the start on */
    g_assert_cmpuint(fake_links_streamed(), ==, 2);
    fake_keeper_hold(KEEPER_CREATE);
    db_stats(w->store->db, &before);
    world_begin(w, &plain, &made);
    while (!made.done)
        g_main_context_iteration(NULL, TRUE);
    db_stats(w->store->db, &after);
    g_assert_cmpuint(after.commits - before.commits, ==, 1);
    box_info(made.box, &info);
    g_assert_true(info.from_pool);
    g_assert_cmpint(info.state, ==, BOX_READY);
    g_assert_cmpstr(info.owner, ==, "k1");
    assert_row(w, info.id, "ready", NULL);
    g_autofree char *events = world_events(w, info.id);

    g_assert_cmpstr(events, ==, "box.created box.ready");
    fake_keeper_release(KEEPER_CREATE);
    world_settle(w);
    g_assert_cmpuint(pooled(w), ==, 1); /* the first command comes first */
    world_tick(w, 1);
    g_assert_cmpuint(pooled(w), ==, 2);
}

static void
test_pool_first_command(void)
{
    g_autoptr(World) w = pool_world(2);

    check_first(w);
}

static void
test_pool_fits_only(void)
{
    g_autoptr(World) w = pool_world(1);
    BoxSpec more = {.owner = "k1", .limits = {.pids = 100}};
    BoxSpec same = {.owner = "k1", .limits = {.pids = 256}};
    BoxSpec other = {.owner = "k1", .template = "other"};
    g_auto(Made) a = {0}, b = {0}, c = {0}, d = {0};
    BoxInfo info;

    world_create(w, &more, &a);
    box_info(a.box, &info);
    g_assert_false(info.from_pool);
    world_create(w, &other, &b);
    box_info(b.box, &info);
    g_assert_false(info.from_pool);
    g_assert_cmpuint(info.limits.pids, ==, 77);
    world_tick(w, 1);
    world_create(w, &other, &c); /* used lately by now */
    box_info(c.box, &info);
    g_assert_true(info.from_pool);
    world_create(w, &same, &d);
    box_info(d.box, &info);
    g_assert_true(info.from_pool);
}

static void
test_pool_waits_for_callers(void)
{
    g_autoptr(World) w = pool_world(1);
    g_auto(Made) cold = {0}, warm = {0};

    fake_keeper_hold(KEEPER_CREATE);
    world_begin(w, &(BoxSpec){.owner = "k1", .limits = {.pids = 100}}, &cold);
    world_begin(w, &plain, &warm);
    world_tick(w, 1);
    g_assert_true(warm.done && !cold.done);
    g_assert_cmpuint(fake_keeper_calls(KEEPER_CREATE), ==, 2);
    fake_keeper_release(KEEPER_CREATE);
    world_settle(w);
    world_tick(w, 1);
    g_assert_cmpuint(fake_keeper_calls(KEEPER_CREATE), ==, 3);
    g_assert_cmpuint(pooled(w), ==, 1);
}

static void
test_pool_never_gives_twice(void)
{
    g_autoptr(World) w = pool_world(1);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (int i = 0; i < 10; i++) {
        g_auto(Made) made = {0};
        BoxInfo info;

        world_create(w, &plain, &made);
        box_info(made.box, &info);
        g_assert_true(g_hash_table_add(seen, g_strdup(info.id)));
        box_kill(made.box, "killed", NULL, NULL, NULL);
        world_tick(w, 1);
        g_assert_false(fake_keeper_has(info.id));
    }
}

static void
test_pool_is_dropped(void)
{
    g_autoptr(World) w = pool_world(2);
    g_auto(Made) made = {0};
    BoxInfo info;

    fake_templates_rebuild();
    world_create(w, &plain, &made);
    box_info(made.box, &info);
    g_assert_false(info.from_pool); /* what waited was of another version */
    g_assert_cmpstr(info.template_hash, ==, "base-1");
    world_tick(w, 1);
    g_assert_cmpuint(pooled(w), ==, 2);
    g_assert_cmpuint(fake_keeper_live(), ==, 3);
    world_tick(w, 16 * 60); /* nobody asks for it */
    g_assert_cmpuint(pooled(w), ==, 0);
    g_assert_cmpuint(fake_keeper_live(), ==, 1);
}

static void
test_pool_after_restart(void)
{
    g_autoptr(World) w = pool_world(2);

    g_assert_cmpuint(fake_keeper_live(), ==, 2);
    w->spec.pool = 0;
    world_restart(w);
    g_assert_cmpuint(fake_keeper_live(), ==, 0); /* without a row nobody knows them */
}

static void
test_pool_faults(void)
{
    g_autoptr(World) w = world_new_bare();
    g_auto(Made) made = {0};

    w->spec.pool = 1;
    fake_keeper_fail(KEEPER_CREATE, ERR_FULL);
    world_start(w);
    world_load(w);
    g_assert_cmpuint(pooled(w), ==, 0);
    for (int i = 0; i < 11; i++)
        world_tick(w, 1);
    g_assert_cmpuint(pooled(w), ==, 1);
    fake_keeper_gone(fake_keeper_last(KEEPER_CREATE)->box, 1, 0);
    world_settle(w);
    world_tick(w, 1);
    g_assert_cmpuint(pooled(w), ==, 1); /* another one */
    refuse_rows(w);
    world_create(w, &plain, &made);
    g_assert_nonnull(made.error);
    accept_rows(w);
    world_tick(w, 1);
    g_assert_cmpuint(pooled(w), ==, 1);
    g_assert_cmpuint(fake_keeper_live(), ==, 1); /* what was taken and not given away is gone */
}

/* ---- before and after ---- */

static void
test_creates_wait_for_the_load(void)
{
    g_autoptr(World) w = world_new_bare();
    g_auto(Made) made = {0}, bad = {0};

    world_start(w);
    world_begin(w, &plain, &made);
    world_begin(w, &(BoxSpec){.name = ""}, &bad);
    world_settle(w);
    g_assert_false(made.done);
    g_assert_true(bad.done);
    world_load(w);
    g_assert_nonnull(made.box);
}

static void
test_free_answers_everybody(void)
{
    g_autoptr(World) w = world_new();
    g_auto(Made) a = {0}, b = {0}, c = {0};
    g_auto(Ended) killed = {0}, paused = {0};

    Box *first = world_box(w, "k1"), *second = world_box(w, "k1");

    fake_keeper_hold(KEEPER_CREATE);
    fake_keeper_hold(KEEPER_KILL);
    fake_keeper_hold(KEEPER_FREEZE);
    world_begin(w, &plain, &a);
    world_begin(w, &(BoxSpec){.name = ""}, &b);
    box_kill(first, "killed", NULL, on_box_done, &killed);
    box_pause(second, NULL, on_box_done, &paused);
    g_clear_pointer(&w->host, box_host_free);
    g_assert_true(a.done && b.done && killed.done && paused.done);
    g_assert_cmpint(err_kind(a.error), ==, ERR_CANCELLED);
    g_assert_cmpint(err_kind(killed.error), ==, ERR_CANCELLED);
    g_assert_cmpint(err_kind(paused.error), ==, ERR_CANCELLED);
    world_start(w);
    world_begin(w, &plain, &c);
    g_clear_pointer(&w->host, box_host_free);
    g_assert_cmpint(err_kind(c.error), ==, ERR_CANCELLED);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/host/create", test_create);
    g_test_add_func("/host/create/row-after-the-box", test_create_row_after_the_box);
    g_test_add_func("/host/create/waits-for-the-row", test_create_waits_for_the_row);
    g_test_add_func("/host/create/first", test_first_command);
    g_test_add_func("/host/create/first/ends-first", test_first_command_ends_first);
    g_test_add_func("/host/create/first/store-refuses", test_first_command_store_refuses);
    g_test_add_func("/host/create/keeper-refuses", test_keeper_refuses);
    g_test_add_func("/host/create/store-refuses", test_store_refuses);
    g_test_add_func("/host/create/refusals", test_refusals);
    g_test_add_func("/host/create/no-room", test_no_room);
    g_test_add_func("/host/caps", test_caps);
    g_test_add_func("/host/caps/at-once", test_caps_at_once);
    g_test_add_func("/host/lease", test_lease);
    g_test_add_func("/host/lease/joined", test_lease_is_joined);
    g_test_add_func("/host/lease/after-restart", test_lease_after_restart);
    g_test_add_func("/host/pool", test_pool);
    g_test_add_func("/host/pool/first", test_pool_first_command);
    g_test_add_func("/host/pool/fits-only", test_pool_fits_only);
    g_test_add_func("/host/pool/waits-for-callers", test_pool_waits_for_callers);
    g_test_add_func("/host/pool/never-twice", test_pool_never_gives_twice);
    g_test_add_func("/host/pool/dropped", test_pool_is_dropped);
    g_test_add_func("/host/pool/after-restart", test_pool_after_restart);
    g_test_add_func("/host/pool/faults", test_pool_faults);
    g_test_add_func("/host/load/creates-wait", test_creates_wait_for_the_load);
    g_test_add_func("/host/free", test_free_answers_everybody);
    return g_test_run();
}
