/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/git.h"

enum { BRANCH_MAX = 200 };

const char git_oid_zero[] = "0000000000000000000000000000000000000000";

bool
git_oid_is_valid(const char *oid)
{
    return strlen(oid) == GIT_OID_LEN && strspn(oid, "0123456789abcdef") == GIT_OID_LEN;
}

/* Why a part between two slashes is none; NULL: it is one. */
static const char *
part_problem(const char *part)
{
    if (part[0] == '\0')
        return "has an empty part";
    if (part[0] == '.' || part[0] == '-')
        return "has a part that begins with '.' or '-'";
    if (g_str_has_suffix(part, ".lock") || g_str_has_suffix(part, "."))
        return "has a part that ends with '.lock' or '.'";
    return strstr(part, "..") != NULL ? "contains '..'" : NULL;
}

static const char *
name_problem(const char *name)
{
    static const char reserved[] = "HEAD";

    if (name[0] == '\0')
        return "is empty";
    if (strlen(name) > BRANCH_MAX)
        return "is too long";
    for (const char *p = name; *p != '\0'; p++) {
        if (!g_ascii_isalnum(*p) && strchr("._/-", *p) == NULL)
            return "may have letters, digits, '.', '_', '/' and '-' only";
    }
    if (g_ascii_strcasecmp(name, reserved) == 0 || g_ascii_strncasecmp(name, "refs/", strlen("refs/")) == 0)
        return "is a name that git keeps for itself";
    /* Taken for a commit wherever either may stand. */
    if (strlen(name) == GIT_OID_LEN && strspn(name, "0123456789abcdefABCDEF") == GIT_OID_LEN)
        return "looks like a commit";
    g_auto(GStrv) parts = g_strsplit(name, "/", -1);
    const char *problem = NULL;

    for (guint i = 0; parts[i] != NULL && problem == NULL; i++)
        problem = part_problem(parts[i]);
    return problem;
}

bool
git_branch_is_valid(const char *name, GError **error)
{
    const char *problem = name_problem(name);

    return problem == NULL || err_set(error, ERR_INVALID, "the branch's name %s", problem);
}
