/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "forge/merge.h"
#include "store/db.h"
#include "store/events.h"

/* usage: merge-bench COOP-GIT REPOSITORY FILE ROUNDS
 *
 * Merges refs/heads/change-0, change-1, … into main, each as the merge queue does once its checks have
 * passed: the merge, a row that says what main is about to become, the move, rows and their event.  Says
 * how many milliseconds each took and how many children of git.  FILE, the database, must not exist. */

typedef struct Run {
    GitRepo *repo;
    Db *db;
    const char *oid; /* for the row */
    bool busy;
} Run;

static bool
write_row(DbTx *tx, void *data, GError **error)
{
    const Run *run = data;
    const EventSpec event = {.kind = "commit.pushed", .actor = "local", .data = "{\"number\":1}"};

    return db_exec(tx,
                   "INSERT INTO settings (name, value) VALUES (?, ?)"
                   " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                   DB_ARGS(db_text("main"), db_text(run->oid)), error) &&
           event_append(tx, &event, NULL, error);
}

static void
on_written(void *data, const GError *error)
{
    if (error != NULL)
        g_error("write: %s", error->message);
    ((Run *)data)->busy = false;
}

static void
commit_row(Run *run, const char *oid)
{
    run->oid = oid;
    run->busy = true;
    db_write(run->db, write_row, on_written, run, NULL);
    while (run->busy)
        g_main_context_iteration(NULL, TRUE);
}

static void
merge_one(Run *run, guint n)
{
    g_autofree char *name = g_strdup_printf("change-%u", n);
    g_autofree char *head = git_branch_oid(run->repo, name, NULL);
    g_autofree char *base = git_branch_oid(run->repo, "main", NULL);
    gint64 began = clock_mono_us();
    const MergePerson person = {.name = "B", .email = "b@example.org", .time_s = 1700000000 + n};
    const MergeSpec spec = {.method = MERGE_COMMIT,
                            .base = base,
                            .head = head,
                            .author = person,
                            .committer = person,
                            .message = "feat: merge a change"};
    g_auto(MergeDone) done = {0};
    g_autoptr(GError) error = NULL;

    if (!merge_make(run->repo, &spec, &done, &error) || done.conflict != NULL)
        g_error("merge: %s", error != NULL ? error->message : "a conflict");
    commit_row(run, done.oid);
    if (!git_branch_move(run->repo, "main", base, done.oid, "merge", &error))
        g_error("move: %s", error->message);
    commit_row(run, done.oid);
    printf("%.3f %u\n", (double)(clock_mono_us() - began) / 1000, done.children + 1);
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    guint64 rounds;

    if (argc != 5 || !g_ascii_string_to_unsigned(argv[4], 10, 1, 10000, &rounds, NULL)) {
        fprintf(stderr, "usage: merge-bench COOP-GIT REPOSITORY FILE ROUNDS\n");
        return 1;
    }
    const GitHostSpec host = {.launcher = argv[1]};
    const DbSpec spec = {.path = argv[3]};
    g_autoptr(GitRepo) repo = git_repo_new(&host, "bench", argv[2]);
    g_autoptr(Db) db = db_open(&spec, &error);
    g_autoptr(EventLog) log = db != NULL ? event_log_new(db, &error) : NULL;

    if (log == NULL)
        g_error("%s", error->message);
    Run run = {.repo = repo, .db = db};

    for (guint n = 0; n < rounds; n++)
        merge_one(&run, n);
    return 0;
}
