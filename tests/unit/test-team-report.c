/* SPDX-License-Identifier: Apache-2.0 */
/* Events that become facts, each once, and what a report makes of them. */
#include <string.h>

#include "support/forge-rows.h"
#include "support/store.h"
#include "team/report.h"
#include "team/tally.h"
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
    expect(w, &(ReportSpec){0}, "executions", "1/1");
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
    append(w, "box.killed", NULL, "b1", "{'lived_ms': 5000}");
    /* They ended 3 and 2 s before the box, which was there for 5: of the 4 s until the later of them it was
     * there for 3. */
    sql(w, "UPDATE events SET at_us = (SELECT MIN(at_us) FROM events) + seq * 1000000");
    expect(w, &(ReportSpec){0}, "utilisation", "3000/5000");
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
        Sums sums = {0};

        expect(w, &(ReportSpec){0}, "merges", "1/2");
        team_each_rate(w->team, on_rate, &sums);
        team_each_error(w->team, on_error, &sums);
        g_assert_cmpint(sums.merges, ==, 2);
        g_assert_cmpint(sums.merged, ==, 1);
        g_assert_cmpint(sums.errors, ==, 1);
        team_free(w->team);
        start(w);
    }
}

/* The log, what was counted of it and the sums in memory are those of the backup. */
static void
test_restored(void)
{
    g_autoptr(World) w = world_new();
    g_autofree char *copy = store_bench_file(w->store, "copy.db");
    Sums sums = {0};

    append(w, "pr.merged", MINE, NULL, "{}");
    expect(w, &(ReportSpec){0}, "merges", "1/1");
    g_assert_true(store_backup(w->store->db, copy, NULL));
    append(w, "pr.closed", MINE, NULL, "{}");
    append(w, "pr.closed", MINE, NULL, "{}");
    expect(w, &(ReportSpec){0}, "merges", "1/3");
    g_assert_true(store_restore(w->store->db, copy, NULL));
    tally_start(w->team->tally);
    expect(w, &(ReportSpec){0}, "merges", "1/1");
    team_each_rate(w->team, on_rate, &sums);
    g_assert_cmpint(sums.merges, ==, 1);
    append(w, "pr.merged", MINE, NULL, "{}");
    expect(w, &(ReportSpec){0}, "merges", "2/2");
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

/* ---- fit for production ---- */

#define SCANS                                                                                                \
    "{\"checks\": [{\"name\": \"parts\", \"exit_code\": 1}, {\"name\": \"scan: lint\", \"exit_code\": 0}]}"

/* A task whose pull request is reviewed and open, with all that makes it fit. */
static const char *const fit[] = {
    "INSERT INTO repositories (id, number, owner, name, folded, description, default_branch, insecure, "
    "state, "
    "settings, next_number, bytes, actor, created_us, updated_us, pushed_us, fetched_us, packed_us) VALUES "
    "('r1', "
    "1, 'coop', 'x', 'coop/x', '', 'main', 0, 'ready', '{}', 2, 0, 'coop', 1, 1, 1, 1, 1)",
    "INSERT INTO repository_refs (repository_id, name, oid, moved_us) VALUES ('r1', 'refs/heads/main', "
    "'base', 1)",
    "INSERT INTO threads (id, repository_id, number, kind, state, title, body, author, reviewers, task_id, "
    "head, "
    "base, head_oid, base_oid, based_us, compared_head, compared_base, ahead, behind, conflicts, draft, "
    "merged, "
    "created_us, updated_us, closed_us, merged_us) VALUES (1, 'r1', 7, 'pull', 'open', 't', '', 'coop', "
    "'[]', '" MINE "', 'task-1', 'main', 'head', 'base', 1, NULL, NULL, 0, 0, 0, 0, 0, 1, 1, 0, 0)",
    "UPDATE tasks SET state = 'reviewing', rung = 'reviewed', ended_us = 0, round = 1, repository_id = 'r1', "
    "base_branch = 'main', base_oid = 'base', pull_number = 7 WHERE id = '" MINE "'",
    "INSERT INTO check_suites (id, repository_id, number, base_oid, head_oid, tree_oid, state, tries, "
    "created_us, "
    "ended_us) VALUES ('u1', 'r1', 7, 'base', 'head', 'tree', 'passed', 1, 1, 1)",
    "INSERT INTO checks (id, repository_id, suite, name, head_oid, seen_by, author, status, conclusion, "
    "started_us, "
    "completed_us, updated_us) VALUES (1, 'r1', 'u1', 'parts', 'head', 'coop', 'coop', 'completed', "
    "'success', 1, 1, "
    "1)",
    "INSERT INTO task_executions (id, agent, task_id, owner, kind, role, archetype, adapter, lease, state, "
    "try, "
    "result, created_us) VALUES ('e1', 'reviewer-1-aa', '" MINE
    "', 'me', 'review', 'reviewer', 'reviewer', 'coop', "
    "'l', 'done', 1, '" SCANS "', 1)",
};

#define MOVED "UPDATE repository_refs SET oid = 'moved'"
#define NOBODY "['nobody has seen that its pull request can be merged']"

static const struct {
    const char *change; /* NULL: none */
    const char *reasons;
    const char *also;
} unfit[] = {
    {NULL, "[]"},
    {"UPDATE tasks SET pull_number = NULL WHERE number = 1", "['there is no pull request']"},
    {"DELETE FROM threads", "['there is no pull request']"},
    /* the checks in a clean box */
    {"DELETE FROM check_suites", "['no check passed in a clean box']"},
    {"UPDATE check_suites SET state = 'running'", "['no check passed in a clean box']"},
    {"UPDATE check_suites SET head_oid = 'older'", "['no check passed in a clean box']"},
    {"UPDATE checks SET conclusion = 'failure'",
     "['no check passed in a clean box','a check failed in a clean box']"},
    {"UPDATE checks SET conclusion = 'skipped'", "['no check passed in a clean box']"},
    {"UPDATE checks SET seen_by = 'claimed'", "['no check passed in a clean box']"},
    /* scans */
    {"UPDATE task_executions SET result = '{}'", "['nothing was scanned']"},
    {"UPDATE task_executions SET state = 'failed'", "['nothing was scanned']"},
    {"UPDATE task_executions SET try = 2", "['nothing was scanned']"},
    {"UPDATE task_executions SET result = replace(result, ': 0', ': 1')", "['scan: lint: it found errors']"},
    {"UPDATE task_executions SET result = replace(result, '\"exit_code\": 0', '\"exit_code\": 0, "
     "\"skipped\": "
     "\"there is none\"')",
     "['scan: lint: there is none']"},
    {"UPDATE task_executions SET report = '{\"verdict\": \"changes\"}'",
     "[]"}, /* what it says is not what is seen */
    /* the pull request */
    {"UPDATE threads SET draft = 1", "['its pull request is not open and ready']"},
    {"UPDATE threads SET state = 'closed'", "['its pull request is not open and ready']"},
    {"UPDATE threads SET state = 'closed', merged = 1, merge_oid = 'm'", "[]"},
    {MOVED, NOBODY},
    {"DELETE FROM repository_refs", NOBODY},
    /* the target has moved: what was seen of both tips counts */
    {"UPDATE threads SET compared_head = 'head', compared_base = 'moved'", "[]", MOVED},
    {"UPDATE threads SET compared_head = 'older', compared_base = 'moved'", NOBODY, MOVED},
    {"UPDATE threads SET compared_head = 'head', compared_base = 'base'", NOBODY, MOVED},
    {"UPDATE threads SET compared_head = 'head', compared_base = 'moved', conflicts = 1", NOBODY, MOVED},
};

static void
test_fit(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(unfit); i++) {
        g_autoptr(World) w = world_new();
        RowAnswer answer = {0};

        g_test_message("%s", unfit[i].change != NULL ? unfit[i].change : "");
        for (size_t k = 0; k < G_N_ELEMENTS(fit); k++)
            sql(w, fit[k]);
        if (unfit[i].change != NULL)
            sql(w, unfit[i].change);
        if (unfit[i].also != NULL)
            sql(w, unfit[i].also);
        task_report(w->team, &(TaskRef){.id = "1"}, on_row_answer, &answer);
        g_autoptr(Json) task = row_answer_wait(&answer);
        const Json *report_of = json_object_get(task, "report"),
                   *reasons = json_object_get(report_of, "reasons");
        g_autofree char *text = g_strdelimit(json_encode(reasons), "\"", '\'');

        g_assert_cmpstr(text, ==, unfit[i].reasons);
        g_assert_true(row_is(report_of, "production_ready") == (json_array_size(reasons) == 0));
    }
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
    g_test_add_func("/report/restored", test_restored);
    g_test_add_func("/report/old", test_old);
    g_test_add_func("/report/fit", test_fit);
    g_test_add_func("/report/moved-place", test_moved_place);
    return g_test_run();
}
