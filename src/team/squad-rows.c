/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"
#include "team/squad-private.h"

static const RowColumn squad_columns[] = {
    {"id", ROW_TEXT, "s.id"},
    {"org_id", ROW_TEXT, "s.org_id"},
    {"user_id", ROW_TEXT, "s.user_id"},
    {"name", ROW_TEXT, "s.name"},
    {"description", ROW_TEXT, "s.description"},
    {"status", ROW_TEXT, "s.status"},
    {"config", ROW_JSON, "s.config"},
    {"repository_id", ROW_TEXT, "s.repository_id"},
    {"repository", ROW_TEXT,
     "(SELECT r.owner || '/' || r.name FROM repositories r WHERE r.id = s.repository_id)"},
    {"created_us", ROW_INT, "s.created_us"},
    {"updated_us", ROW_INT, "s.updated_us"},
};
const RowTable squad_table = {"squad", "squads s", squad_columns, G_N_ELEMENTS(squad_columns)};

static const RowColumn member_columns[] = {
    {"id", ROW_TEXT},
    {"squad_id", ROW_TEXT},
    {"position", ROW_INT},
    {"name", ROW_TEXT},
    {"role", ROW_TEXT},
    {"archetype", ROW_TEXT},
    {"specialization", ROW_TEXT},
    {"llm_provider", ROW_TEXT},
    {"llm_model", ROW_TEXT},
    {"system_prompt", ROW_TEXT},
    {"adapter", ROW_TEXT},
    {"template", ROW_TEXT},
    {"config", ROW_JSON},
    {"is_active", ROW_BOOL},
    {"identity_id", ROW_TEXT},
    {"sandbox_id", ROW_TEXT},
    {"current_task_id", ROW_TEXT},
    {"git_context", ROW_JSON},
    {"created_us", ROW_INT},
    {"updated_us", ROW_INT},
};
const RowTable member_table = {"member", "squad_members m", member_columns, G_N_ELEMENTS(member_columns)};

Json *
squad_row(RowJob *job, const char *id_or_name, const char *owner, GError **error)
{
    /* Two owners may have squads of one name: his own is meant, else the machine's. */
    if (owner == NULL)
        return row_get(job, &squad_table,
                       "s.status <> 'removed' AND (s.id = ? OR s.name = ?) ORDER BY s.user_id, s.created_us",
                       DB_ARGS(db_text(id_or_name), db_text(id_or_name)), error);
    return row_get(job, &squad_table,
                   "s.status <> 'removed' AND (s.id = ? OR s.name = ?) AND (s.user_id = ? OR s.user_id = '') "
                   "ORDER BY s.user_id DESC",
                   DB_ARGS(db_text(id_or_name), db_text(id_or_name), db_text(owner)), error);
}

Json *
squad_members(RowJob *job, const char *squad_id, GError **error)
{
    g_auto(RowWhere) where = ROW_WHERE_INIT;

    row_where_add(&where, "m.squad_id = ?", DB_ARGS(db_text(squad_id)));
    g_autoptr(Json) list = row_list(job, &member_table, &where, "m.position, m.created_us",
                                    (ForgePage){.per_page = SQUAD_MEMBERS_MAX}, error);

    return list != NULL ? json_incref(json_object_get(list, "items")) : NULL;
}
