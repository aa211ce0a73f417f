/* SPDX-License-Identifier: Apache-2.0 */
/* Events that become facts, each once, and what a report makes of them. */
#include <string.h>

#include "support/forge-rows.h"
#include "support/store.h"
#include "team/report.h"
#include "team/team-private.h"

#define MINE "11111111-0000-4000-8000-000000000001"
#define YOURS "11111111-0000-4000-8000-000000000002"
#define DAY_US (G_GINT64_CONSTANT(24) * 3600 * G_USEC_PER_SEC)

typedef struct World {
    StoreBench *store;
    Loop *loop;
    Team *team;
} World;

static void
start(World *w)
{
    w->team = team_new(&(TeamSpec){.loop = w->loop, .db = w->store->db, .events = w->store->log}, NULL);
    g_assert_nonnull(w->team);
}

static void
sql(World *w, const char *text)
{
    g_autoptr(GError) error = NULL;

    store_write_sql(w->store->db, text, &error);
    g_assert_no_error(error);
}

static World *
world_new(void)
{
    World *w = g_new0(World, 1);

    w->store = store_bench_new_open();
    w->loop = loop_new(NULL);
    start(w);
    sql(w, "INSERT INTO squads (id, user_id, name, created_us, updated_us) VALUES ('s1', '', 'one', 1, 1), "
           "('s2', '', 'two', 1, 1)");
    sql(w,
        "INSERT INTO tasks (id, number, squad_id, owner, actor, source, title, request, state, report, "
        "created_us, ended_us, updated_us) VALUES ('" MINE "', 1, 's1', 'me', 'key:me', 'api', 't', 'r', "
        "'done', '{\"tries\": 4}', 5, 4000000000000000, 1), ('" YOURS "', 2, 's2', 'you', 'key:you', 'api', "
        "'t', 'r', 'done', '{\"tries\": 5}', 5, 4000000000000000, 1)");
    return w;
}

static void
world_free(World *w)
{
    team_free(w->team);
    store_bench_free(w->store);
    loop_free(w->loop);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

static void
append(World *w, const char *kind, const char *task, const char *box, const char *data)
{
    g_autofree char *text = g_strdelimit(g_strdup(data), "'", '"');

    store_append(w->store->db,
                 &(EventSpec){.kind = kind, .actor = "coop", .task_id = task, .box_id = box, .data = text},
                 1);
}

static Json *
report(World *w, const ReportSpec *spec)
{
    ReportSpec whole = *spec;
    RowAnswer answer = {0};

    if (whole.until_us == 0)
        whole.until_us = G_MAXINT64 / 2;
    team_report(w->team, &whole, on_row_answer, &answer);
    return row_answer_wait(&answer);
}

/* "good/total" of a rate. */
static char *
rate_of(const Json *all, const char *name)
{
    size_t i;
    const Json *rate;

    json_array_foreach(json_object_get(all, "rates"), i, rate)
    {
        if (strcmp(row_text(rate, "name"), name) == 0)
            return g_strdup_printf("%d/%d", (int)row_int(rate, "good"), (int)row_int(rate, "total"));
    }
    return NULL;
}

static void
expect(World *w, const ReportSpec *spec, const char *name, const char *want)
{
    g_autoptr(Json) all = report(w, spec);
    g_autofree char *is = rate_of(all, name);

    g_assert_cmpstr(is, ==, want);
}

static void
test_counted_once(void)
{
    g_autoptr(World) w = world_new();

    append(w, "pr.merged", MINE, NULL, "{}");
    append(w, "pr.closed", YOURS, NULL, "{}");
    expect(w, &(ReportSpec){0}, "merges", "1/2");
    expect(w, &(ReportSpec){0}, "merges", "1/2");
    append(w, "agent.said", MINE, NULL, "{}"); /* nothing that counts */
    append(w, "pr.merged", MINE, NULL, "{}");
    expect(w, &(ReportSpec){0}, "merges", "2/3");
    team_free(w->team);
    append(w, "pr.merged", MINE, NULL, "{}");
    start(w);
    expect(w, &(ReportSpec){0}, "merges", "3/4");
    g_assert_cmpint(store_read_int(w->store->db, "SELECT COUNT(*) FROM facts"), ==, 4);
}

/* More than one page of events, and more than one pass of the scan. */
static void
test_many(void)
{
    enum { NOISE = 5000, COUNTED = 1201 };
    g_autoptr(World) w = world_new();

    store_append(w->store->db, &(EventSpec){.kind = "agent.said", .actor = "coop"}, NOISE);
    store_append(w->store->db, &(EventSpec){.kind = "pr.opened", .actor = "coop", .task_id = MINE}, COUNTED);
    store_append(w->store->db, &(EventSpec){.kind = "agent.said", .actor = "coop"}, NOISE);
    expect(w, &(ReportSpec){0}, "pull_requests", "1201/1201");
}

static void
test_whose(void)
{
    static const struct {
        ReportSpec spec;
        const char *merges, *tests;
    } cases[] = {
        {{0}, "1/2", "5/6"},
        {{.owner = "me"}, "1/1", "2/2"},
        {{.owner = "you"}, "0/1", "3/4"},
        {{.owner = "nobody"}, "0/0", "0/0"},
        {{.squad = "one"}, "1/1", "2/2"},
        {{.squad = "s2"}, "0/1", "3/4"},
        {{.owner = "me", .squad = "two"}, "0/0", "0/0"},
        {{.until_us = 1000}, "0/0", "0/0"},
    };
    g_autoptr(World) w = world_new();

    append(w, "pr.merged", MINE, NULL, "{}");
    append(w, "pr.closed", YOURS, NULL, "{}");
    append(w, "tests.reported", MINE, NULL, "{'total': 2, 'passed': 2}");
    append(w, "tests.reported", YOURS, NULL, "{'total': 4, 'passed': 3}");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%zu", i);
        expect(w, &cases[i].spec, "merges", cases[i].merges);
        expect(w, &cases[i].spec, "tests", cases[i].tests);
    }
}

static void
test_tasks(void)
{
    g_autoptr(World) w = world_new();
    g_autoptr(Json) all = report(w, &(ReportSpec){.owner = "me"});
    const Json *task = json_array_get(json_object_get(all, "tasks"), 0);

    g_assert_cmpint(row_int(all, "total"), ==, 1);
    g_assert_cmpint(row_int(task, "number"), ==, 1);
    g_assert_cmpint(row_int(json_object_get(task, "report"), "tries"), ==, 4);
    g_autoptr(Json) page = report(w, &(ReportSpec){.page = {.page = 2, .per_page = 1}});

    g_assert_cmpint(row_int(page, "total"), ==, 2);
    g_assert_cmpint(row_int(json_array_get(json_object_get(page, "tasks"), 0), "number"), ==, 1);
    g_autoptr(Json) before = report(w, &(ReportSpec){.until_us = 5});

    g_assert_cmpint(row_int(before, "total"), ==, 0);
    g_autoptr(Json) after = report(w, &(ReportSpec){.since_us = G_GINT64_CONSTANT(4000000000000001)});

    g_assert_cmpint(row_int(after, "total"), ==, 0);
}

/* Medians and percentiles are of the range that is asked for. */
static void
test_values(void)
{
    enum { VALUES = 100 };
    g_autoptr(World) w = world_new();
    g_autofree char *is = NULL;

    for (guint i = VALUES; i > 0; i--) {
        g_autofree char *data = g_strdup_printf("{'state': 'stopped', 'spawn_ms': %u}", i * 1000);

        append(w, "agent.left", i % 2 == 0 ? MINE : YOURS, NULL, data);
    }
    g_autoptr(Json) all = report(w, &(ReportSpec){0}), mine = report(w, &(ReportSpec){.owner = "me"});
    const struct {
        const Json *report;
        gint64 median, p95, max, average;
    } cases[] = {{all, 50000, 95000, 100000, 50500}, {mine, 50000, 96000, 100000, 51000}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        size_t k;
        const Json *rate;

        json_array_foreach(json_object_get(cases[i].report, "rates"), k, rate)
        {
            if (strcmp(row_text(rate, "name"), "spawn") != 0)
                continue;
            g_assert_cmpint(row_int(rate, "median"), ==, cases[i].median);
            g_assert_cmpint(row_int(rate, "p95"), ==, cases[i].p95);
            g_assert_cmpint(row_int(rate, "max"), ==, cases[i].max);
            g_assert_cmpint(row_int(rate, "average"), ==, cases[i].average);
            g_assert_true(json_is_false(json_object_get(rate, "met")));
        }
    }
    is = rate_of(all, "spawn");
    g_assert_cmpstr(is, ==, "29/100");
}

static void
test_days(void)
{
    g_autoptr(World) w = world_new();

    append(w, "loop.broken", MINE, NULL, "{}");
    append(w, "loop.broken", MINE, NULL, "{}");
    append(w, "budget.exceeded", MINE, NULL, "{}");
    append(w, "command.ended", MINE, NULL, "{'reason': 'exit', 'exit_code': 0, 'duration_ms': 3}");
    g_autoptr(Json) first = report(w, &(ReportSpec){0});

    sql(w, "UPDATE facts SET at_us = 1767225600000000 WHERE seq <= 2"); /* the first day of 2026 */
    sql(w, "UPDATE facts SET at_us = 1767398400000000 WHERE seq > 2");  /* the third */
    g_autoptr(Json) all = report(w, &(ReportSpec){0});
    g_autofree char *days = g_strdelimit(json_encode(json_object_get(all, "days")), "\"", '\'');
    g_autofree char *errors = g_strdelimit(json_encode(json_object_get(all, "errors")), "\"", '\'');

    g_assert_cmpstr(days, ==,
                    "[{'day':'2026-01-01','tasks':{'good':0,'total':0},'executions':{'good':0,'total':0},"
                    "'errors':{'loop':2}},{'day':'2026-01-03','tasks':{'good':0,'total':0},"
                    "'executions':{'good':1,'total':1},'errors':{'budget':1}}]");
    g_assert_cmpstr(errors, ==, "[{'class':'loop','total':2},{'class':'budget','total':1}]");
    g_autoptr(Json) one = report(w, &(ReportSpec){.since_us = G_GINT64_CONSTANT(1767225600000000) + DAY_US});

    g_assert_cmpuint(json_array_size(json_object_get(one, "days")), ==, 1);
}

/* Of a box's life a command runs: two that overlap, and one of another box. */
static void
test_utilisation(void)
{
    g_autoptr(World) w = world_new();

    append(w, "command.ended", NULL, "b1", "{'reason': 'exit', 'exit_code': 0, 'duration_ms': 3000}");
    append(w, "command.ended", NULL, "b1", "{'reason': 'exit', 'exit_code': 0, 'duration_ms': 4000}");
    append(w, "command.ended", NULL, "b2", "{'reason': 'exit', 'exit_code': 0, 'duration_ms': 9000}");
    append(w, "box.killed", NULL, "b1", "{'lived_ms': 10000}");
    /* Ended one second after the other: in the ten before the last the two go on from -2 to 1 and from -2
     * to 2. */
    sql(w, "UPDATE events SET at_us = (SELECT MIN(at_us) FROM events) + seq * 1000000");
    expect(w, &(ReportSpec){0}, "utilisation", "4000/10000");
    expect(w, &(ReportSpec){0}, "sandboxes", "1/1");
}

typedef struct Sums {
    gint64 merges, merged, errors;
} Sums;

static void
on_rate(const TeamRate *rate, void *data)
{
    Sums *sums = data;

    if (strcmp(rate->name, "merges") == 0) {
        sums->merges = rate->n;
        sums->merged = rate->good;
        g_assert_cmpint(rate->target, ==, 850);
    }
}

static void
on_error(const TeamRate *rate, void *data)
{
    ((Sums *)data)->errors += rate->n;
}

/* What /metrics shows is the same after a restart. */
static void
test_sums(void)
{
    g_autoptr(World) w = world_new();

    append(w, "pr.merged", MINE, NULL, "{}");
    append(w, "pr.closed", MINE, NULL, "{}");
    append(w, "loop.broken", MINE, NULL, "{}");
    for (guint i = 0; i < 2; i++) {
        g_autoptr(Json) all = report(w, &(ReportSpec){0});
        Sums sums = {0};

        team_each_rate(w->team, on_rate, &sums);
        team_each_error(w->team, on_error, &sums);
        g_assert_cmpint(sums.merges, ==, 2);
        g_assert_cmpint(sums.merged, ==, 1);
        g_assert_cmpint(sums.errors, ==, 1);
        team_free(w->team);
        start(w);
    }
}

/* What is older than facts are kept goes by itself. */
static void
test_old(void)
{
    g_autoptr(World) w = world_new();

    append(w, "pr.merged", MINE, NULL, "{}");
    expect(w, &(ReportSpec){0}, "merges", "1/1");
    sql(w, "UPDATE facts SET at_us = 1");
    append(w, "pr.closed", MINE, NULL, "{}");
    expect(w, &(ReportSpec){0}, "merges", "0/1");
}

/* Somebody else has counted, as after a restore: it is read anew, and nothing is counted twice. */
static void
test_moved_place(void)
{
    g_autoptr(World) w = world_new();

    append(w, "pr.merged", MINE, NULL, "{}");
    expect(w, &(ReportSpec){0}, "merges", "1/1");
    append(w, "pr.merged", MINE, NULL, "{}");
    sql(w, "UPDATE settings SET value = '0' WHERE name = 'facts.seq'");
    sql(w, "DELETE FROM facts");
    expect(w, &(ReportSpec){0}, "merges", "2/2");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/report/once", test_counted_once);
    g_test_add_func("/report/many", test_many);
    g_test_add_func("/report/whose", test_whose);
    g_test_add_func("/report/tasks", test_tasks);
    g_test_add_func("/report/values", test_values);
    g_test_add_func("/report/days", test_days);
    g_test_add_func("/report/utilisation", test_utilisation);
    g_test_add_func("/report/sums", test_sums);
    g_test_add_func("/report/old", test_old);
    g_test_add_func("/report/moved-place", test_moved_place);
    return g_test_run();
}
