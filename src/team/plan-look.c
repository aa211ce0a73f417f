/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/check-look.h"
#include "forge/contents.h"
#include "forge/repo.h"
#include "report/text.h"
#include "team/plan-private.h"

enum {
    LOOK_FILES_MAX = 500,
    LOOK_BYTES_MAX = 24 * 1024,
    LOOK_PATH_MAX = 200, /* a longer one is cut */
    LOOK_CHECKS_MAX = 20,
};

typedef struct Look {
    Team *team; /* a reference */
    char *branch;
    char *material; /* NULL: nothing there */
    PlanLookFunc done;
    void *data;
} Look;

static void
look_free(gpointer data)
{
    Look *look = data;

    team_unref(look->team);
    g_free(look->branch);
    g_free(look->material);
    g_free(look);
}

static bool
put_files(GitRepo *git, const char *oid, GString *out, GError **error)
{
    bool more = false;
    g_autoptr(GPtrArray) files = contents_list(
        git, &(ContentsPage){.tree = oid, .path = "", .recursive = true, .max = LOOK_FILES_MAX}, &more,
        error);
    guint i = 0;

    if (files == NULL)
        return false;
    g_string_append(out, "## Files of the repository\n\n<<<\n");
    for (; i < files->len && out->len < LOOK_BYTES_MAX; i++) {
        const TreeEntry *entry = files->pdata[i];
        g_autofree char *path = text_dup_name(entry->path, LOOK_PATH_MAX, &(bool){false});

        g_string_append_printf(out, "%s\n", path);
    }
    g_string_append_printf(out, "%s>>>\n\n", more || i < files->len ? "… (and more)\n" : "");
    return true;
}

static bool
put_checks(GitRepo *git, const char *oid, GString *out, GError **error)
{
    CheckLook look = {.base_oid = oid, .head_oid = oid};
    bool ok = check_look(git, &look, error);

    if (ok && look.plan != NULL) {
        g_string_append_printf(out, "## Checks that Coop runs on the repository (%s)\n\n<<<\n",
                               look.plan->source);
        for (guint i = 0; i < MIN(look.plan->commands->len, (guint)LOOK_CHECKS_MAX); i++) {
            const PlanCommand *c = look.plan->commands->pdata[i];
            g_autofree char *run = text_dup_name(c->run, LOOK_PATH_MAX, &(bool){false});

            g_string_append_printf(out, "%s%s\n", c->is_setup ? "(setup) " : "", run);
        }
        g_string_append(out, ">>>\n\n");
    } else if (ok) {
        g_string_append(out, "The repository has no checks that Coop knows of: the plan's acceptance is all "
                             "there is.\n\n");
    }
    check_look_clear(&look);
    return ok;
}

static bool
look_work(GitRepo *git, void *data, GError **error)
{
    Look *look = data;
    g_autoptr(GError) none = NULL;
    g_autofree char *oid = git_branch_oid(git, look->branch, &none);
    g_autoptr(GString) out = g_string_new(NULL);

    g_clear_pointer(&look->material, g_free);
    if (oid == NULL && err_kind(none) == ERR_NOT_FOUND) {
        look->material = g_strdup("The repository is empty.\n\n");
        return true;
    }
    if (oid == NULL) {
        g_propagate_error(error, g_steal_pointer(&none));
        return false;
    }
    if (!put_files(git, oid, out, error) || !put_checks(git, oid, out, error))
        return false;
    look->material = g_string_free(g_steal_pointer(&out), FALSE);
    return true;
}

static void
on_looked(void *data, const GError *error)
{
    Look *look = data;

    look->done(error == NULL ? look->material : NULL, error, look->data);
}

void
plan_look(Team *team, const char *repository_id, const char *branch, PlanLookFunc done, void *data)
{
    Repo *repo = team->spec.forge != NULL && repository_id != NULL
                     ? forge_find_id(team->spec.forge, repository_id)
                     : NULL;
    g_autoptr(GError) error = NULL;
    Look *look;
    RepoInfo info;

    if (repo == NULL) {
        done(NULL, NULL, data);
        return;
    }
    if (!repo_require_ready(repo, &error)) {
        done(NULL, error, data);
        return;
    }
    repo_info(repo, &info);
    look = g_new(Look, 1);
    *look = (Look){.team = team_ref(team),
                   .branch = g_strdup(branch != NULL ? branch : info.default_branch),
                   .done = done,
                   .data = data};
    forge_read(team->spec.forge, repo, "look for a plan", look_work, on_looked, look, look_free);
}
