/* SPDX-License-Identifier: Apache-2.0 */
/* A work tree in a box.
 *
 * Once the branch may be the box's, three things go on side by side: the generation is mounted, the
 * branch is made in the repository, and the box says where the tree will be.  Then .git is written in
 * one piece and the row with it, and git checks the branch out.  What the generation lacks is fetched
 * through the door, which wants the row.
 *
 * Nothing of it depends on how long the history is.  Where nothing can be mounted all is fetched, and
 * the answer says why. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/workspace-clone.h"

enum {
    EXIT_NO_FOLDER = 40,
    EXIT_NOT_EMPTY,
    EXIT_NO_GIT,
    EXISTED = '=', /* before the path of a folder that was there */
};

static void
clone_free(Clone *c)
{
    box_unref(c->box);
    repo_unref(c->repo);
    g_free(c->actor);
    g_free(c->box_id);
    g_free(c->repository_id);
    g_free(c->owner);
    g_free(c->name);
    g_free(c->branch);
    g_free(c->base);
    g_free(c->path);
    g_free(c->identity_id);
    g_free(c->generation_id);
    g_free(c->without);
    g_clear_pointer(&c->seed, g_bytes_unref);
    workspace_free(c->left);
    json_decref(c->value);
    g_clear_error(&c->error);
    forge_unref(c->forge);
    g_free(c);
}

void
clone_fail(Clone *c, const GError *error)
{
    if (c->error == NULL)
        c->error = g_error_copy(error);
}

bool
clone_goes_on(Clone *c)
{
    if (c->error == NULL && c->forge->workspaces == NULL)
        err_set(&c->error, ERR_CANCELLED, "the server is stopping");
    return c->error == NULL;
}

static void
on_unmounted(Box *box, const GError *error, void *data)
{
    /* It ends with the box at the latest. */
}

static void
take_back(Clone *c)
{
    if (c->forge->workspaces == NULL)
        return;
    if (c->has_row)
        workspace_drop(c->forge, c->box_id, c->repository_id);
    else if (c->generation_id != NULL)
        generation_release(c->forge, c->generation_id);
    if (c->generation_id != NULL)
        box_unmount(c->box, c->generation_id, on_unmounted, NULL);
    WorkspaceEvent event = {
        "git.failed", c->actor,
        json_pack("{s:s, s:s?, s:s}", "operation", "clone", "branch", c->branch, "error", c->error->message)};

    workspace_tell(c->forge, c->box_id, c->repository_id, &event);
}

/* A folder that was empty when a clone began is so again; one that was not there goes ("made"). */
static const char clear_script[] = "cd -- \"$1\" 2>/dev/null || exit 0\n"
                                   "rm -rf -- ./* ./.[!.]* ./..?*\n"
                                   "[ -z \"$2\" ] || { cd / && rm -rf -- \"$1\"; }\n";

static void
clear_folder(Clone *c, const char *path, const char *made, BoxCallFunc done)
{
    BoxCall call = {.argv = (const char *const[]){"/bin/sh", "-c", clear_script, "sh", path, made, NULL}};

    box_call(c->box, &call, c->actor, done, c);
}

static void
finish(Clone *c)
{
    workspace_end(c->forge, c->box_id);
    if (c->error != NULL)
        take_back(c);
    c->done(c->error == NULL ? c->value : NULL, c->error, c->data);
    clone_free(c);
}

bool
clone_step(Clone *c, const char *what, int code, const char *err, const GError *error)
{
    g_autoptr(GError) said = error == NULL && code != 0 ? box_call_error(what, code, err) : NULL;

    if (error != NULL || said != NULL)
        clone_fail(c, error != NULL ? error : said);
    if (clone_goes_on(c))
        return true;
    clone_finish(c);
    return false;
}

/* The box may be gone, and the folder with it. */
static void
on_place_cleared(int code, const char *out, const char *err, const GError *error, void *data)
{
    finish(data);
}

void
clone_finish(Clone *c)
{
    if (c->error != NULL && c->has_place && c->forge->workspaces != NULL)
        clear_folder(c, c->path, c->made_place ? "made" : "", on_place_cleared);
    else
        finish(c);
}

/* ---- what goes on side by side ---- */

static void
step_done(Clone *c)
{
    if (--c->waiting > 0)
        return;
    FAILPOINT("clone-prepared");
    if (clone_goes_on(c))
        clone_write(c);
    else
        clone_finish(c);
}

static void
on_mounted(Box *box, const GError *error, void *data)
{
    Clone *c = data;

    if (error != NULL) {
        log_warn("forge", "objects are fetched, not mounted", log_str("box", c->box_id), log_gerror(error));
        c->without = g_strdup(error->message);
        generation_release(c->forge, c->generation_id);
        g_clear_pointer(&c->generation_id, g_free);
        c->generation = NULL;
    }
    step_done(c);
}

static void
on_generation(const Generation *generation, const GError *error, void *data)
{
    Clone *c = data;

    c->generation = generation;
    if (generation == NULL) {
        c->without = g_strdup(error->message);
        step_done(c);
        return;
    }
    c->generation_id = g_strdup(generation->id);
    box_mount(c->box, c->generation_id, on_mounted, c);
}

/* In a thread. */
static bool
make_branch(GitRepo *git, void *data, GError **error)
{
    Clone *c = data;
    g_autofree char *there = git_branch_oid(git, c->branch, NULL);

    if (there != NULL) {
        g_strlcpy(c->oid, there, sizeof c->oid);
        return true;
    }
    g_autofree char *base = git_oid_is_valid(c->base) ? g_strdup(c->base)
                                                      : git_branch_oid(git, c->base, error);

    if (base == NULL)
        return false;
    if (!git_branch_move(git, c->branch, git_oid_zero, base, "made for a sandbox", error))
        return false;
    g_strlcpy(c->oid, base, sizeof c->oid);
    c->branch_made = true;
    return true;
}

static void
on_branch(void *data, const GError *error)
{
    Clone *c = data;

    if (error != NULL)
        clone_fail(c, error);
    if (c->branch_made)
        workspace_branch_made(c->forge, c->repo, &(BranchMade){c->actor, c->box_id, c->branch, c->oid});
    step_done(c);
}

static GError *
place_error(const Clone *c, int code, const char *err)
{
    const char *path = c->path != NULL ? c->path : c->name;

    switch (code) {
    case EXIT_NOT_EMPTY:
        return g_error_new(ERR_DOMAIN, ERR_CONFLICT, "the folder '%s' is not empty", path);
    case EXIT_NO_GIT:
        return g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, "the sandbox's template has no git");
    default:
        return box_call_error("make the folder", code, err);
    }
}

static bool
is_plain_path(const char *path)
{
    if (path[0] != '/' || strlen(path) > WORKSPACE_PATH_MAX)
        return false;
    for (; *path != '\0'; path++) {
        if (g_ascii_iscntrl(*path))
            return false;
    }
    return true;
}

static void
on_place(int code, const char *out, const char *err, const GError *error, void *data)
{
    Clone *c = data;
    g_autofree char *path = g_strdup(out);
    g_autoptr(GError) said = error == NULL && code != 0 ? place_error(c, code, err) : NULL;

    if (g_str_has_suffix(path, "\n"))
        path[strlen(path) - 1] = '\0';
    c->made_place = path[0] != EXISTED;
    if (!c->made_place)
        memmove(path, path + 1, strlen(path));
    if (error == NULL && said == NULL && !is_plain_path(path))
        err_set(&said, ERR_INVALID, "the folder's path is too long, or no text");
    if (error != NULL || said != NULL) {
        clone_fail(c, error != NULL ? error : said);
    } else {
        g_free(c->path);
        c->path = g_steal_pointer(&path);
        c->has_place = true;
    }
    step_done(c);
}

static void
find_place(Clone *c)
{
    static const char script[] = "command -v git >/dev/null || exit 42\n"
                                 "[ ! -d \"$1\" ] || existed==\n"
                                 "mkdir -p -- \"$1\" && cd -- \"$1\" || exit 40\n"
                                 "[ -z \"$(ls -A)\" ] || exit 41\n"
                                 "printf '%s' $existed\n"
                                 "pwd -P\n";
    const char *path = c->path != NULL ? c->path : c->name;
    BoxCall call = {.argv = (const char *const[]){"/bin/sh", "-c", script, "sh", path, NULL}};

    box_call(c->box, &call, c->actor, on_place, c);
}

/* ---- the beginning ---- */

static bool
find_identity(Clone *c, const CloneSpec *spec, GError **error)
{
    BoxInfo box;
    const Identity *who = NULL;

    box_info(c->box, &box);
    if (spec->identity != NULL)
        who = identity_find(c->forge, spec->identity);
    else if (box.agent_id != NULL)
        who = identity_of_agent(c->forge, box.agent_id);
    if (who == NULL)
        return spec->identity == NULL ||
               err_set(error, ERR_NOT_FOUND, "there is no identity '%s'", spec->identity);
    if (who->revoked_us != 0)
        return err_set(error, ERR_DENIED, "the identity %s was revoked", who->name);
    if (identity_access(c->forge, who, c->repo) != IDENTITY_WRITE)
        return err_set(error, ERR_DENIED, "the identity %s may not write to %s/%s", who->name, c->owner,
                       c->name);
    c->identity_id = g_strdup(who->id);
    return true;
}

static void
count_one(const Workspace *w, void *data)
{
    ++*(guint *)data;
}

static bool
check(Clone *c, const CloneSpec *spec, GError **error)
{
    const Workspace *there = workspace_find(c->forge, c->box_id, c->repo);
    guint n = 0;

    if (!repo_require_ready(c->repo, error) || (c->branch != NULL && !git_branch_is_valid(c->branch, error)))
        return false;
    if (spec->path != NULL && (strlen(spec->path) == 0 || strlen(spec->path) > WORKSPACE_PATH_MAX))
        return err_set(error, ERR_INVALID, "a path has 1 to %d bytes", WORKSPACE_PATH_MAX);
    if (there != NULL && !there->cloning)
        return err_set(error, ERR_CONFLICT, "the sandbox has a work tree of %s/%s", c->owner, c->name);
    workspace_each(c->forge, c->box_id, count_one, &n);
    if (n >= WORKSPACES_PER_BOX && there == NULL)
        return err_set(error, ERR_LIMIT, "a sandbox has at most %d work trees", WORKSPACES_PER_BOX);
    if (!find_identity(c, spec, error) || !workspace_begin(c->forge, c->box_id, error))
        return false;
    c->left = there != NULL ? workspace_dup(there) : NULL;
    return true;
}

static Clone *
clone_new(Forge *forge, Box *box, const CloneSpec *spec)
{
    Clone *c = g_new0(Clone, 1);
    RepoInfo repo;
    BoxInfo info;

    repo_info(spec->repo, &repo);
    box_info(box, &info);
    *c = (Clone){.forge = forge_ref(forge),
                 .box = box_ref(box),
                 .repo = repo_ref(spec->repo),
                 .actor = g_strdup(spec->actor),
                 .box_id = g_strdup(info.id),
                 .repository_id = g_strdup(repo.id),
                 .owner = g_strdup(repo.owner),
                 .name = g_strdup(repo.name),
                 .branch = g_strdup(spec->branch),
                 .base = g_strdup(spec->base != NULL ? spec->base : repo.default_branch),
                 .path = g_strdup(spec->path),
                 .may_force = spec->may_force,
                 .began_us = clock_mono_us()};
    if (spec->branch == NULL && spec->task == NULL)
        c->branch = g_strdup_printf("box-%s", info.id);
    return c;
}

static void
prepare(Clone *c)
{
    c->waiting = 3;
    find_place(c);
    forge_write(c->forge, c->repo, "branch for a sandbox", make_branch, on_branch, c, NULL);
    generation_take(c->forge, c->repo, on_generation, c);
}

/* ---- what a clone left that was cut short ---- */

static void
on_left_removed(int code, const char *out, const char *err, const GError *error, void *data)
{
    Clone *c = data;

    if (!clone_step(c, "remove what was left", code, err, error))
        return;
    workspace_drop(c->forge, c->box_id, c->repository_id);
    prepare(c);
}

/* The folder was empty when that clone began, and nobody was told that it ended: git.cloned is written
 * with the row that says so. */
static void
remove_left(Clone *c)
{
    clear_folder(c, c->left->path, "", on_left_removed);
}

static void
on_left_unmounted(Box *box, const GError *error, void *data)
{
    remove_left(data);
}

static void
clear_left(Clone *c)
{
    if (c->left->generation_id != NULL)
        box_unmount(c->box, c->left->generation_id, on_left_unmounted, c);
    else
        remove_left(c);
}

static void
on_guarded(const BranchGiven *given, const GError *error, void *data)
{
    Clone *c = data;

    if (error != NULL) {
        clone_fail(c, error);
    } else {
        g_free(c->branch);
        c->branch = g_strdup(given->branch);
        c->may_advance = given->is_protected;
    }
    if (!clone_goes_on(c)) {
        clone_finish(c);
        return;
    }
    if (c->left != NULL)
        clear_left(c);
    else
        prepare(c);
}

void
workspace_clone(Forge *forge, Box *box, const CloneSpec *spec, ForgeJsonFunc done, void *data)
{
    Clone *c = clone_new(forge, box, spec);
    g_autoptr(GError) error = NULL;

    c->done = done;
    c->data = data;
    if (!check(c, spec, &error)) {
        done(NULL, error, data);
        clone_free(c);
        return;
    }
    workspace_guard(forge, c->repo, &(BranchWish){c->branch, spec->task, spec->is_admin}, on_guarded, c);
}
