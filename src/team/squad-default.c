/* SPDX-License-Identifier: Apache-2.0 */
/* The squad that works without being configured. */
#include "base/err.h"
#include "base/id.h"
#include "team/squad-private.h"

static const struct {
    const char *name, *role, *specialization;
} usual_members[] = {
    {"planner", "planner", NULL},   {"coder-1", "coder", "frontend"}, {"coder-2", "coder", "backend"},
    {"reviewer", "reviewer", NULL}, {"tester", "tester", NULL},
};

static bool
add_member(RowJob *job, const char *squad_id, const SquadDefault *spec, size_t i, GError **error)
{
    char id[ID_UUID_LEN + 1];

    id_new_uuid(id);
    return db_exec(
        job->tx,
        "INSERT INTO squad_members (id, squad_id, position, name, role, archetype, specialization, "
        "llm_provider, llm_model, created_us, updated_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        DB_ARGS(db_text(id), db_text(squad_id), db_int((gint64)i), db_text(usual_members[i].name),
                db_text(usual_members[i].role), db_text(usual_members[i].role),
                db_text(usual_members[i].specialization),
                db_text(spec->provider != NULL ? spec->provider : "openai"),
                db_text(spec->model != NULL ? spec->model : "gpt-4"), db_int(job->now_us),
                db_int(job->now_us)),
        error);
}

bool
squad_add_usual_members(RowJob *job, const char *squad_id, const SquadDefault *spec, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(usual_members); i++) {
        if (!add_member(job, squad_id, spec, i, error))
            return false;
    }
    return true;
}

bool
squad_make_default(RowJob *job, const SquadDefault *spec, GError **error)
{
    char id[ID_UUID_LEN + 1];
    gint64 there = 0;

    if (!row_ask_int(job, "SELECT COUNT(*) FROM squads WHERE user_id = '' AND name = ?",
                     DB_ARGS(db_text(SQUAD_DEFAULT)), &there, error))
        return false;
    if (there > 0)
        return true;
    id_new_uuid(id);
    return db_exec(job->tx,
                   "INSERT INTO squads (id, user_id, name, description, created_us, updated_us) "
                   "VALUES (?, '', ?, 'The squad of tasks that name none', ?, ?)",
                   DB_ARGS(db_text(id), db_text(SQUAD_DEFAULT), db_int(job->now_us), db_int(job->now_us)),
                   error) &&
           squad_add_usual_members(job, id, spec, error);
}
