/* SPDX-License-Identifier: Apache-2.0 */
/* The merge queue over a real repository; checks are rows that the test ends. */
#include <string.h>

#include "fake-checks.h"
#include "forge/comment.h"
#include "forge/commit.h"
#include "forge/landing-private.h"
#include "forge/pull.h"
#include "forge/repo-settings.h"
#include "forge/repo.h"
#include "forge/review.h"

typedef struct World {
    ForgeWorld *w;
    FakeChecks *checks;
    Landings *landings;
} World;

static void
make_landings(ForgeWorld *w)
{
    World *world = w->ctx;

    world->checks->world = w;
    world->landings = landings_new(
        &(LandingsSpec){.forge = w->forge, .check = fake_checks_table(world->checks)});
    world->checks->landings = world->landings;
}

static World *
world_new(const char *verdict)
{
    World *world = g_new0(World, 1);

    world->checks = fake_checks_new();
    world->checks->verdict = verdict;
    world->w = forge_world_new(make_landings, world);
    landings_start(world->landings);
    return world;
}

static void
world_stop(World *world)
{
    world->checks->landings = NULL;
    landings_free(world->landings);
    world->landings = NULL;
    forge_world_stop(world->w);
}

static void
world_load(World *world)
{
    forge_world_load(world->w);
    landings_start(world->landings);
}

static void
world_free(World *world)
{
    if (world->landings != NULL)
        world_stop(world);
    forge_world_free(world->w);
    fake_checks_free(world->checks);
    g_free(world);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

#define ASK(func, world, ...)                                                                                \
    ({                                                                                                       \
        RowAnswer answer_ = {0};                                                                             \
        func((world)->landings, (world)->w->repo, __VA_ARGS__, on_row_answer, &answer_);                     \
        row_answer_wait(&answer_);                                                                           \
    })
#define REFUSED(kind, text, func, world, ...)                                                                \
    do {                                                                                                     \
        RowAnswer answer_ = {0};                                                                             \
        func((world)->landings, (world)->w->repo, __VA_ARGS__, on_row_answer, &answer_);                     \
        row_answer_wait_error(&answer_, kind, text);                                                         \
    } while (0)

enum { WAIT_MS = 20000 };

/* A branch with one change, its pull request, checked by Coop. */
static gint64
change(World *world, const char *branch, const char *file, const char *text, char **ret_oid)
{
    char *oid = forge_world_change(world->w, branch, file, text, world->w->root);
    gint64 number = forge_world_pull(world->w, branch);

    fake_checks_pass_pull(world->w, number);
    if (ret_oid != NULL)
        *ret_oid = oid;
    else
        g_free(oid);
    return number;
}

static gint64
add(World *world, gint64 number, const char *method)
{
    LandingSpec spec = {.actor = "local", .number = number, .method = method};
    g_autoptr(Json) entry = ASK(landing_add, world, &spec);

    g_assert_cmpstr(row_text(entry, "state"), ==, "queued");
    return row_int(entry, "id");
}

static Json *
end_of(World *world, gint64 id)
{
    return ASK(landing_wait, world, id, WAIT_MS);
}

/* Once its row says that it is checked. */
static char *
suite_of(World *world, gint64 id)
{
    for (;;) {
        g_autoptr(Json) entry = ASK(landing_get, world, id);

        if (strcmp(row_text(entry, "state"), "checking") == 0)
            return g_strdup(row_text(entry, "suite_id"));
    }
}

static void
expect_end(World *world, gint64 id, const char *state, const char *reason)
{
    g_autoptr(Json) entry = end_of(world, id);

    g_assert_cmpstr(row_text(entry, "state"), ==, state);
    g_assert_cmpstr(row_text(entry, "reason"), ==, reason);
    g_assert_true((row_text(entry, "problem") == NULL) == (reason == NULL));
}

static char *
tip(World *world, const char *branch)
{
    return git_branch_oid(repo_git(world->w->repo), branch, NULL);
}

static char *
show(World *world, const char *what)
{
    g_autoptr(GError) error = NULL;
    char *text = git_text(repo_git(world->w->repo), GIT_READ,
                          GIT_ARGS("show", "-s", "--format=%P|%an|%ae|%cn|%B", what), &error);

    g_assert_no_error(error);
    return text;
}

/* Once nothing is at work any more, no ref of the queue is left. */
static void
expect_no_refs(World *world)
{
    g_autoptr(GError) error = NULL;

    for (;;) {
        ForgeStats stats;

        forge_stats(world->w->forge, &stats);
        if (stats.running + stats.waiting == 0 &&
            store_read_int(world->w->bench->db, "SELECT COUNT(*) FROM merges WHERE leftover <> 0") == 0)
            break;
        g_main_context_iteration(NULL, TRUE);
    }
    g_autofree char *refs = git_text(repo_git(world->w->repo), GIT_READ,
                                     GIT_ARGS("for-each-ref", "refs/coop"), &error);

    g_assert_no_error(error);
    g_assert_cmpstr(refs, ==, "");
}

static void
set_settings(World *world, const char *settings)
{
    g_autofree char *sql = g_strdup_printf("UPDATE repositories SET settings = '%s'", settings);
    g_autoptr(GError) error = NULL;

    store_write_sql(world->w->bench->db, sql, &error);
    g_assert_no_error(error);
}

/* ---- landing ---- */

static void
test_lands(void)
{
    static const struct {
        const char *method;
        const char *format; /* how the commit begins behind its parents */
        bool merges;
    } cases[] = {
        {"merge", "local|local@coop.invalid|Coop|Merge pull request #1 from task-1\n\nChange it\n", true},
        {"squash", "local|local@coop.invalid|Coop|Change it (#1)\n", false},
        {"rebase", NULL, false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(World) world = world_new("passed");
        g_autofree char *head = NULL;
        gint64 n = change(world, "task-1", "a", "one\n2\nthree\nfour\nfive\n", &head);
        g_autofree char *base = forge_world_change(world->w, "main", "b", "other\n", world->w->root);
        g_autoptr(Json) entry = end_of(world, add(world, n, cases[i].method));
        g_autofree char *main_oid = tip(world, "main");
        g_autofree char *said = show(world, "main");
        g_autoptr(Json) pull = ROW_ASK(thread_get, world->w, n, "pull");

        g_assert_cmpstr(row_text(entry, "state"), ==, "landed");
        g_assert_cmpstr(row_text(entry, "landing_oid"), ==, main_oid);
        g_assert_cmpstr(row_text(entry, "target_oid"), ==, base);
        g_assert_cmpstr(row_text(pull, "merge_oid"), ==, main_oid);
        g_assert_cmpstr(row_text(pull, "merge_method"), ==, cases[i].method);
        g_assert_cmpstr(row_text(pull, "receipt"), ==, "receipt of suite-1");
        g_assert_true(row_is(pull, "merged"));
        g_assert_true(g_str_has_prefix(said, base));
        g_assert_cmpint(strstr(said, head) != NULL, ==, cases[i].merges);
        if (cases[i].format != NULL)
            g_assert_cmpstr(strchr(said, '|') + 1, ==, cases[i].format);
        /* What was checked is what landed. */
        g_assert_cmpstr(world->checks->heads->pdata[0], ==, main_oid);
        expect_no_refs(world);
        g_assert_cmpint(store_read_int(world->w->bench->db,
                                       "SELECT COUNT(*) FROM repository_refs WHERE name = 'refs/heads/main' "
                                       "AND oid = (SELECT landing_oid FROM merges)"),
                        ==, 1);
    }
}

static void
test_one_after_the_other(void)
{
    g_autoptr(World) world = world_new(NULL);
    gint64 a = add(world, change(world, "task-1", "b", "1\n", NULL), "squash");
    gint64 b = add(world, change(world, "task-2", "c", "2\n", NULL), "squash");
    gint64 c = add(world, change(world, "task-3", "d", "3\n", NULL), "squash");
    gint64 d = add(world, change(world, "task-4", "e", "4\n", NULL), "squash");
    g_autofree char *first = g_strdup(fake_checks_wait(world->checks, 1));
    LandingStats stats;

    landing_stats(world->landings, &stats);
    g_assert_cmpuint(stats.running, ==, 1);
    g_assert_cmpuint(stats.waiting, ==, 3);
    g_assert_cmpuint(world->checks->suites->len, ==, 1);
    /* The one in the middle is taken out; the first has landed by then or not. */
    g_autoptr(Json) gone = ASK(landing_remove, world, "local", b);

    g_assert_cmpstr(row_text(gone, "state"), ==, "cancelled");
    fake_checks_end(world->checks, first, "passed");
    expect_end(world, a, "landed", NULL);
    g_autofree char *after = tip(world, "main");

    fake_checks_wait(world->checks, 2);
    g_autoptr(Json) behind = ASK(landing_get, world, d);

    g_assert_cmpstr(row_text(behind, "state"), ==, "queued");
    fake_checks_end(world->checks, world->checks->suites->pdata[1], "passed");
    g_autoptr(Json) last = end_of(world, c);

    g_assert_cmpstr(row_text(last, "target_oid"), ==, after);
    expect_end(world, b, "cancelled", "removed");
    fake_checks_end(world->checks, fake_checks_wait(world->checks, 3), "passed");
    expect_end(world, d, "landed", NULL);
    landing_stats(world->landings, &stats);
    g_assert_cmpuint(stats.running + stats.waiting, ==, 0);
    g_assert_cmpuint(stats.landed, ==, 3);
    g_assert_cmpuint(stats.cancelled, ==, 1);
    REFUSED(ERR_CONFLICT, "has ended", landing_remove, world, "local", a);
    REFUSED(ERR_NOT_FOUND, NULL, landing_remove, world, "local", 99);
}

/* Different targets do not wait for each other. */
static void
test_side_by_side(void)
{
    g_autoptr(World) world = world_new(NULL);
    PullSpec spec = {.actor = "local", .head = "task-2", .base = "stable", .title = "Another"};

    forge_world_move(world->w, "stable", world->w->root);
    gint64 a = add(world, change(world, "task-1", "b", "1\n", NULL), NULL);
    g_autofree char *oid = forge_world_change(world->w, "task-2", "c", "2\n", world->w->root);
    g_autoptr(Json) pull = ROW_ASK(pull_open, world->w, &spec);

    fake_checks_pass_pull(world->w, row_int(pull, "number"));
    gint64 b = add(world, row_int(pull, "number"), NULL);

    g_autofree char *suite_a = suite_of(world, a), *suite_b = suite_of(world, b);

    fake_checks_end(world->checks, suite_b, "passed");
    expect_end(world, b, "landed", NULL);
    fake_checks_end(world->checks, suite_a, "passed");
    expect_end(world, a, "landed", NULL);
    g_autoptr(Json) left = ASK(landing_list, world, &(LandingFilter){.target = "main"});
    g_autoptr(Json) ended = ASK(landing_list, world, &(LandingFilter){.target = "stable", .ended = true});

    g_assert_cmpint(row_int(left, "total"), ==, 0);
    g_assert_cmpint(row_int(ended, "total"), ==, 1);
}

/* ---- rules ---- */

static void
test_refused(void)
{
    g_autoptr(World) world = world_new("passed");
    g_autofree char *oid = forge_world_change(world->w, "task-1", "b", "1\n", world->w->root);
    gint64 n = forge_world_pull(world->w, "task-1");
    LandingSpec spec = {.actor = "local", .number = n};

    REFUSED(ERR_DENIED, "this head", landing_add, world, &spec);
    REFUSED(ERR_NOT_FOUND, NULL, landing_add, world, &(LandingSpec){.actor = "local", .number = 77});
    fake_checks_pass_pull(world->w, n);
    set_settings(world, "{\"merge_methods\": [\"squash\"]}");
    spec.method = "rebase";
    REFUSED(ERR_DENIED, "does not merge by rebase", landing_add, world, &spec);
    spec.method = "octopus";
    REFUSED(ERR_INVALID, "none of", landing_add, world, &spec);
    spec.method = NULL;
    spec.head_oid = world->w->root;
    REFUSED(ERR_CONFLICT, "its head is", landing_add, world, &spec);
    spec.head_oid = "nonsense";
    REFUSED(ERR_INVALID, NULL, landing_add, world, &spec);
    spec.head_oid = oid;
    world->checks->verdict = NULL;
    g_autoptr(Json) entry = ASK(landing_add, world, &spec);

    g_assert_cmpstr(row_text(entry, "method"), ==, "squash");
    REFUSED(ERR_CONFLICT, "in the merge queue already", landing_add, world, &spec);
    REFUSED(ERR_NOT_FOUND, NULL, landing_wait, world, 4711, WAIT_MS);
}

static void
request_changes(World *world, gint64 n)
{
    g_autoptr(Json) review = ROW_ASK(
        review_create, world->w,
        &(ReviewSpec){.actor = "key:other", .number = n, .verdict = REVIEW_REFUSE, .body = "No"});
}

/* What holds when it is added need not hold when it is built, nor when its checks have passed. */
static void
test_asked_again(void)
{
    g_autoptr(World) world = world_new(NULL);
    gint64 first = change(world, "task-1", "b", "1\n", NULL);
    gint64 second = change(world, "task-2", "c", "2\n", NULL);
    gint64 a = add(world, first, NULL), b = add(world, second, NULL);
    g_autofree char *before = tip(world, "main");

    fake_checks_wait(world->checks, 1);
    request_changes(world, first);
    request_changes(world, second);
    fake_checks_end(world->checks, world->checks->suites->pdata[0], "passed");
    expect_end(world, a, "failed", "rules");
    expect_end(world, b, "failed", "rules");
    g_autofree char *after = tip(world, "main");

    g_assert_cmpstr(before, ==, after);
    g_assert_cmpuint(world->checks->suites->len, ==, 1);
    expect_no_refs(world);
}

static void
test_checks_decide(void)
{
    static const struct {
        const char *state, *reason;
    } cases[] = {{"failed", "checks"}, {"error", "failed"}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(World) world = world_new(cases[i].state);
        gint64 bad = add(world, change(world, "task-1", "b", "1\n", NULL), NULL);

        expect_end(world, bad, "failed", cases[i].reason);
        world->checks->verdict = "passed";
        expect_end(world, add(world, change(world, "task-2", "c", "2\n", NULL), NULL), "landed", NULL);
        g_autofree char *text = git_text(repo_git(world->w->repo), GIT_READ,
                                         GIT_ARGS("ls-tree", "--name-only", "main"), NULL);

        g_assert_null(strstr(text, "b"));
        expect_no_refs(world);
    }
}

/* The queue does not take the word of whoever tells it that a suite has passed. */
static void
test_told_wrongly(void)
{
    g_autoptr(World) world = world_new(NULL);
    gint64 id = add(world, change(world, "task-1", "b", "1\n", NULL), NULL);
    const char *suite = fake_checks_wait(world->checks, 1);

    landings_suite_ended(world->landings, world->w->repo, suite, "passed");
    g_autoptr(Json) entry = ASK(landing_wait, world, id, 200);

    g_assert_cmpint(row_int(entry, "ended_us"), ==, 0);
    fake_checks_end(world->checks, suite, "failed");
    expect_end(world, id, "failed", "checks");
}

static void
test_up_to_date(void)
{
    g_autoptr(World) world = world_new("passed");
    gint64 first = change(world, "task-1", "b", "1\n", NULL);
    gint64 second = change(world, "task-2", "c", "2\n", NULL);

    set_settings(world, "{\"up_to_date\": true}");
    world->checks->verdict = NULL;
    gint64 a = add(world, first, "merge"), b = add(world, second, "merge");

    fake_checks_end(world->checks, fake_checks_wait(world->checks, 1), "passed");
    expect_end(world, a, "landed", NULL);
    expect_end(world, b, "failed", "rules");
}

/* ---- what moves ---- */

static void
push_to_main(FakeChecks *checks, const char *base_oid, const char *head_oid)
{
    g_autofree char *text = g_strdup_printf("%u\n", checks->next);

    g_free(forge_world_change(checks->world, "main", "other", text, base_oid));
}

static void
test_target_moves(void)
{
    g_autoptr(World) world = world_new(NULL);
    gint64 id = add(world, change(world, "task-1", "b", "1\n", NULL), "merge");
    LandingStats stats;

    fake_checks_wait(world->checks, 1);
    /* Told of: the suite is not waited for. */
    g_autofree char *moved = forge_world_change(world->w, "main", "c", "2\n", world->w->root);

    fake_checks_wait(world->checks, 2);
    g_assert_cmpuint(world->checks->cancelled, ==, 1);
    /* Not told of: git itself says so. */
    g_autofree char *behind = forge_world_commit(world->w, "d", "3\n", moved);

    g_assert_true(git_branch_move(repo_git(world->w->repo), "main", moved, behind, "test", NULL));
    fake_checks_end(world->checks, world->checks->suites->pdata[1], "passed");
    fake_checks_end(world->checks, fake_checks_wait(world->checks, 3), "passed");
    g_autoptr(Json) entry = end_of(world, id);

    g_assert_cmpstr(row_text(entry, "state"), ==, "landed");
    g_assert_cmpstr(row_text(entry, "target_oid"), ==, behind);
    g_assert_cmpint(row_int(entry, "tries"), ==, 3);
    landing_stats(world->landings, &stats);
    g_assert_cmpuint(stats.rebuilt, ==, 2);
    expect_no_refs(world);
}

static void
test_target_keeps_moving(void)
{
    g_autoptr(World) world = world_new("passed");

    world->checks->adding = push_to_main;
    gint64 id = add(world, change(world, "task-1", "b", "1\n", NULL), NULL);

    expect_end(world, id, "failed", "target_moved");
    g_assert_cmpuint(world->checks->suites->len, ==, LANDING_TRIES);
    expect_no_refs(world);
}

static void
test_head_moves(void)
{
    static const struct {
        bool pinned, passes;
        const char *state, *reason;
    } cases[] = {
        {true, true, "failed", "head_moved"},
        {false, true, "landed", NULL},
        {false, false, "failed", "rules"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(World) world = world_new(NULL);
        g_autofree char *head = NULL;
        gint64 n = change(world, "task-1", "b", "1\n", &head);
        LandingSpec spec = {.actor = "local", .number = n, .head_oid = cases[i].pinned ? head : NULL};
        g_autoptr(Json) entry = ASK(landing_add, world, &spec);

        fake_checks_wait(world->checks, 1);
        /* Told of once the next head may be merged. */
        g_autofree char *next = forge_world_commit(world->w, "b", "2\n", head);
        g_autofree char *sql = g_strdup_printf(
            "INSERT INTO check_suites (id, repository_id, number, base_oid, head_oid, tree_oid, state, "
            "tries, created_us, ended_us) SELECT 'next', id, %" G_GINT64_FORMAT
            ", '', '%s', '', 'passed', 1, %" G_GINT64_FORMAT ", 1 FROM repositories",
            n, next, g_get_real_time());

        if (cases[i].passes)
            g_assert_true(store_write_sql(world->w->bench->db, sql, NULL));
        world->checks->verdict = "passed";
        forge_world_move(world->w, "task-1", next);
        g_autoptr(Json) end = end_of(world, row_int(entry, "id"));

        g_assert_cmpstr(row_text(end, "state"), ==, cases[i].state);
        g_assert_cmpstr(row_text(end, "reason"), ==, cases[i].reason);
        if (cases[i].reason == NULL)
            g_assert_cmpstr(row_text(end, "head_oid"), ==, next);
        expect_no_refs(world);
    }
}

/* ---- conflicts ---- */

static gint64
count_comments(World *world, const char *like)
{
    g_autofree char *sql = g_strdup_printf("SELECT COUNT(*) FROM comments WHERE marker = 'coop-merge-queue' "
                                           "AND author = 'coop' AND body LIKE '%s'",
                                           like);

    return store_read_int(world->w->bench->db, sql);
}

static void
test_conflict(void)
{
    static const char *const methods[] = {"merge", "squash", "rebase"};

    for (size_t i = 0; i < G_N_ELEMENTS(methods); i++) {
        g_autoptr(World) world = world_new("passed");
        g_autofree char *head = NULL;
        gint64 one = change(world, "task-1", "a", "one\nZWEI\nthree\nfour\nfive\n", NULL);
        gint64 two = change(world, "task-2", "a", "one\n2\nthree\nfour\nfive\n", &head);
        gint64 three = change(world, "task-3", "b", "new\n", NULL);
        gint64 a = add(world, one, methods[i]), b = add(world, two, methods[i]),
               c = add(world, three, methods[i]);

        expect_end(world, a, "landed", NULL);
        expect_end(world, c, "landed", NULL);
        g_autoptr(Json) entry = end_of(world, b);
        const Json *bundle = json_object_get(entry, "conflict");
        const Json *file = json_array_get(json_object_get(bundle, "files"), 0);

        g_assert_cmpstr(row_text(entry, "state"), ==, "conflict");
        g_assert_cmpstr(row_text(file, "path"), ==, "a");
        g_assert_cmpstr(row_text(json_object_get(file, "base"), "text"), ==, "one\ntwo\nthree\nfour\nfive\n");
        g_assert_cmpstr(row_text(json_object_get(file, "ours"), "text"), ==,
                        "one\nZWEI\nthree\nfour\nfive\n");
        g_assert_cmpstr(row_text(json_object_get(file, "theirs"), "text"), ==, "one\n2\nthree\nfour\nfive\n");
        g_assert_cmpstr(row_text(json_object_get(bundle, "ours"), "title"), ==, "Change it");
        g_assert_cmpstr(row_text(json_object_get(bundle, "theirs"), "oid"), ==, head);
        g_assert_cmpint(count_comments(world, "It conflicts with `main`%- `a`%"), ==, 1);
        g_assert_cmpint(store_read_int(world->w->bench->db,
                                       "SELECT COUNT(*) FROM events WHERE kind = 'merge.conflicted'"),
                        ==, 1);
        /* Resolved on the branch: the comment is the same one. */
        g_autofree char *now = tip(world, "main");
        g_autofree char *tree = forge_world_commit(world->w, "a", "one\nZWEI 2\nthree\nfour\nfive\n", now);

        forge_world_move(world->w, "task-2", tree);
        for (;;) {
            g_autoptr(Json) pull = ROW_ASK(thread_get, world->w, two, "pull");

            if (strcmp(row_text(pull, "head_oid"), tree) == 0)
                break;
        }
        fake_checks_pass_pull(world->w, two);
        expect_end(world, add(world, two, methods[i]), "landed", NULL);
        g_assert_cmpint(count_comments(world, "It was merged into `main` as %"), ==, 1);
        expect_no_refs(world);
    }
}

/* Somebody else's comment of that name keeps nothing from landing. */
static void
test_comment_of_others(void)
{
    g_autoptr(World) world = world_new("failed");
    gint64 n = change(world, "task-1", "b", "1\n", NULL);
    CommentSpec spec = {.actor = "key:other", .number = n, .body = "mine", .marker = "coop-merge-queue"};
    g_autoptr(Json) comment = ROW_ASK(comment_put, world->w, &spec);

    expect_end(world, add(world, n, NULL), "failed", "checks");
    world->checks->verdict = "passed";
    expect_end(world, add(world, n, NULL), "landed", NULL);
}

static void
test_nothing(void)
{
    static const char *const methods[] = {"merge", "squash", "rebase"};

    for (size_t i = 0; i < G_N_ELEMENTS(methods); i++) {
        g_autoptr(World) world = world_new("passed");
        gint64 n = change(world, "task-1", "b", "1\n", NULL);
        g_autofree char *root = g_strdup(world->w->root);

        /* Git knows, and nobody was told. */
        g_autofree char *head = tip(world, "task-1");

        g_assert_true(git_branch_move(repo_git(world->w->repo), "main", root, head, "test", NULL));
        expect_end(world, add(world, n, methods[i]), "failed", "nothing");
        expect_no_refs(world);
    }
}

/* ---- a branch that was merged ---- */

static void
test_delete_branch(void)
{
    g_autoptr(World) world = world_new("passed");
    gint64 n = change(world, "task-1", "b", "1\n", NULL), m = change(world, "task-2", "c", "2\n", NULL);
    PullSpec onto = {.actor = "local", .head = "task-3", .base = "task-2", .title = "On top"};
    g_autofree char *two = tip(world, "task-2");
    g_autofree char *three = forge_world_change(world->w, "task-3", "d", "3\n", two);
    g_autoptr(Json) other = ROW_ASK(pull_open, world->w, &onto);

    set_settings(world, "{\"delete_merged_branches\": true}");
    expect_end(world, add(world, n, NULL), "landed", NULL);
    expect_end(world, add(world, m, NULL), "landed", NULL);
    expect_no_refs(world);
    g_assert_null(tip(world, "task-1"));
    /* Another one builds on it. */
    g_free(g_steal_pointer(&two));
    two = tip(world, "task-2");
    g_assert_nonnull(two);
    g_assert_cmpint(
        store_read_int(world->w->bench->db, "SELECT COUNT(*) FROM events WHERE kind = 'branch.removed'"), ==,
        1);
    g_assert_cmpint(
        store_read_int(world->w->bench->db, "SELECT COUNT(*) FROM events WHERE kind = 'pr.closed'"), ==, 0);
}

/* ---- taking out ---- */

static void
test_remove_while_checked(void)
{
    g_autoptr(World) world = world_new(NULL);
    gint64 id = add(world, change(world, "task-1", "b", "1\n", NULL), NULL);

    fake_checks_wait(world->checks, 1);
    g_autofree char *suite = suite_of(world, id);

    g_autoptr(Json) gone = ASK(landing_remove, world, "key:someone", id);

    g_assert_cmpuint(world->checks->cancelled, ==, 1);
    expect_end(world, id, "cancelled", "removed");
    fake_checks_end(world->checks, world->checks->suites->pdata[0], "passed");
    expect_no_refs(world);
    g_autofree char *main_oid = tip(world, "main");

    g_assert_cmpstr(main_oid, ==, world->w->root);
}

static RowAnswer removed;

static void
remove_it(FakeChecks *checks, const char *base_oid, const char *head_oid)
{
    landing_remove(checks->landings, checks->world->repo, "local", 1, on_row_answer, &removed);
}

/* Between its building and its checks. */
static void
test_remove_while_built(void)
{
    g_autoptr(World) world = world_new("passed");

    world->checks->adding = remove_it;
    gint64 id = add(world, change(world, "task-1", "b", "1\n", NULL), NULL);
    g_autoptr(Json) gone = row_answer_wait(&removed);

    g_assert_cmpint(id, ==, 1);
    expect_end(world, id, "cancelled", "removed");
    expect_no_refs(world);
    world->checks->adding = NULL;
    expect_end(world, add(world, change(world, "task-2", "b", "1\n", NULL), NULL), "landed", NULL);
}

/* ---- what cannot be done ---- */

static void
test_checks_refuse(void)
{
    g_autoptr(World) world = world_new("passed");
    gint64 n = change(world, "task-1", "b", "1\n", NULL);

    world->checks->refusal = g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, "there are no boxes");
    g_autoptr(Json) entry = end_of(world, add(world, n, NULL));

    g_assert_cmpstr(row_text(entry, "reason"), ==, "failed");
    g_assert_cmpstr(row_text(entry, "problem"), ==, "there are no boxes");
    expect_end(world, add(world, n, NULL), "landed", NULL);
}

/* ---- starting again ---- */

static void
test_starts_again(void)
{
    static const struct {
        const char *state; /* of the suite while nobody was there; NULL: it goes on */
        const char *ends, *reason;
    } cases[] = {{"passed", "landed", NULL}, {"failed", "failed", "checks"}, {NULL, "landed", NULL}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(World) world = world_new(NULL);
        gint64 a = add(world, change(world, "task-1", "b", "1\n", NULL), NULL);
        gint64 b = add(world, change(world, "task-2", "c", "2\n", NULL), NULL);
        g_autofree char *sql = g_strdup_printf("UPDATE check_suites SET state = '%s' WHERE id = 'suite-1'",
                                               cases[i].state);

        fake_checks_wait(world->checks, 1);
        g_autofree char *suite = suite_of(world, a);

        world_stop(world);
        if (cases[i].state != NULL)
            g_assert_true(store_write_sql(world->w->bench->db, sql, NULL));
        world_load(world);
        if (cases[i].state == NULL)
            fake_checks_end(world->checks, "suite-1", "passed");
        expect_end(world, a, cases[i].ends, cases[i].reason);
        fake_checks_end(world->checks, fake_checks_wait(world->checks, 2), "passed");
        expect_end(world, b, "landed", NULL);
        expect_no_refs(world);
        g_assert_cmpuint(world->checks->suites->len, ==, 2);
    }
}

/* The row says that it lands: the branch says whether it has. */
static void
test_starts_landing(void)
{
    static const struct {
        bool moved, gone_on, elsewhere;
        gint64 tries;
        bool merged; /* where it was mirrored from, meanwhile */
    } cases[] = {{false, false, false, 1},
                 {true, false, false, 1},
                 {true, true, false, 1},
                 {false, false, true, 2},
                 {true, false, false, 1, true}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(World) world = world_new(NULL);
        gint64 id = add(world, change(world, "task-1", "b", "1\n", NULL), "merge");

        fake_checks_wait(world->checks, 1);
        g_autofree char *candidate = g_strdup(world->checks->heads->pdata[0]);

        g_autofree char *suite = suite_of(world, id);

        GitRepo *git = git_repo_ref(repo_git(world->w->repo));
        g_autofree char *next = forge_world_commit(world->w, "z", "z\n",
                                                   cases[i].moved ? candidate : world->w->root);

        g_assert_true(store_write_sql(world->w->bench->db, "UPDATE check_suites SET state = 'passed'", NULL));
        world_stop(world);
        g_assert_true(store_write_sql(
            world->w->bench->db, "UPDATE merges SET state = 'landing', landing_oid = candidate_oid", NULL));
        if (cases[i].merged)
            g_assert_true(store_write_sql(
                world->w->bench->db, "UPDATE threads SET state = 'closed', merged = 1, merge_oid = head_oid",
                NULL));
        const char *at = world->w->root;

        if (cases[i].moved) {
            g_assert_true(git_branch_move(git, "main", at, candidate, "test", NULL));
            at = candidate;
        }

        if (cases[i].gone_on || cases[i].elsewhere)
            g_assert_true(git_branch_move(git, "main", at, next, "test", NULL));
        world->checks->verdict = "passed";
        world_load(world);
        g_autoptr(Json) entry = end_of(world, id);
        g_autofree char *now = tip(world, "main");
        bool has = false;

        g_assert_cmpstr(row_text(entry, "state"), ==, "landed");
        g_assert_cmpint(row_int(entry, "tries"), ==, cases[i].tries);
        g_assert_cmpint(strcmp(row_text(entry, "landing_oid"), candidate) == 0, ==, !cases[i].elsewhere);
        g_assert_true(commit_is_ancestor(git, row_text(entry, "landing_oid"), now, &has, NULL));
        g_assert_true(has);
        g_assert_cmpint(
            store_read_int(world->w->bench->db, "SELECT COUNT(*) FROM events WHERE kind = 'pr.merged'"), ==,
            !cases[i].merged);
        expect_no_refs(world);
        git_repo_unref(git);
    }
}

/* The same row gives the same commit. */
static void
test_builds_the_same(void)
{
    g_autoptr(World) world = world_new(NULL);
    gint64 id = add(world, change(world, "task-1", "b", "1\n", NULL), "squash");

    fake_checks_wait(world->checks, 1);
    g_assert_true(id > 0);
    world_stop(world);
    g_assert_true(store_write_sql(world->w->bench->db, "UPDATE merges SET state = 'building'", NULL));
    world_load(world);
    fake_checks_wait(world->checks, 2);
    g_assert_cmpstr(world->checks->heads->pdata[0], ==, world->checks->heads->pdata[1]);
}

/* ---- a push does what a merge would have done ---- */

static void
test_merged_by_push(void)
{
    g_autoptr(World) world = world_new("passed");
    g_autofree char *head = NULL;
    gint64 n = change(world, "task-1", "b", "1\n", &head), m = change(world, "task-2", "c", "2\n", NULL);

    forge_world_move(world->w, "main", head);
    for (;;) {
        g_autoptr(Json) pull = ROW_ASK(thread_get, world->w, n, "pull");

        if (!row_is(pull, "merged"))
            continue;
        g_assert_cmpstr(row_text(pull, "merge_oid"), ==, head);
        g_assert_cmpstr(row_text(pull, "merge_method"), ==, "push");
        g_assert_cmpstr(row_actor(pull, "merged_by"), ==, "local");
        break;
    }
    /* A head that is set back to what the base had is not merged by that. */
    forge_world_move(world->w, "task-2", world->w->root);
    for (;;) {
        g_autoptr(Json) pull = ROW_ASK(thread_get, world->w, m, "pull");

        if (g_strcmp0(row_text(pull, "compared_head"), world->w->root) != 0)
            continue;
        g_assert_false(row_is(pull, "merged"));
        break;
    }
}

static void
test_repository_goes(void)
{
    g_autoptr(World) world = world_new(NULL);
    RowAnswer answer = {0};
    gint64 id = add(world, change(world, "task-1", "b", "1\n", NULL), NULL);
    LandingStats stats;

    fake_checks_wait(world->checks, 1);
    gint64 began_us = g_get_monotonic_time();

    landing_wait(world->landings, world->w->repo, id, WAIT_MS, on_row_answer, &answer);
    repo_remove(world->w->repo, "local", NULL, NULL);
    while (forge_find(world->w->forge, "coop", "widget") != NULL)
        g_main_context_iteration(NULL, TRUE);
    landing_stats(world->landings, &stats);
    g_assert_cmpuint(stats.running + stats.waiting, ==, 0);
    row_answer_wait_error(&answer, ERR_NOT_FOUND, NULL);
    /* Not because its time was over. */
    g_assert_cmpint(g_get_monotonic_time() - began_us, <, WAIT_MS * G_GINT64_CONSTANT(1000) / 2);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/landing/lands", test_lands);
    g_test_add_func("/forge/landing/one-after-the-other", test_one_after_the_other);
    g_test_add_func("/forge/landing/side-by-side", test_side_by_side);
    g_test_add_func("/forge/landing/refused", test_refused);
    g_test_add_func("/forge/landing/asked-again", test_asked_again);
    g_test_add_func("/forge/landing/checks-decide", test_checks_decide);
    g_test_add_func("/forge/landing/told-wrongly", test_told_wrongly);
    g_test_add_func("/forge/landing/up-to-date", test_up_to_date);
    g_test_add_func("/forge/landing/target-moves", test_target_moves);
    g_test_add_func("/forge/landing/target-keeps-moving", test_target_keeps_moving);
    g_test_add_func("/forge/landing/head-moves", test_head_moves);
    g_test_add_func("/forge/landing/conflict", test_conflict);
    g_test_add_func("/forge/landing/comment-of-others", test_comment_of_others);
    g_test_add_func("/forge/landing/nothing", test_nothing);
    g_test_add_func("/forge/landing/delete-branch", test_delete_branch);
    g_test_add_func("/forge/landing/remove-while-checked", test_remove_while_checked);
    g_test_add_func("/forge/landing/remove-while-built", test_remove_while_built);
    g_test_add_func("/forge/landing/checks-refuse", test_checks_refuse);
    g_test_add_func("/forge/landing/starts-again", test_starts_again);
    g_test_add_func("/forge/landing/starts-landing", test_starts_landing);
    g_test_add_func("/forge/landing/builds-the-same", test_builds_the_same);
    g_test_add_func("/forge/landing/merged-by-push", test_merged_by_push);
    g_test_add_func("/forge/landing/repository-goes", test_repository_goes);
    return g_test_run();
}
