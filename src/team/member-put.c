/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "team/member-private.h"

static const RowMember put_members[] = {
    ROW_AT_TEXT(MemberSpec, actor),     ROW_AT_TEXT(MemberSpec, owner),  ROW_AT_TEXT(MemberSpec, squad_id),
    ROW_AT_TEXT(MemberSpec, member_id), ROW_AT_JSON(MemberSpec, fields), ROW_AT_END,
};

/* By id, or by its name in the squad. */
static Json *
find(RowJob *job, const char *squad_id, const char *id_or_name, GError **error)
{
    return row_get(job, &member_table, "m.squad_id = ? AND (m.id = ? OR m.name = ?)",
                   DB_ARGS(db_text(squad_id), db_text(id_or_name), db_text(id_or_name)), error);
}

static bool
check_idle(RowJob *job, const Json *member, GError **error)
{
    gint64 working = 0;

    if (!row_ask_int(job,
                     "SELECT COUNT(*) FROM task_executions WHERE member_id = ? AND state NOT IN ('done', "
                     "'failed', 'lost', 'stopped')",
                     DB_ARGS(db_text(row_text(member, "id"))), &working, error))
        return false;
    return working == 0 || err_set(error, ERR_CONFLICT, "%s is working on a task", row_text(member, "name"));
}

static bool
remove_one(RowJob *job, const Json *member, GError **error)
{
    return check_idle(job, member, error) && db_exec(job->tx, "DELETE FROM squad_members WHERE id = ?",
                                                     DB_ARGS(db_text(row_text(member, "id"))), error);
}

static bool
put_row(RowJob *job, const MemberSpec *s, const Json *squad, char id[ID_UUID_LEN + 1], GError **error)
{
    const char *squad_id = row_text(squad, "id");
    g_autoptr(Json) member = s->member_id != NULL ? find(job, squad_id, s->member_id, error) : NULL;

    if (s->member_id == NULL)
        return member_insert(job, squad_id, s->fields, id, error);
    if (member == NULL)
        return false;
    g_strlcpy(id, row_text(member, "id"), ID_UUID_LEN + 1);
    return s->fields != NULL ? member_update(job, squad_id, id, s->fields, error)
                             : remove_one(job, member, error);
}

static bool
run_put(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const MemberSpec *s = data;
    g_autoptr(Json) squad = squad_row_to_change(job, s->squad_id, s->owner, error);
    char id[ID_UUID_LEN + 1];
    const char *what = s->fields == NULL      ? "member removed"
                       : s->member_id == NULL ? "member added"
                                              : "member changed";

    if (squad == NULL || !put_row(job, s, squad, id, error))
        return false;
    *ret_value = json_pack("{s:O, s:s}", "squad_id", json_object_get(squad, "id"), "id", id);
    return team_event(job->tx,
                      &(TeamEvent){.kind = "squad.changed",
                                   .actor = s->actor,
                                   .squad_id = row_text(squad, "id"),
                                   .data = json_pack("{s:s, s:s, s:s}", "name", row_text(squad, "name"),
                                                     "change", what, "member_id", id)},
                      error);
}

static const RowOp put_op = {ROW_WRITES, sizeof(MemberSpec), put_members, run_put};

/* ---- the answer ---- */

typedef struct MemberRef {
    const char *squad_id, *id;
} MemberRef;

static const RowMember ref_members[] = {
    ROW_AT_TEXT(MemberRef, squad_id),
    ROW_AT_TEXT(MemberRef, id),
    ROW_AT_END,
};

static bool
run_get(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const MemberRef *ref = data;

    *ret_value = find(job, ref->squad_id, ref->id, error);
    return *ret_value != NULL;
}

static const RowOp get_op = {ROW_READS, sizeof(MemberRef), ref_members, run_get};

typedef struct Put {
    Team *team;
    Json *place; /* {squad_id, id} */
    bool is_removal;
    TeamJsonFunc done;
    void *data;
} Put;

static void
put_end(Json *value, const GError *error, void *data)
{
    Put *p = data;

    p->done(value, error, p->data);
    team_unref(p->team);
    json_decref(p->place);
    g_free(p);
}

static void
on_identities(void *data, const GError *error)
{
    Put *p = data;
    const MemberRef ref = {row_text(p->place, "squad_id"), row_text(p->place, "id")};
    g_autoptr(Json) nothing = json_object();

    if (error != NULL || p->is_removal)
        put_end(error == NULL ? nothing : NULL, error, p);
    else
        team_run(p->team, &get_op, &ref, put_end, p);
}

static void
on_written(Json *value, const GError *error, void *data)
{
    Put *p = data;

    if (error != NULL) {
        put_end(NULL, error, p);
        return;
    }
    p->place = json_incref(value);
    member_identities(p->team, row_text(value, "squad_id"), on_identities, p);
}

void
member_put(Team *team, const MemberSpec *spec, TeamJsonFunc done, void *data)
{
    MemberUse use = spec->member_id == NULL ? MEMBER_NEW : MEMBER_CHANGED;
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) fields = spec->fields != NULL ? member_prepare(team, spec->fields, use, &error) : NULL;
    MemberSpec prepared = *spec;

    if (error != NULL) {
        done(NULL, error, data);
        return;
    }
    prepared.fields = fields;
    Put *p = g_new0(Put, 1);

    *p = (Put){.team = team_ref(team), .is_removal = spec->fields == NULL, .done = done, .data = data};
    team_run(team, &put_op, &prepared, on_written, p);
}
