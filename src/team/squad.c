/* SPDX-License-Identifier: Apache-2.0 */
#include "team/squad.h"

#include <string.h>

#include "base/err.h"
#include "forge/repo.h"
#include "team/member-private.h"

/* The spec, with what only the loop can find out. */
typedef struct SquadMake {
    SquadSpec spec; /* members: prepared */
    const char *repository_id;
    SquadDefault usual;
} SquadMake;

static const RowMember make_members[] = {
    ROW_AT_TEXT(SquadMake, spec.actor),       ROW_AT_TEXT(SquadMake, spec.owner),
    ROW_AT_TEXT(SquadMake, spec.id),          ROW_AT_TEXT(SquadMake, spec.name),
    ROW_AT_TEXT(SquadMake, spec.description), ROW_AT_TEXT(SquadMake, spec.status),
    ROW_AT_TEXT(SquadMake, spec.org_id),      ROW_AT_TEXT(SquadMake, spec.repository),
    ROW_AT_JSON(SquadMake, spec.config),      ROW_AT_JSON(SquadMake, spec.members),
    ROW_AT_TEXT(SquadMake, repository_id),    ROW_AT_TEXT(SquadMake, usual.provider),
    ROW_AT_TEXT(SquadMake, usual.model),      ROW_AT_END,
};

/* ---- reading ---- */

static Json *
whole(RowJob *job, Json *squad, GError **error)
{
    g_autoptr(Json) row = squad;
    Json *members = row != NULL ? squad_members(job, row_text(row, "id"), error) : NULL;

    if (members == NULL)
        return NULL;
    json_object_set_new(row, "members", members);
    return g_steal_pointer(&row);
}

typedef struct SquadRef {
    const char *id, *owner;
} SquadRef;

static const RowMember ref_members[] = {
    ROW_AT_TEXT(SquadRef, id),
    ROW_AT_TEXT(SquadRef, owner),
    ROW_AT_END,
};

static bool
run_get(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const SquadRef *ref = data;

    *ret_value = whole(job, squad_row(job, ref->id, ref->owner, error), error);
    return *ret_value != NULL;
}

static const RowOp get_op = {ROW_READS, sizeof(SquadRef), ref_members, run_get};

void
squad_get(Team *team, const char *id_or_name, const char *owner, TeamJsonFunc done, void *data)
{
    team_run(team, &get_op, &(SquadRef){.id = id_or_name, .owner = owner}, done, data);
}

static bool
run_find_to_change(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const SquadRef *ref = data;

    *ret_value = squad_row_to_change(job, ref->id, ref->owner, error);
    return *ret_value != NULL;
}

void
squad_get_to_change(Team *team, const char *id_or_name, const char *owner, TeamJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(SquadRef), ref_members, run_find_to_change};

    team_run(team, &op, &(SquadRef){.id = id_or_name, .owner = owner}, done, data);
}

typedef struct SquadPage {
    const char *owner;
    ForgePage page;
} SquadPage;

static const RowMember page_members[] = {ROW_AT_TEXT(SquadPage, owner), ROW_AT_END};

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const SquadPage *p = data;
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    size_t i;
    Json *row;

    row_where_add(&where, "s.status <> 'removed' AND (? IS NULL OR s.user_id = ? OR s.user_id = '')",
                  DB_ARGS(db_text(p->owner), db_text(p->owner)));
    g_autoptr(Json) list = row_list(job, &squad_table, &where, "s.created_us, s.id", p->page, error);

    json_array_foreach(json_object_get(list, "items"), i, row)
    {
        Json *members = squad_members(job, row_text(row, "id"), error);

        if (members == NULL)
            return false;
        json_object_set_new(row, "members", members);
    }
    *ret_value = g_steal_pointer(&list);
    return *ret_value != NULL;
}

static const RowOp list_op = {ROW_READS, sizeof(SquadPage), page_members, run_list};

void
squad_list(Team *team, const char *owner, ForgePage page, TeamJsonFunc done, void *data)
{
    team_run(team, &list_op, &(SquadPage){.owner = owner, .page = page}, done, data);
}

/* ---- what is said of one ---- */

static bool
check_name(RowJob *job, const SquadSpec *s, const char *id, char **ret_name, GError **error)
{
    gint64 taken = 0;
    g_autofree char *name = row_dup_line("the name", s->name, SQUAD_NAME_MAX, ROW_TEXT_NEEDED, error);

    if (name == NULL)
        return false;
    if (strchr(name, '/') != NULL || id_is_uuid(name))
        return err_set(error, ERR_INVALID, "the name of a squad has no '/' and is no UUID");
    if (!row_ask_int(job, "SELECT COUNT(*) FROM squads WHERE user_id = ? AND name = ? AND id <> ?",
                     DB_ARGS(db_text(s->owner), db_text(name), db_text(id)), &taken, error))
        return false;
    *ret_name = g_steal_pointer(&name);
    return taken == 0 || err_set(error, ERR_CONFLICT, "there is a squad '%s' already", *ret_name);
}

static bool
check_texts(const SquadSpec *s, GError **error)
{
    static const char *const states[] = {"active", "inactive", NULL};

    return row_check_text("'description'", s->description, SQUAD_TEXT_MAX, ROW_TEXT_MAY_BE_EMPTY, error) &&
           row_check_text("'org_id'", s->org_id, SQUAD_NAME_MAX, ROW_TEXT_MAY_BE_EMPTY, error) &&
           (s->status == NULL || row_check_word("'status'", s->status, states, error));
}

static bool
tell(RowJob *job, const char *actor, const char *squad_id, const char *name, const char *what, GError **error)
{
    return team_event(job->tx,
                      &(TeamEvent){.kind = "squad.changed",
                                   .actor = actor,
                                   .squad_id = squad_id,
                                   .data = json_pack("{s:s, s:s}", "name", name, "change", what)},
                      error);
}

/* ---- making ---- */

static bool
add_members(RowJob *job, const char *squad_id, const SquadMake *m, GError **error)
{
    char id[ID_UUID_LEN + 1];
    size_t i;
    Json *fields;

    if (m->spec.members == NULL)
        return squad_add_usual_members(job, squad_id, &m->usual, error);
    json_array_foreach(m->spec.members, i, fields)
    {
        if (!member_insert(job, squad_id, fields, id, error))
            return false;
    }
    return true;
}

static bool
run_create(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const SquadMake *m = data;
    const SquadSpec *s = &m->spec;
    char id[ID_UUID_LEN + 1];
    gint64 count = 0;
    g_autofree char *name = NULL;

    id_new_uuid(id);
    if (!check_texts(s, error) || !check_name(job, s, id, &name, error) ||
        !row_ask_int(job, "SELECT COUNT(*) FROM squads WHERE status <> 'removed'", DB_NO_ARGS, &count, error))
        return false;
    if (count >= SQUADS_MAX)
        return err_set(error, ERR_LIMIT, "there are at most %d squads", SQUADS_MAX);
    g_autoptr(Json) config = squad_config_over(NULL, s->config, error);
    g_autofree char *text = config != NULL ? json_encode(config) : NULL;

    if (text == NULL) {
        g_prefix_error(error, "config: ");
        return false;
    }
    if (!db_exec(job->tx,
                 "INSERT INTO squads (id, org_id, user_id, name, description, status, config, repository_id, "
                 "created_us, updated_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                 DB_ARGS(db_text(id), db_text(s->org_id), db_text(s->owner), db_text(name),
                         db_text(s->description != NULL ? s->description : ""),
                         db_text(s->status != NULL ? s->status : "active"), db_text(text),
                         db_text(m->repository_id), db_int(job->now_us), db_int(job->now_us)),
                 error))
        return false;
    if (!add_members(job, id, m, error) || !tell(job, s->actor, id, name, "created", error))
        return false;
    *ret_value = json_pack("{s:s}", "id", id);
    return true;
}

static const RowOp create_op = {ROW_WRITES, sizeof(SquadMake), make_members, run_create};

/* ---- changing ---- */

/* The machine's own is everybody's to use, but not to change. */
Json *
squad_row_to_change(RowJob *job, const char *id, const char *owner, GError **error)
{
    g_autoptr(Json) row = squad_row(job, id, owner, error);

    if (row != NULL && owner != NULL && strcmp(row_text(row, "user_id"), owner) != 0) {
        err_set(error, ERR_DENIED, "the squad '%s' is the machine's: an admin may change it",
                row_text(row, "name"));
        return NULL;
    }
    return g_steal_pointer(&row);
}

static bool
run_edit(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const SquadMake *m = data;
    SquadSpec s = m->spec;
    g_autoptr(Json) row = squad_row_to_change(job, s.id, s.owner, error);
    g_autofree char *name = row != NULL ? g_strdup(row_text(row, "name")) : NULL;

    if (row == NULL || !check_texts(&s, error))
        return false;
    const char *id = row_text(row, "id");

    s.owner = row_text(row, "user_id");
    if (s.name != NULL) {
        g_clear_pointer(&name, g_free);
        if (!check_name(job, &s, id, &name, error))
            return false;
        if (strcmp(row_text(row, "name"), SQUAD_DEFAULT) == 0 && strcmp(name, SQUAD_DEFAULT) != 0)
            return err_set(error, ERR_CONFLICT, "the default squad keeps its name");
    }
    g_autoptr(Json) config = squad_config_over(json_object_get(row, "config"), s.config, error);
    g_autofree char *text = config != NULL ? json_encode(config) : NULL;

    if (text == NULL) {
        g_prefix_error(error, "config: ");
        return false;
    }
    if (!db_exec(job->tx,
                 "UPDATE squads SET name = ?, description = COALESCE(?, description), status = COALESCE(?, "
                 "status), org_id = COALESCE(?, org_id), config = ?, repository_id = ?, updated_us = ? "
                 "WHERE id = ?",
                 DB_ARGS(db_text(name), db_text(s.description), db_text(s.status), db_text(s.org_id),
                         db_text(text),
                         db_text(s.repository != NULL ? m->repository_id : row_text(row, "repository_id")),
                         db_int(row_later_us(job, row)), db_text(id)),
                 error) ||
        !tell(job, s.actor, id, name, "edited", error))
        return false;
    *ret_value = json_pack("{s:s}", "id", id);
    return true;
}

static const RowOp edit_op = {ROW_WRITES, sizeof(SquadMake), make_members, run_edit};

/* ---- removing ---- */

/* Its tasks name it for ever, so the row stays; the name is free again. */
static bool
run_remove(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const SquadMake *m = data;
    g_autoptr(Json) row = squad_row_to_change(job, m->spec.id, m->spec.owner, error);
    gint64 open = 0;

    if (row == NULL)
        return false;
    const char *id = row_text(row, "id"), *name = row_text(row, "name");

    if (strcmp(name, SQUAD_DEFAULT) == 0 && row_text(row, "user_id")[0] == '\0')
        return err_set(error, ERR_CONFLICT, "the default squad stays");
    if (!row_ask_int(job,
                     "SELECT COUNT(*) FROM tasks WHERE squad_id = ? AND state NOT IN ('done', 'failed', "
                     "'cancelled')",
                     DB_ARGS(db_text(id)), &open, error))
        return false;
    if (open > 0)
        return err_set(error, ERR_CONFLICT, "the squad '%s' has %" G_GINT64_FORMAT " tasks that go on", name,
                       open);
    g_autofree char *old = g_strdup_printf("%s/%s", name, id);

    if (!db_exec(job->tx, "DELETE FROM squad_members WHERE squad_id = ?", DB_ARGS(db_text(id)), error) ||
        !db_exec(job->tx, "DELETE FROM hooks WHERE squad_id = ?", DB_ARGS(db_text(id)), error) ||
        !db_exec(job->tx, "UPDATE squads SET status = 'removed', name = ?, updated_us = ? WHERE id = ?",
                 DB_ARGS(db_text(old), db_int(row_later_us(job, row)), db_text(id)), error) ||
        !tell(job, m->spec.actor, id, name, "removed", error))
        return false;
    *ret_value = json_pack("{s:s}", "id", id);
    return true;
}

static const RowOp remove_op = {ROW_WRITES, sizeof(SquadMake), make_members, run_remove};

/* ---- the calls ---- */

/* A change, then the identities that it asks for, then the squad as it is. */
typedef struct Change {
    Team *team;
    char *squad_id;
    bool is_removal;
    TeamJsonFunc done;
    void *data;
} Change;

static void
change_end(Change *c, Json *value, const GError *error)
{
    c->done(value, error, c->data);
    team_unref(c->team);
    g_free(c->squad_id);
    g_free(c);
}

static void
on_read(Json *squad, const GError *error, void *data)
{
    change_end(data, squad, error);
}

static void
on_identities(void *data, const GError *error)
{
    Change *c = data;
    g_autoptr(Json) nothing = json_object();

    if (error != NULL || c->is_removal)
        change_end(c, error == NULL ? nothing : NULL, error);
    else
        squad_get(c->team, c->squad_id, NULL, on_read, c);
}

static void
on_written(Json *value, const GError *error, void *data)
{
    Change *c = data;

    if (error != NULL) {
        change_end(c, NULL, error);
        return;
    }
    c->squad_id = g_strdup(row_text(value, "id"));
    member_identities(c->team, c->squad_id, on_identities, c);
}

static bool
prepare_members(Team *team, Json *given, Json **ret_members, GError **error)
{
    g_autoptr(Json) members = given != NULL ? json_array() : NULL;
    size_t i;
    Json *one;

    if (json_array_size(given) > SQUAD_MEMBERS_MAX)
        return err_set(error, ERR_INVALID, "a squad has at most %d members", SQUAD_MEMBERS_MAX);
    json_array_foreach(given, i, one)
    {
        Json *fields = member_prepare(team, one, MEMBER_NEW, error);

        if (fields == NULL) {
            g_prefix_error(error, "member %zu: ", i + 1);
            return false;
        }
        json_array_append_new(members, fields);
    }
    *ret_members = g_steal_pointer(&members);
    return true;
}

static void
change(Team *team, const RowOp *op, const SquadSpec *spec, TeamJsonFunc done, void *data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) members = NULL;
    SquadMake m = {.spec = *spec, .usual = {member_provider(team), member_model(team)}};

    if (!prepare_members(team, spec->members, &members, &error) ||
        !team_find_repository(team, spec->repository, &m.repository_id, &error)) {
        done(NULL, error, data);
        return;
    }
    m.spec.members = members;
    Change *c = g_new0(Change, 1);

    *c = (Change){.team = team_ref(team), .is_removal = op == &remove_op, .done = done, .data = data};
    team_run(team, op, &m, on_written, c);
}

void
squad_create(Team *team, const SquadSpec *spec, TeamJsonFunc done, void *data)
{
    change(team, &create_op, spec, done, data);
}

void
squad_edit(Team *team, const SquadSpec *spec, TeamJsonFunc done, void *data)
{
    change(team, &edit_op, spec, done, data);
}

void
squad_remove(Team *team, const SquadSpec *spec, TeamJsonFunc done, void *data)
{
    change(team, &remove_op, spec, done, data);
}
