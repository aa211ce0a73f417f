/* SPDX-License-Identifier: Apache-2.0 */
#include "support/forge-world.h"

#include <string.h>

#include "forge/pull.h"
#include "forge/push.h"
#include "forge/repo.h"
#include "forge/row.h"

static void
on_loaded(void *data, const GError *error)
{
    g_assert_no_error(error);
    *(bool *)data = true;
}

static void
on_repo(Repo *repo, const GError *error, void *data)
{
    g_assert_no_error(error);
    *(Repo **)data = repo_ref(repo);
}

void
forge_world_load(ForgeWorld *w)
{
    bool loaded = false;

    w->forge = forge_new(&(ForgeSpec){.loop = w->loop,
                                      .db = w->bench->db,
                                      .events = w->bench->log,
                                      .home = w->bench->dir,
                                      .address = "http://127.0.0.1",
                                      .git = g_getenv("COOP_GIT"),
                                      .agent_prefix = ""});
    if (w->made != NULL)
        w->made(w);
    forge_load(w->forge, on_loaded, &loaded);
    while (!loaded)
        g_main_context_iteration(NULL, TRUE);
    Repo *repo = forge_find(w->forge, repo_owner_default, "widget");

    if (repo != NULL)
        w->repo = repo_ref(repo);
}

void
forge_world_stop(ForgeWorld *w)
{
    repo_unref(w->repo);
    forge_free(w->forge);
    w->repo = NULL;
    w->forge = NULL;
}

void
forge_world_move(ForgeWorld *w, const char *branch, const char *oid)
{
    g_autofree char *ref = g_strconcat("refs/heads/", branch, NULL);
    g_autofree char *old = git_branch_oid(repo_git(w->repo), branch, NULL);
    ForgePush told = {.actor = "local", .ref = ref, .old = old != NULL ? old : git_oid_zero, .new = oid};
    g_autoptr(GError) error = NULL;

    git_branch_move(repo_git(w->repo), branch, told.old, oid, "test", &error);
    g_assert_no_error(error);
    forge_pushed(w->forge, w->repo, &told);
}

char *
forge_world_push(ForgeWorld *w, const char *branch, const char *file, const char *text, const char *parent)
{
    w->git.repo = repo_git(w->repo);
    char *oid = git_world_commit(&w->git, file, text, parent);

    forge_world_move(w, branch, oid);
    return oid;
}

char *
forge_world_commit(ForgeWorld *w, const char *file, const char *text, const char *parent)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GByteArray) tree = NULL;
    g_autoptr(GString) list = g_string_new(NULL);

    w->git.repo = repo_git(w->repo);
    g_autofree char *blob = git_world_blob(&w->git, text);
    g_autofree char *old = git_world_text(&w->git, GIT_READ, GIT_ARGS("ls-tree", parent));
    g_auto(GStrv) lines = g_strsplit(old, "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        if (g_strcmp0(strchr(lines[i], '\t') + 1, file) != 0)
            g_string_append_printf(list, "%s\n", lines[i]);
    }
    g_string_append_printf(list, "100644 blob %s\t%s\n", blob, file);
    git_run(w->git.repo,
            &(GitCall){
                .access = GIT_WRITE, .args = GIT_ARGS("mktree"), .input = list->str, .input_len = list->len},
            &tree, &error);
    g_assert_no_error(error);
    g_autofree char *oid = g_strndup((const char *)tree->data, GIT_OID_LEN);

    return git_world_text(&w->git, GIT_WRITE,
                          GIT_ARGS("commit-tree", "-p", parent, "-m", "feat: change it", oid));
}

char *
forge_world_change(ForgeWorld *w, const char *branch, const char *file, const char *text, const char *parent)
{
    char *oid = forge_world_commit(w, file, text, parent);

    forge_world_move(w, branch, oid);
    return oid;
}

ForgeWorld *
forge_world_new(void (*made)(ForgeWorld *world), void *ctx)
{
    ForgeWorld *w = g_new0(ForgeWorld, 1);

    *w = (ForgeWorld){.bench = store_bench_new_open(), .loop = loop_new(NULL), .made = made, .ctx = ctx};
    forge_world_load(w);
    repo_create(w->forge, &(RepoSpec){.name = "widget", .actor = "local"}, on_repo, &w->repo);
    while (w->repo == NULL)
        g_main_context_iteration(NULL, TRUE);
    w->git.repo = repo_git(w->repo);
    w->root = forge_world_push(w, "main", "a", "one\ntwo\nthree\nfour\nfive\n", NULL);
    return w;
}

void
forge_world_free(ForgeWorld *w)
{
    if (w->forge != NULL)
        forge_world_stop(w);
    loop_free(w->loop);
    store_bench_free(w->bench);
    g_free(w->root);
    g_free(w);
}

gint64
forge_world_pull(ForgeWorld *w, const char *head)
{
    PullSpec spec = {.actor = "local", .head = head, .base = "main", .title = "Change it"};
    g_autoptr(Json) pull = ROW_ASK(pull_open, w, &spec);

    return row_int(pull, "number");
}
