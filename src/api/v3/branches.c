/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/routes.h"
#include "api/v3/render.h"
#include "base/err.h"
#include "http/url.h"

typedef struct BranchWork {
    V3Work work;
    const char *name;
    int wanted; /* of a list: 1 only protected ones, 0 only others, -1 all */
} BranchWork;

static bool
is_protected(const V3Work *work, const char *branch)
{
    return repo_settings_protect(work->settings, work->place.branch, branch);
}

static Json *
branch_json(const V3Work *work, const char *name, Json *commit)
{
    g_autofree char *coded = url_encode_path(name);
    g_autofree char *url = g_strdup_printf("%s/branches/%s", work->place.api, coded);
    g_autofree char *html = g_strdup_printf("%s/tree/%s", work->place.html, coded);
    g_autofree char *protection = g_strconcat(url, "/protection", NULL);

    return json_pack("{s:s, s:o, s:b, s:s, s:{s:s, s:s}}", "name", name, "commit", commit, "protected",
                     is_protected(work, name), "protection_url", protection, "_links", "self", url, "html",
                     html);
}

static Json *
tip_json(const V3Work *work, const BranchTip *tip)
{
    g_autofree char *url = g_strdup_printf("%s/commits/%s", work->place.api, tip->oid);

    return branch_json(work, tip->name, json_pack("{s:s, s:s}", "sha", tip->oid, "url", url));
}

static bool
list_work(GitRepo *git, void *data, GError **error)
{
    BranchWork *w = data;
    const ForgePage *page = &w->work.page;
    BranchPage ask = {.skip = (page->page - 1) * page->per_page, .max = page->per_page};
    Json *list = json_array();

    w->work.value = list;
    if (w->wanted >= 0)
        ask = (BranchPage){.max = BRANCH_PAGE_MAX};
    g_autoptr(GPtrArray) tips = branch_list(git, &ask, &w->work.more, error);
    guint skip = w->wanted >= 0 ? (page->page - 1) * page->per_page : 0;

    for (guint i = 0; tips != NULL && i < tips->len; i++) {
        const BranchTip *tip = tips->pdata[i];

        if (w->wanted >= 0 && is_protected(&w->work, tip->name) != (w->wanted == 1))
            continue;
        if (skip > 0) {
            skip--;
        } else if (json_array_size(list) == page->per_page) {
            w->work.more = true;
            break;
        } else {
            json_array_append_new(list, tip_json(&w->work, tip));
        }
    }
    return tips != NULL;
}

static void
list_branches(ApiCall *call)
{
    g_autofree char *wanted = NULL;

    if (!v3_query(call, "protected", &wanted))
        return;
    BranchWork *w = V3_WORK_NEW(BranchWork, call);

    if (w == NULL)
        return;
    w->wanted = wanted == NULL ? -1 : strcmp(wanted, "true") == 0;
    w->work.is_rowed = true;
    w->work.paged = true;
    v3_read_page(call, &w->work.page);
    v3_work_read(&w->work, "list branches", list_work);
}

static bool
get_work(GitRepo *git, void *data, GError **error)
{
    BranchWork *w = data;
    g_autofree char *ref = g_strconcat("refs/heads/", w->name, NULL);
    g_autofree char *oid = v3_resolve(git, &w->work.place, ref, error);
    g_autoptr(GitCommit) commit = oid != NULL ? commit_read(git, oid, error) : NULL;

    if (commit == NULL)
        return false;
    w->work.value = branch_json(&w->work, w->name, v3_commit(&w->work.place, commit));
    return true;
}

static void
get_branch(ApiCall *call)
{
    BranchWork *w = V3_WORK_NEW(BranchWork, call);

    if (w == NULL)
        return;
    w->name = call_param(call, "branch");
    w->work.is_rowed = true;
    v3_work_read(&w->work, "show a branch", get_work);
}

const ApiRoute v3_branches_routes[] = {
    {"GET", V3_REPO "/branches", SCOPE_READ, ROUTE_BASIC, list_branches},
    {"GET", V3_REPO "/branches/{branch...}", SCOPE_READ, ROUTE_BASIC, get_branch},
    {NULL},
};
