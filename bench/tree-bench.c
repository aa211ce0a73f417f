/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "forge/diff.h"
#include "forge/merge.h"

/* usage: tree-bench LAUNCHER REPOSITORY merge METHOD BASE HEAD TREE N
 *        tree-bench LAUNCHER REPOSITORY diff OLD NEW
 *
 * Merges HEAD into BASE N times, each a new commit on a new branch; TREE is the one that was checked, "" if
 * there is none.  Or reads all changes between two commits, page by page. */

static GitRepo *
open_repo(char **argv)
{
    GitHostSpec host = {.launcher = argv[1]};

    return git_repo_new(&host, "11111111-2222-4333-8444-555555555555", argv[2]);
}

static void
must(bool ok, const GError *error)
{
    if (!ok)
        g_error("%s", error->message);
}

static void
run_merges(GitRepo *repo, char **argv)
{
    int n = (int)g_ascii_strtoll(argv[8], NULL, 10);
    MergeSpec spec = {
        .base = argv[5],
        .head = argv[6],
        .tree = argv[7][0] != '\0' ? argv[7] : NULL,
        .author = {"Bench", "bench@example.com", 1, 0},
        .committer = {"Coop", "coop@example.com", 1, 0},
        .message = "feat: merge\n",
    };

    must(merge_method_parse(argv[4], &spec.method), NULL);
    printf("{\"ms\": [");
    guint children = 0;

    for (int i = 0; i < n; i++) {
        g_auto(MergeDone) done = {0};
        g_autoptr(GError) error = NULL;
        g_autofree char *branch = g_strdup_printf("bench/%s/%d", argv[4], i);

        spec.committer.time_s = clock_mono_us();
        gint64 begin_us = clock_mono_us();

        must(merge_make(repo, &spec, &done, &error) && done.conflict == NULL, error);
        must(git_branch_move(repo, branch, git_oid_zero, done.oid, "bench", &error), error);
        printf("%s%.3f", i > 0 ? ", " : "", (double)(clock_mono_us() - begin_us) / 1000);
        children = done.children + 1;
        must(git_branch_move(repo, branch, done.oid, git_oid_zero, "bench", &error), error);
    }
    printf("], \"children\": %u}\n", children);
}

static long
peak_kib(void)
{
    g_autofree char *status = NULL;

    if (!g_file_get_contents("/proc/self/status", &status, NULL, NULL))
        return 0;
    const char *line = strstr(status, "VmHWM:");

    return line != NULL ? (long)g_ascii_strtoll(line + strlen("VmHWM:"), NULL, 10) : 0;
}

static void
run_diff(GitRepo *repo, char **argv)
{
    g_autofree char *from = NULL;
    guint files = 0, pages = 0;
    long before_kib = peak_kib();

    printf("{\"ms\": [");
    do {
        g_autoptr(GError) error = NULL;
        gint64 begin_us = clock_mono_us();
        DiffSpec spec = {.old = argv[4], .new = argv[5], .from = from, .max = 100};
        g_autoptr(DiffPage) page = diff_files(repo, &spec, &error);

        must(page != NULL, error);
        printf("%s%.3f", pages++ > 0 ? ", " : "", (double)(clock_mono_us() - begin_us) / 1000);
        files += page->files->len;
        g_free(from);
        from = g_steal_pointer(&page->next);
    } while (from != NULL);
    printf("], \"files\": %u, \"grown_kib\": %ld}\n", files, peak_kib() - before_kib);
}

int
main(int argc, char **argv)
{
    if (argc < 6)
        return 2;
    g_autoptr(GitRepo) repo = open_repo(argv);

    if (strcmp(argv[3], "merge") == 0 && argc == 9)
        run_merges(repo, argv);
    else if (strcmp(argv[3], "diff") == 0)
        run_diff(repo, argv);
    else
        return 2;
    return 0;
}
