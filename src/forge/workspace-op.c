/* SPDX-License-Identifier: Apache-2.0 */
/* What is done in a work tree from outside: another branch, a push (and a commit:
 * workspace-commit.c).  git runs in the box as its
 * user; what it may push is decided where the push arrives. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "forge/forge-private.h"
#include "forge/workspace-private.h"

void
op_free(Op *op)
{
    workspace_free(op->workspace);
    g_clear_pointer(&op->repo, repo_unref);
    box_unref(op->box);
    g_free(op->actor);
    g_free(op->box_id);
    g_free(op->branch);
    g_free(op->base);
    g_free(op->message);
    forge_unref(op->forge);
    g_free(op);
}

static void
tell_end(Op *op, Json *value, const GError *error)
{
    Json *data = error != NULL ? json_pack("{s:s, s:s, s:s}", "operation", op->name, "branch",
                                           op->workspace->branch, "error", error->message)
                               : json_deep_copy(value);
    WorkspaceEvent event = {error != NULL ? "git.failed" : "git.progressed", op->actor, data};

    workspace_tell(op->forge, op->box_id, op->workspace->repository_id, &event);
}

void
op_end(Op *op, Json *value, const GError *error)
{
    g_autoptr(GError) stopping = NULL;

    if (value == NULL && error == NULL) {
        err_set(&stopping, ERR_CANCELLED, "the server is stopping");
        error = stopping;
    }
    if (op->forge->workspaces != NULL)
        workspace_end(op->forge, op->box_id);
    if (op->forge->workspaces != NULL && !op->idle)
        tell_end(op, value, error);
    op->done(value, error, op->data);
    json_decref(value);
    op_free(op);
}

Op *
op_new(Forge *forge, Box *box, const char *name, const char *actor, ForgeJsonFunc done, void *data)
{
    Op *op = g_new0(Op, 1);
    BoxInfo info;

    box_info(box, &info);
    *op = (Op){.forge = forge_ref(forge),
               .box = box_ref(box),
               .name = name,
               .actor = g_strdup(actor),
               .box_id = g_strdup(info.id),
               .began_us = clock_mono_us(),
               .done = done,
               .data = data};
    return op;
}

bool
op_begin(Op *op, const Repo *repo)
{
    g_autoptr(GError) error = NULL;
    const Workspace *w = workspace_pick(op->forge, op->box_id, repo, &error);

    if (w != NULL && workspace_begin(op->forge, op->box_id, &error)) {
        op->workspace = workspace_dup(w);
        Repo *found = forge_find_id(op->forge, w->repository_id);

        op->repo = found != NULL ? repo_ref(found) : NULL;
        if (op->repo != NULL)
            return true;
        workspace_end(op->forge, op->box_id);
        err_set(&error, ERR_NOT_FOUND, "the repository was removed");
    }
    op->done(NULL, error, op->data);
    op_free(op);
    return false;
}

void
op_run(Op *op, const char *const *argv, const char *input, BoxCallFunc done)
{
    BoxCall call = {.argv = argv, .cwd = op->workspace->path, .input = input};

    box_call(op->box, &call, op->actor, done, op);
}

Json *
op_result(const Op *op, const char *oid)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I}", "operation", op->name, "branch", op->workspace->branch,
                     "commit", oid, "path", op->workspace->path, "duration_ms",
                     (json_int_t)((clock_mono_us() - op->began_us) / 1000));
}

/* ---- branch ---- */

static void
on_put_back(void *data, const GError *error)
{
    /* The next branch puts it right; until then nothing can be pushed that should not. */
}

static void
on_branch_checked_out(int code, const char *out, const char *err, const GError *error, void *data)
{
    Op *op = data;
    g_autoptr(GError) said = error == NULL && code != 0 ? box_call_error("change the branch", code, err)
                                                        : NULL;

    if (op->forge->workspaces == NULL || error != NULL || said != NULL) {
        if (op->forge->workspaces != NULL)
            workspace_put(op->forge, op->workspace, NULL, on_put_back, NULL);
        op_end(op, NULL, error != NULL ? error : said);
        return;
    }
    g_free(op->workspace->branch);
    op->workspace->branch = g_steal_pointer(&op->branch);
    op_end(op, op_result(op, op->oid), NULL);
}

static void
on_branch_row(void *data, const GError *error)
{
    static const char script[] =
        "git cat-file -e \"$2^{commit}\" 2>/dev/null || git fetch --quiet origin || exit\n"
        "git checkout --quiet -B \"$1\" \"$2\" || exit\n"
        "git config \"branch.$1.remote\" origin\n"
        "git config \"branch.$1.merge\" \"refs/heads/$1\"\n";
    Op *op = data;

    if (error != NULL) {
        op_end(op, NULL, error);
        return;
    }
    op_run(op, (const char *const[]){"/bin/sh", "-c", script, "sh", op->branch, op->oid, NULL}, NULL,
           on_branch_checked_out);
}

static bool
make_branch(GitRepo *git, void *data, GError **error)
{
    Op *op = data;
    g_autofree char *there = git_branch_oid(git, op->branch, NULL);
    g_autofree char *base = there != NULL                ? g_strdup(there)
                            : git_oid_is_valid(op->base) ? g_strdup(op->base)
                                                         : git_branch_oid(git, op->base, error);

    if (base == NULL)
        return false;
    g_strlcpy(op->oid, base, sizeof op->oid);
    if (there != NULL)
        return true;
    op->branch_made = git_branch_move(git, op->branch, git_oid_zero, base, "made for a sandbox", error);
    return op->branch_made;
}

static void
on_branch_made(void *data, const GError *error)
{
    Op *op = data;

    if (error != NULL || op->forge->workspaces == NULL) {
        op_end(op, NULL, error);
        return;
    }
    if (op->branch_made)
        workspace_branch_made(op->forge, op->repo, &(BranchMade){op->actor, op->box_id, op->branch, op->oid});
    g_autoptr(Workspace) w = workspace_dup(op->workspace);

    g_free(w->branch);
    w->branch = g_strdup(op->branch);
    w->may_advance = op->may_advance;
    workspace_put(op->forge, w, NULL, on_branch_row, op);
}

static void
on_branch_guarded(const BranchGiven *given, const GError *error, void *data)
{
    Op *op = data;

    if (error != NULL || op->forge->workspaces == NULL) {
        op_end(op, NULL, error);
        return;
    }
    op->branch = g_strdup(given->branch);
    op->may_advance = given->is_protected;
    forge_write(op->forge, op->repo, "branch for a sandbox", make_branch, on_branch_made, op, NULL);
}

void
workspace_branch(Forge *forge, Box *box, const CloneSpec *spec, ForgeJsonFunc done, void *data)
{
    Op *op = op_new(forge, box, "branch", spec->actor, done, data);
    g_autoptr(GError) error = NULL;

    bool named = spec->branch != NULL
                     ? git_branch_is_valid(spec->branch, &error)
                     : spec->task != NULL || err_set(&error, ERR_INVALID, "'branch' or 'task' is missing");

    if (!named) {
        done(NULL, error, data);
        op_free(op);
        return;
    }
    if (!op_begin(op, spec->repo))
        return;
    op->base = g_strdup(spec->base != NULL ? spec->base : op->workspace->branch);
    workspace_guard(forge, op->repo, &(BranchWish){spec->branch, spec->task, spec->is_admin},
                    on_branch_guarded, op);
}

/* ---- push ---- */

static void
on_pushed(int code, const char *out, const char *err, const GError *error, void *data)
{
    Op *op = data;
    g_autofree char *oid = g_strndup(out, GIT_OID_LEN);
    g_autoptr(GError) said = error == NULL && (code != 0 || !git_oid_is_valid(oid))
                                 ? box_call_error("push", code, err)
                                 : NULL;

    /* The words of git's own client, in the language that the box speaks by default. */
    if (said != NULL && (strstr(err, "non-fast-forward") != NULL || strstr(err, "fetch first") != NULL))
        said->code = ERR_CONFLICT;
    if (error != NULL || said != NULL)
        op_end(op, NULL, error != NULL ? error : said);
    else
        op_end(op, op_result(op, oid), NULL);
}

void
workspace_push(Forge *forge, Box *box, Repo *repo, const char *actor, ForgeJsonFunc done, void *data)
{
    static const char script[] = "LC_ALL=C git push --quiet origin \"HEAD:refs/heads/$1\" || exit\n"
                                 "git rev-parse HEAD\n";
    Op *op = op_new(forge, box, "push", actor, done, data);

    if (op_begin(op, repo))
        op_run(op, (const char *const[]){"/bin/sh", "-c", script, "sh", op->workspace->branch, NULL}, NULL,
               on_pushed);
}
