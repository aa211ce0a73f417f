/* SPDX-License-Identifier: Apache-2.0 */
/* Which events become work at GitHub, and which never do. */
#include <string.h>

#include "forge/forge-private.h"
#include "github/account-private.h"
#include "github/upstream-private.h"
#include "support/forge-rows.h"

typedef struct FollowWorld {
    RowWorld *rows;
    Seal *seal;
    GithubAccounts *accounts;
    Upstream *upstream;
} FollowWorld;

/* Rows are made, and nobody does them. */
static void
start(FollowWorld *w)
{
    w->upstream = upstream_new(&(UpstreamSpec){.forge = w->rows->forge,
                                               .accounts = w->accounts,
                                               .loop = w->rows->loop,
                                               .db = w->rows->bench->db,
                                               .events = w->rows->bench->log,
                                               .poll_ms = 3600 * 1000});
    w->upstream->working = true;
    upstream_start(w->upstream);
    while (w->upstream->cursor == NULL)
        g_main_context_iteration(NULL, TRUE);
}

static FollowWorld *
world_new(void)
{
    FollowWorld *w = g_new0(FollowWorld, 1);

    w->rows = row_world_new();
    g_free(w->rows->repo->upstream);
    w->rows->repo->upstream = g_strdup("http://127.0.0.1:1/acme/widget.git");
    w->seal = seal_open(w->rows->bench->dir, NULL);
    w->accounts = github_accounts_new(
        &(GithubAccountsSpec){.loop = w->rows->loop, .db = w->rows->bench->db, .seal = w->seal});
    account_adopt(w->accounts, account_new(w->accounts, "http://127.0.0.1:1/api/v3", "t"));
    start(w);
    return w;
}

static void
world_free(FollowWorld *w)
{
    while (w->upstream->following)
        g_main_context_iteration(NULL, TRUE);
    upstream_free(w->upstream);
    github_accounts_free(w->accounts);
    g_clear_pointer(&w->rows->repo->upstream, g_free);
    row_world_free(w->rows);
    seal_free(w->seal);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FollowWorld, world_free)

static void
append(FollowWorld *w, const char *kind, const char *box_id, const char *ref, const char *source)
{
    g_autofree char *data = g_strdup_printf(
        "{\"repository_id\":\"%s\",\"ref\":\"%s\",\"after\":\"%s\"%s%s%s}", row_world_id, ref, row_oid('a'),
        source != NULL ? ",\"source\":\"" : "", source != NULL ? source : "", source != NULL ? "\"" : "");

    (void)store_append(w->rows->bench->db,
                       &(EventSpec){.kind = kind, .actor = "box:x", .box_id = box_id, .data = data}, 1);
}

static void
append_pull(FollowWorld *w, gint64 number)
{
    g_autofree char *data = g_strdup_printf("{\"repository_id\":\"%s\",\"number\":%" G_GINT64_FORMAT "}",
                                            row_world_id, number);

    (void)store_append(w->rows->bench->db, &(EventSpec){.kind = "pr.updated", .actor = "x", .data = data}, 1);
}

static gint64
count(FollowWorld *w, const char *where)
{
    g_autofree char *sql = g_strdup_printf("SELECT COUNT(*) FROM upstream_work WHERE %s", where);

    return store_read_int(w->rows->bench->db, sql);
}

/* What came before it was followed too. */
static void
settle(FollowWorld *w)
{
    static guint n;
    g_autofree char *ref = g_strdup_printf("refs/heads/last-%u", ++n);
    g_autofree char *where = g_strdup_printf("key LIKE '%%:last-%u'", n);

    append(w, "branch.created", "b", ref, NULL);
    while (count(w, where) == 0)
        g_main_context_iteration(NULL, FALSE);
}

static void
test_pushes(void)
{
    static const struct {
        const char *kind, *box_id, *ref, *source;
        gint64 rows;
    } cases[] = {
        {"commit.pushed", "b", "refs/heads/task-1", NULL, 1},
        {"branch.created", "b", "refs/heads/task-1", NULL, 1},
        {"commit.pushed", NULL, "refs/heads/task-1", NULL, 0},    /* a person's */
        {"commit.pushed", "b", "refs/heads/main", NULL, 0},       /* protected */
        {"commit.pushed", "b", "refs/tags/task-1", NULL, 0},      /* no branch */
        {"commit.pushed", "b", "refs/heads/task-1", "github", 0}, /* told of from there */
        {"branch.removed", "b", "refs/heads/task-1", NULL, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(FollowWorld) w = world_new();

        g_test_message("case %zu", i);
        append(w, cases[i].kind, cases[i].box_id, cases[i].ref, cases[i].source);
        settle(w);
        g_assert_cmpint(count(w, "key NOT LIKE '%:last-%'"), ==, cases[i].rows);
    }
}

static void
test_pulls(void)
{
    g_autoptr(FollowWorld) w = world_new();
    gint64 others = row_world_pull(w->rows, "local", "task-2"),
           ours = row_world_pull(w->rows, "local", "task-1");

    append(w, "branch.created", "b", "refs/heads/task-1", NULL);
    append_pull(w, others); /* no box has pushed its branch */
    append_pull(w, ours);
    append_pull(w, ours);
    settle(w);
    g_assert_cmpint(count(w, "kind = 'pull'"), ==, 1);
    g_autofree char *where = g_strdup_printf("kind = 'pull' AND key LIKE '%%:%" G_GINT64_FORMAT "'", ours);

    g_assert_cmpint(count(w, where), ==, 1);
}

static void
append_part(FollowWorld *w, const char *kind, const char *actor, gint64 number, const char *more)
{
    g_autofree char *data = g_strdup_printf("{\"repository_id\":\"%s\",\"number\":%" G_GINT64_FORMAT "%s}",
                                            row_world_id, number, more);

    (void)store_append(w->rows->bench->db, &(EventSpec){.kind = kind, .actor = actor, .data = data}, 1);
}

/* What is said under a pull request that is kept there, by those who said it here. */
static void
test_parts(void)
{
    static const struct {
        const char *kind, *actor, *more;
        bool is_others;
        const char *where; /* of the one row; NULL: none */
    } cases[] = {
        {"comment.added", "local", ",\"comment_id\":5", false, "kind = 'comment' AND key LIKE '%:5'"},
        {"comment.changed", "local", ",\"comment_id\":5", false, "kind = 'comment' AND key LIKE '%:5'"},
        {"comment.added", "github:ann", ",\"comment_id\":5", false, NULL},
        {"comment.added", "local", ",\"comment_id\":5,\"source\":\"github\"", false, NULL},
        {"comment.added", "local", ",\"comment_id\":5", true, NULL},
        {"comment.added", "local", "", false, NULL},
        {"review.submitted", "local", ",\"review_id\":6", false, "kind = 'review' AND key LIKE '%:6'"},
        {"review.submitted", "github:ann", ",\"review_id\":6", false, NULL},
        {"review.changed", "local", ",\"review_id\":6,\"line_comment_id\":7", false,
         "kind = 'line' AND key LIKE '%:7'"},
        {"review.changed", "local", ",\"line_comment_id\":7,\"action\":\"resolved\"", false, NULL},
        {"review.requested", "local", "", false, "kind = 'pull'"},
        {"review.requested", "github:ann", "", false, NULL},
        {"review.requested", "local", "", true, NULL},
        {"pr.merged", "local", ",\"method\":\"squash\",\"base\":\"main\",\"merge_oid\":\"x\"", false,
         "kind = 'merge' AND body LIKE '%\"branch\":\"main\"%'"},
        {"pr.merged", "local", ",\"method\":\"push\"", false, NULL},
        {"pr.merged", "github:ann", ",\"method\":\"squash\"", false, NULL},
        {"pr.closed", "github:ann", "", false, NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(FollowWorld) w = world_new();
        gint64 others = row_world_pull(w->rows, "local", "task-2"),
               ours = row_world_pull(w->rows, "local", "task-1");

        g_test_message("case %zu", i);
        append(w, "branch.created", "b", "refs/heads/task-1", NULL);
        append_part(w, cases[i].kind, cases[i].actor, cases[i].is_others ? others : ours, cases[i].more);
        settle(w);
        g_assert_cmpint(count(w, "kind <> 'push'"), ==, cases[i].where != NULL);
        if (cases[i].where != NULL)
            g_assert_cmpint(count(w, cases[i].where), ==, 1);
    }
}

/* Of what Coop saw itself, on a head that is there. */
static void
test_statuses(void)
{
    static const struct {
        const char *seen_by;
        char head;
        gint64 rows;
    } cases[] = {{"coop", 'c', 1}, {"claimed", 'c', 0}, {"coop", 'd', 0}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(FollowWorld) w = world_new();
        gint64 number = row_world_pull(w->rows, "local", "task-1");
        g_autofree char *head = g_strdup_printf(
            "UPDATE threads SET head_oid = '%s' WHERE number = %" G_GINT64_FORMAT, row_oid('c'), number);
        g_autofree char *more = g_strdup_printf(",\"check_id\":8,\"head_oid\":\"%s\",\"seen_by\":\"%s\"",
                                                row_oid(cases[i].head), cases[i].seen_by);

        row_world_sql(w->rows, head);
        append(w, "branch.created", "b", "refs/heads/task-1", NULL);
        append_part(w, "check.reported", "coop", 0, more);
        settle(w);
        g_assert_cmpint(count(w, "kind = 'status' AND key LIKE '%:8'"), ==, cases[i].rows);
    }
}

/* No account for its upstream, or none at all: nothing follows. */
static void
test_strangers(void)
{
    g_autoptr(FollowWorld) w = world_new();

    g_free(w->rows->repo->upstream);
    w->rows->repo->upstream = g_strdup("http://127.0.0.1:2/acme/widget.git");
    append(w, "commit.pushed", "b", "refs/heads/task-1", NULL);
    while (w->upstream->passed == 0)
        g_main_context_iteration(NULL, FALSE);
    g_assert_cmpint(count(w, "1 = 1"), ==, 0);
}

/* What happened while nobody followed is not lost, and is not done twice. */
static void
test_again(void)
{
    g_autoptr(FollowWorld) w = world_new();

    append(w, "commit.pushed", "b", "refs/heads/task-1", NULL);
    settle(w);
    while (w->upstream->following)
        g_main_context_iteration(NULL, TRUE);
    upstream_free(w->upstream);
    row_world_sql(w->rows, "UPDATE upstream_work SET state = 'done'");
    append(w, "commit.pushed", "b", "refs/heads/task-9", NULL);
    start(w);
    settle(w);
    g_assert_cmpint(count(w, "key LIKE '%:task-9' AND state = 'waiting'"), ==, 1);
    g_assert_cmpint(count(w, "key LIKE '%:task-1' AND state = 'done'"), ==, 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/github/follow/pushes", test_pushes);
    g_test_add_func("/github/follow/pulls", test_pulls);
    g_test_add_func("/github/follow/parts", test_parts);
    g_test_add_func("/github/follow/statuses", test_statuses);
    g_test_add_func("/github/follow/strangers", test_strangers);
    g_test_add_func("/github/follow/again", test_again);
    return g_test_run();
}
