/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/pull-git.h"

#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "api/v3/ask.h"
#include "api/v3/text.h"
#include "forge/compare.h"
#include "forge/pull.h"

static const char resource[] = "PullRequest";

/* Two commits: the row says which, or git does where the row does not know yet. */
typedef struct Tips {
    const char *head, *base;
    const char *from; /* NULL: not known */
} Tips;

static void
read_tips(V3Work *work, const Json *pull, Tips *ret_tips)
{
    bool known = g_strcmp0(row_text(pull, "compared_head"), row_text(pull, "head_oid")) == 0;

    *ret_tips = (Tips){v3_work_text(work, row_text(pull, "head_oid")),
                       v3_work_text(work, row_text(pull, "base_oid")),
                       known ? v3_work_text(work, row_text(pull, "from_oid")) : NULL};
}

static bool
find_from(GitRepo *git, V3Work *work, Tips *tips, GError **error)
{
    g_auto(Comparison) comparison = {0};

    if (tips->from != NULL)
        return true;
    if (!compare_commits(git, tips->base, tips->head, &comparison, error))
        return false;
    tips->from = v3_work_text(work, comparison.merge_base != NULL ? comparison.merge_base : tips->base);
    return true;
}

/* ---- files and commits ---- */

typedef struct PullRead {
    V3Work work;
    Tips tips;
} PullRead;

/* GitHub's answers end at so many. */
enum { COMMITS_MAX = 250 };

static bool
read_files(GitRepo *git, void *data, GError **error)
{
    PullRead *read = data;
    V3Work *work = &read->work;

    if (!find_from(git, work, &read->tips, error))
        return false;
    DiffSpec spec = {.old = read->tips.from,
                     .new = read->tips.head,
                     .skip = (work->page.page - 1) * work->page.per_page,
                     .max = work->page.per_page,
                     .cancel = forge_cancel(work->call->api->forge)};
    g_autoptr(DiffPage) page = diff_files(git, &spec, error);

    if (page == NULL)
        return false;
    work->value = json_array();
    work->more = page->next != NULL;
    for (guint i = 0; i < page->files->len; i++)
        json_array_append_new(work->value, v3_file(&work->place, page->files->pdata[i], read->tips.head));
    return true;
}

static bool
read_commits(GitRepo *git, void *data, GError **error)
{
    PullRead *read = data;
    V3Work *work = &read->work;
    guint skip = (work->page.page - 1) * work->page.per_page;

    if (!find_from(git, work, &read->tips, error))
        return false;
    CommitRange range = {.head = read->tips.head,
                         .without = read->tips.from,
                         .oldest_first = true,
                         .skip = skip,
                         .max = MIN(work->page.per_page, COMMITS_MAX - MIN(skip, (guint)COMMITS_MAX))};
    g_autoptr(GPtrArray) commits = range.max > 0 ? commit_list(git, &range, &work->more, error)
                                                 : g_ptr_array_new();

    if (commits == NULL)
        return false;
    work->value = json_array();
    work->more = work->more && skip + commits->len < COMMITS_MAX;
    for (guint i = 0; i < commits->len; i++)
        json_array_append_new(work->value, v3_commit(&work->place, commits->pdata[i]));
    return true;
}

typedef struct Reading {
    const char *what;
    V3WorkFunc func;
    bool is_paged;
} Reading;

static void
on_pull(Json *pull, const GError *error, void *data)
{
    V3Ask *ask = data;
    const Reading *reading = ask->more;
    PullRead *read;

    if (error != NULL) {
        v3_ask_fail(ask, error);
        return;
    }
    read = V3_WORK_NEW(PullRead, ask->call);
    if (read != NULL) {
        g_autofree char *what = g_strdup_printf("%s of #%" G_GINT64_FORMAT, reading->what, ask->number);

        read_tips(&read->work, pull, &read->tips);
        read->work.page = ask->page;
        read->work.paged = reading->is_paged;
        v3_work_read(&read->work, v3_work_text(&read->work, what), reading->func);
    }
    v3_ask_free(ask);
}

static void
read_pull(ApiCall *call, gint64 number, const Reading *reading)
{
    V3Ask *ask = v3_ask_of(call, number, resource, 200, NULL);

    if (ask == NULL)
        return;
    ask->more = reading;
    thread_get(call->api->forge, ask->repo, ask->number, "pull", on_pull, ask);
}

static void
list_files(ApiCall *call)
{
    static const Reading files = {"files", read_files, true};
    gint64 number;

    if (v3_param_int(call, "number", &number))
        read_pull(call, number, &files);
}

static void
list_commits(ApiCall *call)
{
    static const Reading commits = {"commits", read_commits, true};
    gint64 number;

    if (v3_param_int(call, "number", &number))
        read_pull(call, number, &commits);
}

/* ---- patches ---- */

static bool
make_text(GitRepo *git, PullRead *read, V3Media media, GError **error)
{
    const Tips *tips = &read->tips;

    return find_from(git, &read->work, &read->tips, error) &&
           v3_text_make(git, &read->work, media,
                        &(V3TextSpec){.old = tips->from, .new = tips->head, .without = tips->from}, error);
}

static bool
make_diff(GitRepo *git, void *data, GError **error)
{
    return make_text(git, data, V3_DIFF, error);
}

static bool
make_patch(GitRepo *git, void *data, GError **error)
{
    return make_text(git, data, V3_PATCH, error);
}

void
v3_pull_patches(ApiCall *call, gint64 number, V3Media media)
{
    static const Reading diff = {"diff", make_diff}, patch = {"patches", make_patch};

    read_pull(call, number, media == V3_PATCH ? &patch : &diff);
}

const ApiRoute v3_pull_git_routes[] = {
    {"GET", V3_REPO "/pulls/{number}/files", SCOPE_READ, ROUTE_BASIC, list_files},
    {"GET", V3_REPO "/pulls/{number}/commits", SCOPE_READ, ROUTE_BASIC, list_commits},
    {NULL},
};
