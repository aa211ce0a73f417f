/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/forge-private.h"

const char repo_owner_default[] = "coop";
const char repo_branch_default[] = "main";

static const char *const state_names[REPO_STATE_MAX] = {
    [REPO_IMPORTING] = "importing",
    [REPO_READY] = "ready",
    [REPO_FAILED] = "failed",
    [REPO_REMOVING] = "removing",
};

const char *
repo_state_name(RepoState state)
{
    return state_names[state];
}

/* What a row says that another version wrote counts as failed. */
RepoState
repo_state_parse(const char *name)
{
    for (RepoState s = 0; s < REPO_STATE_MAX; s++) {
        if (strcmp(state_names[s], name) == 0)
            return s;
    }
    return REPO_FAILED;
}

bool
repo_name_is_valid(const char *name, GError **error)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t len = strlen(name);
    g_autofree char *lower = g_ascii_strdown(name, -1);

    if (len == 0 || len > REPO_NAME_MAX)
        return err_set(error, ERR_INVALID, "a name has 1 to %d characters", REPO_NAME_MAX);
    if (strspn(name, allowed) != len || name[0] == '.' || name[0] == '-')
        return err_set(error, ERR_INVALID,
                       "a name consists of ASCII letters, digits, '.', '_' and '-', and begins with neither "
                       "'.' nor '-'");
    if (g_str_has_suffix(lower, ".git") || g_str_has_suffix(lower, ".lock") || strstr(name, "..") != NULL)
        return err_set(error, ERR_INVALID,
                       "a name has no '..' in it and ends with neither '.git' nor '.lock'");
    return true;
}

bool
repo_name_split(const char *text, char **ret_owner, char **ret_name, GError **error)
{
    const char *slash = strchr(text, '/');
    g_autofree char *owner = slash != NULL ? g_strndup(text, (gsize)(slash - text))
                                           : g_strdup(repo_owner_default);
    const char *name = slash != NULL ? slash + 1 : text;

    if (!repo_name_is_valid(owner, error) || !repo_name_is_valid(name, error)) {
        g_prefix_error(error, "repository '%.*s': ", 2 * REPO_NAME_MAX, text);
        return false;
    }
    *ret_owner = g_steal_pointer(&owner);
    *ret_name = g_strdup(name);
    return true;
}
