/* SPDX-License-Identifier: Apache-2.0 */
/* Members of squads: what may be said of one, and its row. */
#include <string.h>

#include "base/err.h"
#include "base/id.h"
#include "team/member-private.h"

enum {
    MODEL_MAX = 200,
    TOOLS_MAX = 50,
    TURNS_MAX = 10000,
    SECONDS_MAX = 24 * 3600,
    TOKENS_MAX = 10 * 1000 * 1000,
};

/* ---- what is said ---- */

/* A word of names: letters, digits and "._-". */
static bool
check_name(const char *what, const char *name, GError **error)
{
    bool ok = name[0] != '\0' && strlen(name) <= SQUAD_NAME_MAX && g_ascii_isalnum(name[0]);

    for (const char *p = name; ok && *p != '\0'; p++)
        ok = g_ascii_isalnum(*p) || strchr("._-", *p) != NULL;
    return ok || err_set(error, ERR_INVALID,
                         "%s has 1 to %d letters, digits and '._-', and begins with a letter or digit", what,
                         SQUAD_NAME_MAX);
}

static bool
check_config(Json *config, GError **error)
{
    gint64 turns, seconds, context_tokens, output_tokens;
    Json *tools = NULL, *tool;
    size_t i;
    const JsonField fields[] = {
        {"turns", JSON_KIND_INT, &turns, false, 1, TURNS_MAX},
        {"seconds", JSON_KIND_INT, &seconds, false, 1, SECONDS_MAX},
        {"context_tokens", JSON_KIND_INT, &context_tokens, false, 1, TOKENS_MAX},
        {"output_tokens", JSON_KIND_INT, &output_tokens, false, 1, TOKENS_MAX},
        {"tools", JSON_KIND_ARRAY, &tools, false, 0, TOOLS_MAX},
        {NULL},
    };

    if (config == NULL)
        return true;
    if (!json_read(config, fields, error)) {
        g_prefix_error(error, "config: ");
        return false;
    }
    json_array_foreach(tools, i, tool)
    {
        if (!json_is_string(tool))
            return err_set(error, ERR_INVALID, "config: tools are names");
        if (!check_name("a tool", json_string_value(tool), error))
            return false;
    }
    return true;
}

/* A line that may be there, as it is kept. */
static bool
tidy_line(Json *fields, const char *name, size_t max, GError **error)
{
    Json *value = json_object_get(fields, name);

    if (value == NULL || json_is_null(value))
        return true;
    g_autofree char *line = row_dup_line(name, json_string_value(value), max, ROW_TEXT_MAY_BE_EMPTY, error);

    if (line != NULL)
        json_object_set_new(fields, name, line[0] != '\0' ? json_string(line) : json_null());
    return line != NULL;
}

static bool
read_fields(Json *fields, GError **error)
{
    const char *name = NULL, *role = NULL, *text = NULL, *adapter = NULL, *template = NULL;
    bool is_active;
    Json *config = NULL;
    const JsonField rows[] = {
        {"name", JSON_KIND_STRING, &name, false, 1, SQUAD_NAME_MAX},
        {"role", JSON_KIND_STRING, &role, false, 1, SQUAD_NAME_MAX * 4},
        {"specialization", JSON_KIND_STRING, &text, false, 0, SQUAD_NAME_MAX * 4},
        {"llm_provider", JSON_KIND_STRING, &text, false, 1, MODEL_MAX},
        {"llm_model", JSON_KIND_STRING, &text, false, 1, MODEL_MAX},
        {"system_prompt", JSON_KIND_STRING, &text, false, 0, SQUAD_PROMPT_MAX},
        {"adapter", JSON_KIND_STRING, &adapter, false, 1, SQUAD_NAME_MAX},
        {"template", JSON_KIND_STRING, &template, false, 1, SQUAD_NAME_MAX},
        {"config", JSON_KIND_OBJECT, &config},
        {"is_active", JSON_KIND_BOOL, &is_active},
        {NULL},
    };

    return json_read(fields, rows, error) && (name == NULL || check_name("'name'", name, error)) &&
           (adapter == NULL || check_name("'adapter'", adapter, error)) &&
           (template == NULL || check_name("'template'", template, error)) && check_config(config, error) &&
           tidy_line(fields, "role", SQUAD_NAME_MAX, error) &&
           tidy_line(fields, "specialization", SQUAD_NAME_MAX, error) &&
           tidy_line(fields, "llm_provider", MODEL_MAX, error) &&
           tidy_line(fields, "llm_model", MODEL_MAX, error);
}

/* null means: none, as if it had not been said. */
static void
drop_nulls(Json *fields, Json *cleared)
{
    void *next;
    const char *name;
    Json *value;

    json_object_foreach_safe(fields, next, name, value)
    {
        if (!json_is_null(value))
            continue;
        json_array_append_new(cleared, json_string(name));
        json_object_del(fields, name);
    }
}

static bool
may_be_cleared(const Json *cleared, GError **error)
{
    static const char *const names[] = {"specialization", "system_prompt", "template", NULL};
    size_t i;
    Json *name;

    json_array_foreach((Json *)(guintptr)cleared, i, name)
    {
        if (!g_strv_contains(names, json_string_value(name)))
            return err_set(error, ERR_INVALID, "'%s' cannot be null", json_string_value(name));
    }
    return true;
}

static void
set_archetype(Team *team, Json *fields)
{
    const char *role = row_text(fields, "role"), *specialization = NULL;
    const Role *known = team_role(team, role, &specialization);

    json_object_set_new(fields, "archetype", json_string(known != NULL ? known->archetype : "coder"));
    if (specialization != NULL && json_object_get(fields, "specialization") == NULL)
        json_object_set_new(fields, "specialization", json_string(specialization));
    if (known != NULL && json_object_get(fields, "adapter") == NULL)
        json_object_set_new(fields, "adapter", json_string(known->adapter));
}

/* The role's, where the member names neither provider nor model. */
static void
set_brain(Team *team, Json *fields)
{
    const Role *role = team_role(team, row_text(fields, "role"), NULL);
    const char *brain = role != NULL ? role->brain : NULL, *slash = brain != NULL ? strchr(brain, '/') : NULL;

    if (slash == NULL || json_object_get(fields, "llm_provider") != NULL ||
        json_object_get(fields, "llm_model") != NULL)
        return;
    json_object_set_new(fields, "llm_provider", json_stringn(brain, (size_t)(slash - brain)));
    json_object_set_new(fields, "llm_model", json_string(slash + 1));
}

Json *
member_prepare(Team *team, Json *given, MemberUse use, GError **error)
{
    g_autoptr(Json) fields = json_deep_copy(given), cleared = json_array();
    size_t i;
    Json *name;

    if (!json_is_object(given)) {
        err_set(error, ERR_INVALID, "a member must be an object");
        return NULL;
    }
    drop_nulls(fields, cleared);
    if (!may_be_cleared(cleared, error) || !read_fields(fields, error))
        return NULL;
    if (use == MEMBER_NEW && row_text(fields, "role") == NULL) {
        err_set(error, ERR_INVALID, "a member needs a 'role'");
        return NULL;
    }
    if (row_text(fields, "role") != NULL)
        set_archetype(team, fields);
    if (use == MEMBER_NEW)
        set_brain(team, fields);
    if (use == MEMBER_NEW && json_object_get(fields, "llm_provider") == NULL)
        json_object_set_new(fields, "llm_provider", json_string(member_provider(team)));
    if (use == MEMBER_NEW && json_object_get(fields, "llm_model") == NULL)
        json_object_set_new(fields, "llm_model", json_string(member_model(team)));
    json_array_foreach(cleared, i, name)
    {
        if (json_object_get(fields, json_string_value(name)) == NULL)
            json_object_set_new(fields, json_string_value(name), json_null());
    }
    return g_steal_pointer(&fields);
}

const char *
member_provider(Team *team)
{
    return team->spec.default_provider != NULL ? team->spec.default_provider : "openai";
}

const char *
member_model(Team *team)
{
    return team->spec.default_model != NULL ? team->spec.default_model : "gpt-4";
}

/* ---- the row ---- */

/* "coder-1", "coder-2", … for those that bring no name. */
static char *
free_name(RowJob *job, const char *squad_id, const char *archetype, GError **error)
{
    for (guint n = 1; n <= SQUAD_MEMBERS_MAX + 1; n++) {
        g_autofree char *name = g_strdup_printf("%s-%u", archetype, n);
        gint64 taken = 0;

        if (!row_ask_int(job, "SELECT COUNT(*) FROM squad_members WHERE squad_id = ? AND name = ?",
                         DB_ARGS(db_text(squad_id), db_text(name)), &taken, error))
            return NULL;
        if (taken == 0)
            return g_steal_pointer(&name);
    }
    err_set(error, ERR_LIMIT, "a squad has at most %d members", SQUAD_MEMBERS_MAX);
    return NULL;
}

static bool
check_free(RowJob *job, const char *squad_id, const char *member_id, const char *name, GError **error)
{
    gint64 taken = 0;

    if (!row_ask_int(job, "SELECT COUNT(*) FROM squad_members WHERE squad_id = ? AND name = ? AND id <> ?",
                     DB_ARGS(db_text(squad_id), db_text(name), db_text(member_id)), &taken, error))
        return false;
    return taken == 0 || err_set(error, ERR_CONFLICT, "the squad has a member '%s' already", name);
}

static bool
check_room(RowJob *job, const char *squad_id, gint64 *ret_position, GError **error)
{
    gint64 count = 0;

    if (!row_ask_int(job, "SELECT COUNT(*) FROM squad_members WHERE squad_id = ?", DB_ARGS(db_text(squad_id)),
                     &count, error) ||
        !row_ask_int(job, "SELECT MAX(position) + 1 FROM squad_members WHERE squad_id = ?",
                     DB_ARGS(db_text(squad_id)), ret_position, error))
        return false;
    return count < SQUAD_MEMBERS_MAX ||
           err_set(error, ERR_LIMIT, "a squad has at most %d members", SQUAD_MEMBERS_MAX);
}

bool
member_insert(RowJob *job, const char *squad_id, const Json *fields, char ret_id[ID_UUID_LEN + 1],
              GError **error)
{
    gint64 position = 0;
    g_autofree char *name = g_strdup(row_text(fields, "name"));

    id_new_uuid(ret_id);
    if (!check_room(job, squad_id, &position, error))
        return false;
    if (name == NULL)
        name = free_name(job, squad_id, row_text(fields, "archetype"), error);
    if (name == NULL || !check_free(job, squad_id, ret_id, name, error))
        return false;
    return db_exec(job->tx,
                   "INSERT INTO squad_members (id, squad_id, position, name, role, archetype, created_us, "
                   "updated_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                   DB_ARGS(db_text(ret_id), db_text(squad_id), db_int(position), db_text(name),
                           db_text(row_text(fields, "role")), db_text(row_text(fields, "archetype")),
                           db_int(job->now_us), db_int(job->now_us)),
                   error) &&
           member_update(job, squad_id, ret_id, fields, error);
}

static DbValue
column_value(const Json *value, char **ret_text)
{
    if (json_is_boolean(value))
        return db_int(json_is_true(value) ? 1 : 0);
    if (json_is_object(value)) {
        *ret_text = json_encode(value);
        return db_text(*ret_text);
    }
    return db_text(json_string_value(value)); /* of null: NULL */
}

bool
member_update(RowJob *job, const char *squad_id, const char *member_id, const Json *fields, GError **error)
{
    const char *name = row_text(fields, "name"), *column;
    Json *value;

    if (name != NULL && !check_free(job, squad_id, member_id, name, error))
        return false;
    /* The names were checked against a fixed list, so they are columns and nothing else. */
    json_object_foreach((Json *)(guintptr)fields, column, value)
    {
        g_autofree char *sql = g_strdup_printf(
            "UPDATE squad_members SET %s = ?, updated_us = ? WHERE id = ? AND squad_id = ?", column);
        g_autofree char *text = NULL;
        DbValue v = column_value(value, &text);

        if (!db_exec(job->tx, sql, DB_ARGS(v, db_int(job->now_us), db_text(member_id), db_text(squad_id)),
                     error))
            return false;
    }
    return true;
}
