/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/failpoint.h"
#include "forge/forge-private.h"
#include "forge/workspace-clone.h"

enum { US_PER_MS = 1000 };

/* ---- the end ---- */

static Json *
result(const Clone *c)
{
    const Identity *who = c->identity_id != NULL ? identity_find(c->forge, c->identity_id) : NULL;

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?, s:s?, s:s?, s:b, s:I}", "repository_id",
                     c->repository_id, "branch", c->branch, "commit", c->oid, "path", c->path, "objects",
                     c->generation_id != NULL ? "mounted" : "fetched", "generation", c->generation_id,
                     "without", c->without, "identity", who != NULL ? who->name : NULL, "branch_created",
                     c->branch_made, "duration_ms",
                     (json_int_t)((clock_mono_us() - c->began_us) / US_PER_MS));
}

static Workspace
row_of(const Clone *c)
{
    return (Workspace){.box_id = c->box_id,
                       .repository_id = c->repository_id,
                       .generation_id = c->generation_id,
                       .identity_id = c->identity_id,
                       .branch = c->branch,
                       .path = c->path,
                       .may_force = c->may_force,
                       .may_advance = c->may_advance,
                       .cloning = true,
                       .created_us = clock_wall_us()};
}

static void
on_told(void *data, const GError *error)
{
    Clone *c = data;

    if (error != NULL)
        clone_fail(c, error);
    (void)clone_goes_on(c);
    clone_finish(c);
}

static void
on_checked_out(int code, const char *out, const char *err, const GError *error, void *data)
{
    Clone *c = data;

    if (!clone_step(c, "check the branch out", code, err, error))
        return;
    FAILPOINT("clone-checked-out");
    Workspace w = row_of(c);

    w.cloning = false;
    c->value = result(c);
    WorkspaceEvent event = {"git.cloned", c->actor, json_deep_copy(c->value)};

    workspace_put(c->forge, &w, &event, on_told, c);
}

static void
check_out(Clone *c)
{
    BoxCall call = {.argv = (const char *const[]){"git", "reset", "--quiet", "--hard", c->oid, NULL},
                    .cwd = c->path};

    box_call(c->box, &call, c->actor, on_checked_out, c);
}

static void
on_fetched(int code, const char *out, const char *err, const GError *error, void *data)
{
    Clone *c = data;

    if (clone_step(c, "fetch what is newer", code, err, error))
        check_out(c);
}

static void
fetch(Clone *c)
{
    BoxCall call = {.argv = (const char *const[]){"git", "fetch", "--quiet", "origin", NULL}, .cwd = c->path};
    WorkspaceEvent event = {
        "git.progressed", c->actor,
        json_pack("{s:s, s:s, s:s}", "operation", "clone", "phase", "fetching", "branch", c->branch)};

    workspace_tell(c->forge, c->box_id, c->repository_id, &event);
    box_call(c->box, &call, c->actor, on_fetched, c);
}

/* ---- .git and the row ---- */

static Seed
seed_of(const Clone *c)
{
    return (Seed){.owner = c->owner,
                  .name = c->name,
                  .branch = c->branch,
                  .oid = c->oid,
                  .path = c->path,
                  .generation = c->generation,
                  .identity = c->identity_id != NULL ? identity_find(c->forge, c->identity_id) : NULL,
                  .helper = workspace_helper(c->forge)};
}

static void
on_written(Clone *c)
{
    if (--c->waiting > 0)
        return;
    FAILPOINT("clone-written");
    if (!clone_goes_on(c)) {
        clone_finish(c);
        return;
    }
    Seed seed = seed_of(c);

    if (seed_has_commit(&seed))
        check_out(c);
    else
        fetch(c);
}

static void
on_row(void *data, const GError *error)
{
    Clone *c = data;

    if (error != NULL)
        clone_fail(c, error);
    on_written(c);
}

static void
on_seed_room(BoxWrite *write, void *ctx)
{
    Clone *c = ctx;
    gsize n;
    const guint8 *bytes = g_bytes_get_data(c->seed, &n);

    c->seed_at += box_write_data(write, bytes + c->seed_at, n - c->seed_at);
    if (c->seed_at == n)
        box_write_end(write);
}

static void
on_seed_end(BoxWrite *write, const GError *error, void *ctx)
{
    Clone *c = ctx;

    if (error != NULL)
        clone_fail(c, error);
    on_written(c);
}

static bool
write_seed(Clone *c, GError **error)
{
    static const BoxWriteEvents events = {on_seed_room, on_seed_end};
    BoxFileSpec place = {.box = c->box, .actor = c->actor};
    Seed seed = seed_of(c);

    c->seed = seed_make(&seed, error);
    if (c->seed == NULL)
        return false;
    c->write = box_tree_write(&place, c->path, &events, c, error);
    return c->write != NULL;
}

void
clone_write(Clone *c)
{
    g_autoptr(GError) error = NULL;
    Workspace w = row_of(c);

    if (!write_seed(c, &error)) {
        clone_fail(c, error);
        clone_finish(c);
        return;
    }
    c->waiting = 2;
    c->has_row = true;
    workspace_put(c->forge, &w, NULL, on_row, c);
    on_seed_room(c->write, c);
}
