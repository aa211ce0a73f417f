/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/compare.h"

#include "forge/commit.h"

void
comparison_clear(Comparison *comparison)
{
    g_free(comparison->merge_base);
    *comparison = (Comparison){0};
}

static const char *
status_of(guint ahead, guint behind)
{
    if (ahead > 0)
        return behind > 0 ? "diverged" : "ahead";
    return behind > 0 ? "behind" : "identical";
}

bool
compare_commits(GitRepo *repo, const char *base, const char *head, Comparison *ret_comparison, GError **error)
{
    g_auto(Comparison) c = {0};

    if (!commit_ahead_behind(repo, base, head, &c.ahead, &c.behind, error))
        return false;
    c.status = status_of(c.ahead, c.behind);
    if (c.ahead == 0 || c.behind == 0)
        c.merge_base = g_strdup(c.ahead == 0 ? head : base);
    else if (!commit_merge_base(repo, base, head, &c.merge_base, error))
        return false;
    *ret_comparison = c;
    c = (Comparison){0};
    return true;
}
