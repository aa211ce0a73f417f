/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/repo-settings.h"

#include <string.h>

#include "base/err.h"
#include "forge/workspace.h"

static const char checks_needed[] = "needed", checks_none[] = "none";

void
repo_settings_free(RepoSettings *settings)
{
    if (settings == NULL)
        return;
    g_strfreev(settings->protected_branches);
    g_strfreev(settings->commit_types);
    g_free(settings->branch_pattern);
    g_free(settings);
}

/* NULL `list`: was not given. */
static bool
read_texts(const char *what, Json *list, char ***ret_texts, GError **error)
{
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    size_t i;
    Json *item;

    if (list == NULL)
        return true;
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);

        if (text == NULL || text[0] == '\0' || strlen(text) > SETTINGS_PATTERN_MAX)
            return err_set(error, ERR_INVALID, "%s must be texts of at most %d bytes", what,
                           SETTINGS_PATTERN_MAX);
        g_ptr_array_add(texts, g_strdup(text));
    }
    g_ptr_array_add(texts, NULL);
    *ret_texts = (char **)g_ptr_array_free(g_steal_pointer(&texts), FALSE);
    return true;
}

static bool
read_methods(Json *list, guint *ret_methods, GError **error)
{
    guint methods = 0;
    size_t i;
    Json *item;

    if (list == NULL)
        return true;
    json_array_foreach(list, i, item)
    {
        MergeMethod method;

        if (!json_is_string(item) || !merge_method_parse(json_string_value(item), &method))
            return err_set(error, ERR_INVALID, "merge_methods must be of merge, squash and rebase");
        methods |= 1u << method;
    }
    *ret_methods = methods;
    return methods != 0 || err_set(error, ERR_INVALID, "merge_methods must name one");
}

static bool
check_branches(char **branches, GError **error)
{
    for (; branches != NULL && *branches != NULL; branches++) {
        if (!git_branch_is_valid(*branches, error)) {
            g_prefix_error(error, "protected_branches: ");
            return false;
        }
    }
    return true;
}

static bool
check_pattern(const char *pattern, GError **error)
{
    BranchName any = {.pattern = pattern, .id = "x", .role = "x", .slug = "x", .n = 1};

    if (strstr(pattern, "{id}") == NULL)
        return err_set(error, ERR_INVALID, "branch_pattern must have {id} in it");
    g_autofree char *branch = workspace_branch_name(&any, error);

    if (branch == NULL)
        g_prefix_error(error, "branch_pattern: ");
    return branch != NULL;
}

static bool
read_checks(const char *text, bool *ret_allow_none, GError **error)
{
    *ret_allow_none = strcmp(text, checks_none) == 0;
    return *ret_allow_none || strcmp(text, checks_needed) == 0 ||
           err_set(error, ERR_INVALID, "checks must be \"%s\" or \"%s\"", checks_needed, checks_none);
}

RepoSettings *
repo_settings_read(Json *object, GError **error)
{
    g_autoptr(RepoSettings) s = g_new0(RepoSettings, 1);
    Json *methods = NULL, *branches = NULL, *types = NULL;
    const char *pattern = WORKSPACE_BRANCH, *checks = checks_needed;
    gint64 approvals = 0;
    bool up_to_date = false, conventional = true, delete_merged = false;
    const JsonField fields[] = {
        {"required_approvals", JSON_KIND_INT, &approvals, false, 0, SETTINGS_APPROVALS_MAX},
        {"up_to_date", JSON_KIND_BOOL, &up_to_date},
        {"merge_methods", JSON_KIND_ARRAY, &methods, false, 0, MERGE_METHOD_MAX},
        {"protected_branches", JSON_KIND_ARRAY, &branches, false, 0, SETTINGS_PROTECTED_MAX},
        {"conventional_commits", JSON_KIND_BOOL, &conventional},
        {"commit_types", JSON_KIND_ARRAY, &types, false, 0, SETTINGS_TYPES_MAX},
        {"branch_pattern", JSON_KIND_STRING, &pattern, false, 1, WORKSPACE_PATTERN_MAX},
        {"checks", JSON_KIND_STRING, &checks, false, 1, SETTINGS_PATTERN_MAX},
        {"delete_merged_branches", JSON_KIND_BOOL, &delete_merged},
        {NULL},
    };

    s->merge_methods = (1u << MERGE_METHOD_MAX) - 1;
    if (!json_read(object, fields, error) || !read_methods(methods, &s->merge_methods, error) ||
        !read_texts("protected_branches", branches, &s->protected_branches, error) ||
        !read_texts("commit_types", types, &s->commit_types, error) ||
        !check_branches(s->protected_branches, error) || !check_pattern(pattern, error) ||
        !read_checks(checks, &s->allow_no_checks, error))
        return NULL;
    s->required_approvals = (guint)approvals;
    s->up_to_date = up_to_date;
    s->conventional_commits = conventional;
    s->branch_pattern = g_strdup(pattern);
    s->delete_merged_branches = delete_merged;
    return g_steal_pointer(&s);
}

bool
repo_settings_protect(const RepoSettings *settings, const char *default_branch, const char *branch)
{
    const char *const *set = (const char *const *)settings->protected_branches;

    return set != NULL ? g_strv_contains(set, branch) : strcmp(branch, default_branch) == 0;
}

RepoSettings *
repo_settings_parse(const char *text, GError **error)
{
    g_autoptr(Json) object = json_decode(text, strlen(text), error);

    return object != NULL ? repo_settings_read(object, error) : NULL;
}

static Json *
texts_json(char **texts)
{
    if (texts == NULL)
        return json_null();
    Json *list = json_array();

    for (; *texts != NULL; texts++)
        json_array_append_new(list, json_string(*texts));
    return list;
}

Json *
repo_settings_json(const RepoSettings *settings)
{
    Json *methods = json_array();

    for (guint i = 0; i < MERGE_METHOD_MAX; i++) {
        if ((settings->merge_methods & 1u << i) != 0)
            json_array_append_new(methods, json_string(merge_method_name(i)));
    }
    return json_pack("{s:i, s:b, s:o, s:o, s:b, s:o, s:s, s:s, s:b}", "required_approvals",
                     (int)settings->required_approvals, "up_to_date", settings->up_to_date, "merge_methods",
                     methods, "protected_branches", texts_json(settings->protected_branches),
                     "conventional_commits", settings->conventional_commits, "commit_types",
                     texts_json(settings->commit_types), "branch_pattern", settings->branch_pattern, "checks",
                     settings->allow_no_checks ? checks_none : checks_needed, "delete_merged_branches",
                     settings->delete_merged_branches);
}

static char *
load_text(DbTx *tx, const char *repository_id, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx, "SELECT settings FROM repositories WHERE id = ?",
                                      DB_ARGS(db_text(repository_id)), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return NULL;
    if (!found) {
        err_set(error, ERR_NOT_FOUND, "the repository is gone");
        return NULL;
    }
    return g_strdup(db_rows_text(rows, 0));
}

RepoSettings *
repo_settings_load(DbTx *tx, const char *repository_id, GError **error)
{
    g_autofree char *text = load_text(tx, repository_id, error);

    return text != NULL ? repo_settings_parse(text, error) : NULL;
}

/* A null in the changes brings the default back. */
bool
repo_settings_change(DbTx *tx, const char *repository_id, Json *changes, GError **error)
{
    g_autofree char *old = load_text(tx, repository_id, error);
    g_autoptr(Json) object = old != NULL ? json_decode(old, strlen(old), error) : NULL;
    const char *name;
    Json *value;

    if (object == NULL)
        return false;
    if (!json_is_object(changes))
        return err_set(error, ERR_INVALID, "settings must be an object");
    json_object_foreach(changes, name, value)
    {
        if (json_is_null(value))
            json_object_del(object, name);
        else
            json_object_set(object, name, value);
    }
    g_autoptr(RepoSettings) checked = repo_settings_read(object, error);

    if (checked == NULL)
        return false;
    g_autofree char *text = json_encode(object);

    return db_exec(tx, "UPDATE repositories SET settings = ? WHERE id = ?",
                   DB_ARGS(db_text(text), db_text(repository_id)), error);
}
