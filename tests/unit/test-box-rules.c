/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "box/host-admit.h"
#include "box/life.h"
#include "box/state.h"
#include "box/wish.h"

#define SECOND ((gint64)G_USEC_PER_SEC)

static void
test_states(void)
{
    /* Rows: from; columns: to, in the order of BoxState. */
    static const char *const table[BOX_STATE_MAX] = {
        [BOX_CREATING] = ".y.yyy", [BOX_READY] = "..yyyy",      [BOX_PAUSED] = ".y.yyy",
        [BOX_STOPPING] = "....yy", [BOX_TERMINATED] = "......", [BOX_ERROR] = ".y.yyy",
    };

    for (int from = 0; from < BOX_STATE_MAX; from++) {
        for (int to = 0; to < BOX_STATE_MAX; to++)
            g_assert_cmpint(box_state_may_follow((BoxState)from, (BoxState)to), ==, table[from][to] == 'y');
    }
}

static void
test_state_names(void)
{
    static const char *const names[] = {"creating CREATED", "ready RUNNING",         "paused RUNNING",
                                        "stopping RUNNING", "terminated TERMINATED", "error ERROR"};

    for (int i = 0; i < BOX_STATE_MAX; i++) {
        BoxState state = (BoxState)i, parsed = BOX_STATE_MAX;
        g_autofree char *both = g_strconcat(box_state_name(state, false), " ", box_status_name(state), NULL);

        g_assert_cmpstr(both, ==, names[i]);
        g_assert_true(box_state_parse(box_state_name(state, false), &parsed));
        g_assert_cmpint(parsed, ==, state);
        g_assert_cmpstr(box_state_name(state, true), ==,
                        state == BOX_READY ? "busy" : box_state_name(state, false));
    }
    BoxState none;

    g_assert_false(box_state_parse("busy", &none));
    g_assert_false(box_state_parse(NULL, &none));
}

static void
test_degraded_names(void)
{
    const char *names[33];

    box_degraded_names(0, names);
    g_assert_null(names[0]);
    box_degraded_names(DEGRADED_MEMORY | DEGRADED_FREEZE, names);
    g_assert_cmpstr(names[0], ==, "memory");
    g_assert_cmpstr(names[1], ==, "freeze");
    g_assert_null(names[2]);
    box_degraded_names(G_MAXUINT32, names);
    g_assert_cmpstr(names[7], ==, "freeze");
    g_assert_null(names[8]);
}

static void
test_life(void)
{
    static const struct {
        gint64 at_s;
        bool paused;
        BoxDue due;
    } rows[] = {
        {0, false, BOX_DUE_NOT},        {59, false, BOX_DUE_NOT}, {60, false, BOX_DUE_IDLE},
        {60, true, BOX_DUE_NOT},        {99, true, BOX_DUE_NOT},  {100, true, BOX_DUE_DEADLINE},
        {100, false, BOX_DUE_DEADLINE}, {-5, false, BOX_DUE_NOT},
    };
    BoxLife life;
    gint64 born = 1000 * SECOND;

    box_life_begin(&life, born, 100 * 1000, 60 * 1000);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        g_assert_cmpint(box_life_due(&life, born + rows[i].at_s * SECOND, rows[i].paused), ==, rows[i].due);
    g_assert_cmpint(box_life_end_us(&life, false), ==, born + 60 * SECOND);
    g_assert_cmpint(box_life_end_us(&life, true), ==, born + 100 * SECOND);
    box_life_touch(&life, born + 50 * SECOND);
    box_life_touch(&life, born + 20 * SECOND); /* late news change nothing */
    g_assert_cmpint(box_life_due(&life, born + 99 * SECOND, false), ==, BOX_DUE_NOT);
    g_assert_cmpint(box_life_end_us(&life, false), ==, born + 100 * SECOND);
}

static void
test_life_renewal(void)
{
    BoxLife life;
    gint64 born = 1000 * SECOND, day = 24 * 3600 * SECOND;

    box_life_begin(&life, born, 3600 * 1000, 3600 * 1000);
    g_assert_true(box_life_renew(&life, born + 1800 * SECOND, 7200 * 1000));
    g_assert_cmpint(life.deadline_us, ==, born + 9000 * SECOND);
    g_assert_true(box_life_renew(&life, born + 1800 * SECOND, 60 * 1000)); /* shorter too */
    g_assert_cmpint(life.deadline_us, ==, born + 1860 * SECOND);
    g_assert_true(box_life_renew(&life, born + day - SECOND, 3600 * 1000));
    g_assert_cmpint(life.deadline_us, ==, born + day);
    g_assert_false(box_life_renew(&life, born + day, 3600 * 1000));
    g_assert_cmpint(life.deadline_us, ==, born + day);
}

static void
test_wishes(void)
{
    static const char *const good_env[] = {"A=1", "_b2=", "PATH=/a:/b=c", NULL};
    static const char *const no_equals[] = {"A", NULL};
    static const char *const empty_name[] = {"=x", NULL};
    static const char *const digit[] = {"1A=x", NULL};
    static const char *const dash[] = {"A-B=x", NULL};
    static const char *const no_utf8[] = {"A=\xff", NULL};
    static const struct {
        const char *says; /* NULL: good */
        BoxSpec spec;
    } rows[] = {
        {NULL, {0}},
        {NULL, {.name = "a.b-C_9", .lease = "agent 7 / task ä", .env = good_env, .metadata = "{\"a\":[1]}"}},
        {NULL, {.lifetime_ms = 1000, .idle_ms = BOX_LIFE_MAX_MS, .repo_url = "https://x/y.git"}},
        {"'name'", {.name = ""}},
        {"'name'", {.name = "-x"}},
        {"'name'", {.name = "a b"}},
        {"'name'", {.name = "../x"}},
        {"'name'", {.name = "0123456789012345678901234567890123456789012345678901234567890123"}},
        {"'template'", {.template = "a/b"}},
        {"'agent_id'", {.agent_id = "a\nb"}},
        {"'task_id'", {.task_id = ""}},
        {"'repo_url'", {.repo_url = "x\x7f"}},
        {"'lease'", {.lease = "\xc2\x85"}},
        {"'lease'", {.lease = "\xff"}},
        {"no name", {.env = no_equals}},
        {"no name", {.env = empty_name}},
        {"no name", {.env = digit}},
        {"no name", {.env = dash}},
        {"'A' is not UTF-8", {.env = no_utf8}},
        {"no JSON object", {.metadata = "[]"}},
        {"no JSON object", {.metadata = "{"}},
        {"'lifetime'", {.lifetime_ms = 999}},
        {"'lifetime'", {.lifetime_ms = -1}},
        {"'lifetime'", {.lifetime_ms = BOX_LIFE_MAX_MS + 1}},
        {"'idle'", {.idle_ms = 1}},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        bool ok = wish_check(&rows[i].spec, &error);

        g_test_message("row %zu: %s", i, error != NULL ? error->message : "good");
        g_assert_cmpint(ok, ==, rows[i].says == NULL);
        if (!ok) {
            g_assert_cmpint(err_kind(error), ==, ERR_INVALID);
            g_assert_nonnull(strstr(error->message, rows[i].says));
        }
    }
}

static void
test_wish_sizes(void)
{
    g_autofree char *long_lease = g_strnfill(WISH_LEASE_MAX + 1, 'x');
    g_autofree char *value = g_strnfill(WISH_ENV_BYTES_MAX, 'x');
    g_autofree char *entry = g_strconcat("A=", value, NULL);
    g_autofree char *space = g_strnfill(BOX_METADATA_MAX, ' ');
    g_autofree char *metadata = g_strconcat("{}", space, NULL);
    const char *big[] = {entry, NULL};
    const char *many[BOX_ENV_MAX + 2];

    for (int i = 0; i <= BOX_ENV_MAX; i++)
        many[i] = "A=1";
    many[BOX_ENV_MAX + 1] = NULL;
    g_assert_false(wish_check(&(BoxSpec){.lease = long_lease}, NULL));
    g_assert_true(wish_check(&(BoxSpec){.lease = long_lease + 1}, NULL));
    g_assert_false(wish_check(&(BoxSpec){.env = big}, NULL));
    g_assert_false(wish_check(&(BoxSpec){.env = many}, NULL));
    g_assert_true(wish_check(&(BoxSpec){.env = many + 1}, NULL));
    g_assert_false(wish_check(&(BoxSpec){.metadata = metadata}, NULL));
}

static void
test_limits(void)
{
    static const BoxHostSpec host = {
        .limits =
            {.memory_bytes = 64 << 20, .disk_bytes = 64 << 20, .inodes = 4096, .pids = 64, .cpu_milli = 1000},
        .limits_max = {.memory_bytes = 128 << 20,
                       .disk_bytes = 128 << 20,
                       .inodes = 8192,
                       .pids = 128,
                       .cpu_milli = 2000},
    };
    static const Template template = {.limits = {.pids = 100, .cpu_milli = 99000}};
    static const struct {
        KeeperLimits asked;
        const char *says; /* NULL: good */
    } rows[] = {
        {{.memory_bytes = 128 << 20}, NULL},
        {{.memory_bytes = (128 << 20) + 1}, "'memory'"},
        {{.memory_bytes = 1}, "'memory'"},
        {{.disk_bytes = 129 << 20}, "'disk'"},
        {{.inodes = 8193}, "'inodes'"},
        {{.pids = 129}, "'pids'"},
        {{.pids = 3}, "'pids'"},
        {{.cpu_milli = 2001}, "'cpu_milli'"},
        {{.cpu_milli = 9}, "'cpu_milli'"},
    };
    KeeperLimits limits;

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_cmpint(wish_limits(&rows[i].asked, &template, &host, &limits, &error), ==,
                        rows[i].says == NULL);
        if (rows[i].says != NULL)
            g_assert_nonnull(strstr(error->message, rows[i].says));
    }
    g_assert_true(wish_limits(&(KeeperLimits){.inodes = 300}, &template, &host, &limits, NULL));
    g_assert_cmpuint(limits.memory_bytes, ==, 64 << 20); /* the server's */
    g_assert_cmpuint(limits.pids, ==, 100);              /* the template's */
    g_assert_cmpuint(limits.cpu_milli, ==, 2000);        /* the template's, as far as it goes */
    g_assert_cmpuint(limits.inodes, ==, 300);            /* asked for */
}

static void
test_env(void)
{
    static const char *const under[] = {"A=1", "B=2", NULL};
    static const char *const over[] = {"B=3", "C==", "A=", "C=4", NULL};
    g_auto(GStrv) merged = wish_merge_env(under, over);
    g_autofree char *text = g_strjoinv(" ", merged);
    g_auto(GStrv) none = wish_merge_env(NULL, NULL);

    g_assert_cmpstr(text, ==, "A= B=3 C=4");
    g_assert_null(none[0]);
}

static void
test_admission(void)
{
    static const BoxHostSpec floors = {.memory_floor_bytes = 100 << 20, .disk_floor_bytes = 200 << 20};
    static const struct {
        AdmitFree now;
        int kind; /* -1: let in */
        const char *says;
    } rows[] = {
        {{100 << 20, 200 << 20, 1024}, -1, NULL},
        {{(100 << 20) - 1, 200 << 20, 1024}, ERR_UNAVAILABLE, "99 MiB of memory"},
        {{100 << 20, (200 << 20) - 1, 1024}, ERR_FULL, "199 MiB left"},
        {{100 << 20, 200 << 20, 1023}, ERR_FULL, "1023 further files"},
        {{G_MAXUINT64, G_MAXUINT64, G_MAXUINT64}, -1, NULL},
    };
    AdmitFree real;

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_cmpint(admit_check(&rows[i].now, &floors, &error), ==, rows[i].kind < 0);
        if (rows[i].kind >= 0) {
            g_assert_cmpint(err_kind(error), ==, rows[i].kind);
            g_assert_nonnull(strstr(error->message, rows[i].says));
        }
    }
    g_assert_cmpuint(admit_parse_meminfo("MemTotal: 9 kB\nMemAvailable:     123 kB\nX: 1\n"), ==, 123 * 1024);
    g_assert_cmpuint(admit_parse_meminfo("MemTotal: 9 kB\n"), ==, G_MAXUINT64);
    admit_read("/", &real);
    g_assert_cmpuint(real.memory_bytes, >, 1 << 20);
    g_assert_cmpuint(real.memory_bytes, <, G_MAXUINT64);
    g_assert_cmpuint(real.disk_bytes, <, G_MAXUINT64);
    admit_read("/nowhere", &real);
    g_assert_cmpuint(real.disk_bytes, ==, G_MAXUINT64);
}

static void
test_command_lines(void)
{
    static const struct {
        const char *line;
        const char *argv[5];
    } rows[] = {
        {"echo hi | wc", {"/bin/sh", "-c", "echo hi | wc", NULL}},
        {"npm test", {"bash", "-lc", "npm test", NULL}},
        {"sh -c a b", {"sh", "-c", "a", "b", NULL}},
        {"ls -l 'a b' ''", {"ls", "-l", "a b", "", NULL}},
        {"true", {"true", NULL}},
    };
    g_autofree char *huge = g_strnfill(2 * COMMAND_SHOWN_MAX, 'x');
    const char *argv[] = {"sh", "-c", huge, NULL};
    g_autofree char *cut = command_dup_line(argv);
    g_autofree char *json = command_dup_argv_json(rows[3].argv);

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *line = command_dup_line(rows[i].argv);

        g_assert_cmpstr(line, ==, rows[i].line);
    }
    g_assert_cmpuint(strlen(cut), ==, COMMAND_SHOWN_MAX);
    g_assert_cmpstr(json, ==, "[\"ls\",\"-l\",\"a b\",\"\"]");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/box/states", test_states);
    g_test_add_func("/box/state-names", test_state_names);
    g_test_add_func("/box/degraded-names", test_degraded_names);
    g_test_add_func("/box/life", test_life);
    g_test_add_func("/box/life-renewal", test_life_renewal);
    g_test_add_func("/box/wishes", test_wishes);
    g_test_add_func("/box/wish-sizes", test_wish_sizes);
    g_test_add_func("/box/limits", test_limits);
    g_test_add_func("/box/env", test_env);
    g_test_add_func("/box/admission", test_admission);
    g_test_add_func("/box/command-lines", test_command_lines);
    return g_test_run();
}
