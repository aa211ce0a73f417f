/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/id.h"
#include "base/path.h"
#include "forge/forge-private.h"

/* Objects are never pruned: a box may still use them through its generation, and a fetch under way
 * may build on them. */
static const char config[] = "[core]\n"
                             "\trepositoryformatversion = 0\n"
                             "\tfilemode = true\n"
                             "\tbare = true\n"
                             "[gc]\n"
                             "\tauto = 0\n"
                             "\tpruneExpire = never\n"
                             "\treflogExpire = never\n";

/* ---- in a thread ---- */

static bool
make_folder(const char *path, GError **error)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST || err_errno(error, "make folder '%s'", path);
}

/* Doing it again changes nothing. */
bool
repo_init_folder(GitRepo *git, const char *branch, GError **error)
{
    const char *path = git_repo_path(git);
    g_autofree char *tmp = g_build_filename(path, "tmp", NULL);
    g_autofree char *file = g_build_filename(path, "config", NULL);
    g_autofree char *option = g_strconcat("--initial-branch=", branch, NULL);

    if (!make_folder(path, error) || !make_folder(tmp, error))
        return false;
    return git_run(git,
                   &(GitCall){.access = GIT_WRITE,
                              .args = GIT_ARGS("init", "--quiet", "--bare", "--template=", option)},
                   NULL, error) &&
           path_write_atomic(file, config, strlen(config), 0600, error);
}

static bool
make_first_commit(GitRepo *git, const char *branch, GError **error)
{
    g_autofree char *old = git_branch_oid(git, branch, NULL);

    if (old != NULL)
        return true; /* by a try before this one */
    g_autofree char *tree = git_text(git, GIT_WRITE, GIT_ARGS("mktree"), error);

    if (tree == NULL)
        return false;
    g_autofree char *commit = git_text(
        git, GIT_WRITE, GIT_ARGS("commit-tree", "-m", "chore: begin the repository", tree), error);

    return commit != NULL && git_branch_move(git, branch, git_oid_zero, commit, "first commit", error);
}

typedef struct Make {
    Repo *repo; /* for the loop only */
    char *branch;
    bool first_commit;
    DbDone done;
    void *data;
} Make;

static bool
make_work(GitRepo *git, void *data, GError **error)
{
    const Make *m = data;

    if (!repo_init_folder(git, m->branch, error))
        return false;
    FAILPOINT("repo-made");
    return !m->first_commit || make_first_commit(git, m->branch, error);
}

/* ---- on the loop ---- */

static void
make_free(gpointer data)
{
    Make *m = data;

    repo_unref(m->repo);
    g_free(m->branch);
    g_free(m);
}

static void
on_row_ready(void *data, const GError *error)
{
    Make *m = data;

    if (m->done != NULL)
        m->done(m->data, error);
    make_free(m);
}

static void
on_made(void *data, const GError *error)
{
    Make *m = data;
    Repo *r = m->repo;

    if (error != NULL && g_error_matches(error, ERR_DOMAIN, ERR_CANCELLED)) {
        on_row_ready(m, error); /* the next server goes on */
        return;
    }
    if (error == NULL) {
        repo_rows_arrive(r, &(RepoEvent){.kind = "repo.created", .actor = r->actor}, on_row_ready, m);
        return;
    }
    const RepoEvent failed = {
        .kind = "git.failed",
        .actor = r->actor,
        .data = json_pack("{s:s, s:s}", "operation", "create", "error", error->message)};

    repo_set_state(r, REPO_FAILED, error);
    repo_rows_update(r, &failed, on_row_ready, m);
}

void
repo_make(Repo *repo, DbDone done, void *data)
{
    Make *m = g_new0(Make, 1);

    *m = (Make){.repo = repo_ref(repo),
                .branch = g_strdup(repo->default_branch),
                .first_commit = repo->first_commit,
                .done = done,
                .data = data};
    forge_write(repo->forge, repo, "create", make_work, on_made, m, NULL);
}

/* ---- asked for ---- */

typedef struct Create {
    Repo *repo;
    char *credentials;
    char *folder, *found; /* NULL: not from one */
    RepoFunc done;
    void *data;
} Create;

static void
create_end(Create *c, const GError *error)
{
    c->done(error == NULL ? c->repo : NULL, error, c->data);
    repo_unref(c->repo);
    repo_wipe(c->credentials);
    g_free(c->folder);
    g_free(c->found);
    g_free(c);
}

/* Nobody needs one that could not be made. */
static void
on_create_made(void *data, const GError *error)
{
    Create *c = data;
    Repo *r = c->repo;
    g_autoptr(GError) failed = NULL;

    if (error == NULL && r->state == REPO_FAILED) {
        err_set(&failed, ERR_UNAVAILABLE, "%s", r->problem);
        error = failed;
        repo_remove_marked(r, r->actor, NULL, NULL);
    }
    create_end(c, error);
}

static void
on_create_row(void *data, const GError *error)
{
    Create *c = data;
    Repo *r = c->repo;

    if (error != NULL) {
        forge_drop_repo(r->forge, r);
        create_end(c, error);
        return;
    }
    FAILPOINT("repo-row-written");
    if (r->source == NULL) {
        repo_make(r, on_create_made, c);
        return;
    }
    repo_import(r, c->credentials);
    create_end(c, NULL);
}

/* In a thread: a folder may be of a file system that takes its time. */
static bool
look_work(GitRepo *git, void *data, GError **error)
{
    Create *c = data;

    c->found = repo_source_find_folder(c->folder, error);
    return c->found != NULL;
}

static void
on_looked(void *data, const GError *error)
{
    Create *c = data;
    Repo *r = c->repo;

    if (error != NULL) {
        forge_drop_repo(r->forge, r);
        create_end(c, error);
        return;
    }
    r->source = g_steal_pointer(&c->found);
    repo_rows_add(r, NULL, on_create_row, c);
}

static bool
check_spec(Forge *forge, const RepoSpec *spec, const char *owner, GError **error)
{
    if (!repo_name_is_valid(owner, error) || !repo_name_is_valid(spec->name, error))
        return false;
    if (spec->default_branch != NULL && !git_branch_is_valid(spec->default_branch, error))
        return false;
    if (spec->description != NULL && strlen(spec->description) > REPO_DESCRIPTION_MAX)
        return err_set(error, ERR_INVALID, "a description has at most %d bytes", REPO_DESCRIPTION_MAX);
    if (g_hash_table_size(forge->by_id) >= REPO_COUNT_MAX)
        return err_set(error, ERR_LIMIT, "there are %d repositories", REPO_COUNT_MAX);
    const Repo *same = forge_find(forge, owner, spec->name);

    if (same != NULL)
        return err_set(error, ERR_CONFLICT, "there is a repository '%s/%s'", same->owner, same->name);
    return true;
}

static Repo *
repo_from_spec(Forge *forge, const RepoSpec *spec, const char *owner)
{
    char id[ID_UUID_LEN + 1];
    const char *branch = spec->default_branch;

    id_new_uuid(id);
    Repo *r = repo_new(forge, id, owner, spec->name);

    if (branch == NULL)
        branch = spec->source == NULL ? repo_branch_default : "";
    r->default_branch = g_strdup(branch);
    r->description = g_strdup(spec->description != NULL ? spec->description : "");
    r->actor = g_strdup(spec->actor);
    r->first_commit = spec->first_commit;
    r->insecure = spec->insecure;
    r->state = REPO_IMPORTING;
    r->number = forge->last_number + 1;
    r->created_us = clock_wall_us();
    return r;
}

void
repo_create(Forge *forge, const RepoSpec *spec, RepoFunc done, void *data)
{
    const char *owner = spec->owner != NULL ? spec->owner : repo_owner_default;
    g_autoptr(GError) error = NULL;
    g_autofree char *source = NULL, *credentials = NULL;

    if (!check_spec(forge, spec, owner, &error) ||
        (spec->source != NULL && !repo_source_check(spec, &source, &credentials, &error))) {
        done(NULL, error, data);
        return;
    }
    Repo *r = repo_from_spec(forge, spec, owner);
    Create *c = g_new0(Create, 1);

    *c = (Create){
        .repo = repo_ref(r), .credentials = g_steal_pointer(&credentials), .done = done, .data = data};
    forge_add_repo(forge, r);
    if (source == NULL || repo_source_is_url(source)) {
        r->upstream = spec->mirror ? g_strdup(source) : NULL;
        r->source = g_steal_pointer(&source);
        repo_rows_add(r, NULL, on_create_row, c);
    } else {
        c->folder = g_steal_pointer(&source);
        forge_read(forge, r, "look at the source", look_work, on_looked, c, NULL);
    }
}
