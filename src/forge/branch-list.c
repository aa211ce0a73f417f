/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/commit.h"
#include "forge/records.h"

void
branch_tip_free(BranchTip *tip)
{
    if (tip == NULL)
        return;
    g_free(tip->name);
    g_free(tip->oid);
    g_free(tip);
}

/* "OID PEELED REF"; the second is of tags that are objects of their own. */
static BranchTip *
parse_tip(const char *line, const char *below)
{
    g_auto(GStrv) words = g_strsplit(line, " ", 3);

    if (g_strv_length(words) != 3 || !git_oid_is_valid(words[0]) || !g_str_has_prefix(words[2], below))
        return NULL;
    BranchTip *tip = g_new0(BranchTip, 1);

    tip->oid = g_strdup(git_oid_is_valid(words[1]) ? words[1] : words[0]);
    tip->name = g_strdup(words[2] + strlen(below));
    return tip;
}

/* git's patterns are globs; a prefix may end within a name. */
static bool
has_prefix(const char *line, const void *prefix)
{
    const char *name = strrchr(line, ' ');

    return name != NULL && g_str_has_prefix(name + 1, prefix);
}

GPtrArray *
branch_list(GitRepo *repo, const BranchPage *page, bool *ret_more, GError **error)
{
    const char *below = page->tags ? "refs/tags/" : "refs/heads/";
    g_autofree char *prefix = g_strconcat(below, page->prefix, NULL);
    RecordsSpec spec = {
        .args = GIT_ARGS("for-each-ref", "--format=%(objectname) %(*objectname) %(refname)", "--", below),
        .separator = '\n',
        .skip = page->skip,
        .max = MIN(page->max, BRANCH_PAGE_MAX),
        .keep = has_prefix,
        .keep_ctx = prefix,
    };
    g_autoptr(GPtrArray) lines = records_read(repo, &spec, ret_more, error);
    g_autoptr(GPtrArray) tips = g_ptr_array_new_with_free_func((GDestroyNotify)branch_tip_free);

    for (guint i = 0; lines != NULL && i < lines->len; i++) {
        BranchTip *tip = parse_tip(lines->pdata[i], below);

        if (tip == NULL) {
            err_set(error, ERR_INTERNAL, "git listed '%s'", (const char *)lines->pdata[i]);
            return NULL;
        }
        g_ptr_array_add(tips, tip);
    }
    return lines != NULL ? g_steal_pointer(&tips) : NULL;
}
