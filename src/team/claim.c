/* SPDX-License-Identifier: Apache-2.0 */
#include "team/claim.h"

#include "base/err.h"
#include "team/team-private.h"

typedef struct Kind {
    size_t member; /* of Claim */
    const char *noun;
    const char *sql; /* how many of that name are not the owner's */
} Kind;

static const Kind kinds[] = {
    {offsetof(Claim, task_id), "task", "SELECT COUNT(*) FROM tasks WHERE id = ? AND owner <> ?"},
    {offsetof(Claim, agent_id), "agent",
     "SELECT COUNT(*) FROM task_executions WHERE agent = ? AND owner <> ?"},
    {offsetof(Claim, agent_id), "agent", "SELECT COUNT(*) FROM task_executions WHERE id = ? AND owner <> ?"},
    /* A squad of nobody's is for all. */
    {offsetof(Claim, agent_id), "agent",
     "SELECT COUNT(*) FROM squad_members m JOIN squads s ON s.id = m.squad_id "
     "WHERE m.id = ? AND s.user_id <> ? AND s.user_id <> ''"},
};

static bool
run_check(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Claim *claim = data;

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const char *name = *(const char *const *)(const void *)((const char *)data + kinds[i].member);
        gint64 n = 0;

        if (name == NULL)
            continue;
        if (!row_ask_int(job, kinds[i].sql, DB_ARGS(db_text(name), db_text(claim->owner)), &n, error))
            return false;
        if (n > 0)
            return err_set(error, ERR_NOT_FOUND, "there is no such %s", kinds[i].noun);
    }
    return true;
}

static const RowMember claim_members[] = {ROW_AT_TEXT(Claim, owner), ROW_AT_TEXT(Claim, task_id),
                                          ROW_AT_TEXT(Claim, agent_id), ROW_AT_END};
static const RowOp claim_op = {ROW_READS, sizeof(Claim), claim_members, run_check};

void
claim_check(Team *team, const Claim *claim, TeamJsonFunc done, void *data)
{
    team_run(team, &claim_op, claim, done, data);
}
