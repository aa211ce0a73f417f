/* SPDX-License-Identifier: Apache-2.0 */
/* What the repository asks of the team is read once, from the branch that the task starts from, before
 * anything else happens: what an agent writes into such a file counts for the tasks after the merge. */
#include <string.h>

#include "base/err.h"
#include "team/flow-private.h"
#include "team/repo-file.h"
#include "team/role-private.h"

/* ---- reading ---- */

typedef struct Took {
    const char *task_id;
    Json *file;
} Took;

static bool
run_took(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Took *took = data;
    g_autoptr(Json) rows = flow_rows_get(job, took->task_id, error);
    g_autoptr(Json) file = json_deep_copy(took->file);
    const Json *squad = json_object_get(rows, "members"), *role;
    size_t i;

    if (rows == NULL)
        return false;
    json_array_foreach(json_object_get(file, "roles"), i, role)
    {
        if (!repo_has_brain(squad, role))
            return err_set(
                error, ERR_INVALID,
                "coop.yaml: the role '%s' asks for the brain '%s/%s', which nobody in the squad has",
                row_text(role, "name"), row_text(role, "llm_provider"), row_text(role, "llm_model"));
    }
    if (!repo_members_seat(file, squad, error))
        return false;
    g_autofree char *text = json_encode(file);

    return db_exec(job->tx, "UPDATE tasks SET file = ? WHERE id = ?",
                   DB_ARGS(db_text(text), db_text(took->task_id)), error);
}

static const RowMember took_members[] = {ROW_AT_TEXT(Took, task_id), ROW_AT_JSON(Took, file), ROW_AT_END};
static const RowOp took_op = {ROW_WRITES, sizeof(Took), took_members, run_took};

static bool
check_templates(const TeamSpec *spec, const Json *file, GError **error)
{
    size_t i;
    const Json *role;

    json_array_foreach(json_object_get(file, "roles"), i, role)
    {
        g_autofree char *who = g_strdup_printf("the role '%s'", row_text(role, "name"));

        if (!repo_may_use(spec, who, row_text(role, "template"), error)) {
            g_prefix_error(error, "coop.yaml: ");
            return false;
        }
    }
    return true;
}

static void
on_file(Json *file, const GError *error, void *data)
{
    FlowTask *t = data;
    g_autoptr(GError) wrong = NULL;

    if (!flow_goes_on(t, error))
        return;
    if (check_templates(&t->flow->team->spec, file, &wrong) &&
        repo_members_check(t->flow->team, file, &wrong))
        flow_write(t, &took_op, &(Took){t->id, file});
    else
        flow_problem(t, wrong);
}

void
flow_do_read(FlowTask *t, const FlowChoice *choice)
{
    const Json *task = flow_row(t);

    repo_file_read(t->flow->team, row_text(task, "repository_id"), row_text(task, "base_branch"), on_file, t);
}

/* ---- what it says ---- */

static const Json *
roles_of(const Json *task)
{
    return json_object_get(json_object_get(task, "file"), "roles");
}

/* 0: it is not meant.  A role of ours with a specialisation is meant for that one alone. */
static guint
fit(const Json *role, const Json *step, const Json *member)
{
    const char *name = row_text(role, "name"), *matter = row_text(step, "specialization");
    const char *wanted = row_text(role, "specialization");
    g_autofree char *of_step = step != NULL ? role_fold(row_text(step, "role")) : NULL;
    g_autofree char *of_member = role_fold(row_text(member, "role"));
    bool ours = flow_is(role, "archetype", name);

    if (!flow_is(role, "archetype", row_text(member, "archetype")))
        return 0;
    if (matter == NULL)
        matter = row_text(member, "specialization");
    if (ours && wanted != NULL && g_strcmp0(wanted, matter) != 0)
        return 0;
    guint by_name = g_strcmp0(name, of_step) == 0 ? 3 : strcmp(name, of_member) == 0 ? 2 : ours ? 1 : 0;

    return by_name > 0 ? 2 * by_name + (wanted != NULL) : 0;
}

const Json *
flow_file_role(const Json *task, const Json *step, const Json *member)
{
    const Json *best = NULL, *role;
    guint best_fit = 0;
    size_t i;

    json_array_foreach(roles_of(task), i, role)
    {
        guint fits = fit(role, step, member);

        if (fits > best_fit) {
            best_fit = fits;
            best = role;
        }
    }
    return best;
}

const char *
flow_file_archetype(const Json *task, const char *role)
{
    return repo_role_archetype(json_object_get(task, "file"), role);
}
