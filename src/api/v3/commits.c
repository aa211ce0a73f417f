/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/routes.h"
#include "api/v3/render.h"
#include "api/v3/text.h"
#include "base/err.h"
#include "forge/compare.h"

static const char sha_type[] = "application/vnd.github.sha; charset=utf-8";

/* ---- lists ---- */

typedef struct CommitsWork {
    V3Work work;
    const char *ref, *path;
} CommitsWork;

static Json *
commits_json(const V3Place *place, const GPtrArray *commits)
{
    Json *list = json_array();

    for (guint i = 0; i < commits->len; i++)
        json_array_append_new(list, v3_commit(place, commits->pdata[i]));
    return list;
}

static bool
list_work(GitRepo *git, void *data, GError **error)
{
    CommitsWork *w = data;
    const ForgePage *page = &w->work.page;
    g_autofree char *head = v3_resolve(git, &w->work.place, w->ref, error);

    if (head == NULL)
        return false;
    const CommitRange range = {
        .head = head,
        .path = w->path,
        .skip = (page->page - 1) * page->per_page,
        .max = page->per_page,
    };
    g_autoptr(GPtrArray) commits = commit_list(git, &range, &w->work.more, error);

    if (commits == NULL)
        return false;
    w->work.value = commits_json(&w->work.place, commits);
    return true;
}

/* A list that leaves out nothing, where somebody asked for less, would be a wrong answer. */
static bool
refuse_filters(ApiCall *call)
{
    static const char *const names[] = {"author", "committer", "since", "until"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *value = NULL;

        if (!v3_query(call, names[i], &value))
            return false;
        if (value != NULL) {
            v3_respond_invalid(
                call, &(V3Invalid){"Commit", names[i], "unprocessable", "this filter is not known here"});
            return false;
        }
    }
    return true;
}

static void
list_commits(ApiCall *call)
{
    g_autofree char *ref = NULL, *path = NULL;

    if (!refuse_filters(call) || !v3_query(call, "sha", &ref) || !v3_query(call, "path", &path))
        return;
    CommitsWork *w = V3_WORK_NEW(CommitsWork, call);

    if (w == NULL)
        return;
    w->ref = v3_work_text(&w->work, ref);
    w->path = v3_work_text(&w->work, path);
    w->work.paged = true;
    v3_read_page(call, &w->work.page);
    v3_work_read(&w->work, "list commits", list_work);
}

/* ---- one ---- */

typedef struct CommitWork {
    V3Work work;
    const char *ref;
    V3Media media;
} CommitWork;

static Json *
files_json(const V3Place *place, const GPtrArray *files, const char *head)
{
    Json *list = json_array();

    for (guint i = 0; i < files->len; i++)
        json_array_append_new(list, v3_file(place, files->pdata[i], head));
    return list;
}

static bool
add_changes(GitRepo *git, CommitWork *w, const GitCommit *commit, GError **error)
{
    const ForgePage *page = &w->work.page;
    const DiffSpec spec = {
        .old = commit->parents[0],
        .new = commit->oid,
        .skip = (page->page - 1) * page->per_page,
        .max = page->per_page,
    };
    DiffTotals totals;
    g_autoptr(DiffPage) changes = diff_files(git, &spec, error);

    if (changes == NULL || !diff_totals(git, spec.old, spec.new, &totals, error))
        return false;
    w->work.more = changes->next != NULL;
    json_object_set_new(w->work.value, "stats",
                        json_pack("{s:I, s:I, s:I}", "total",
                                  (json_int_t)(totals.additions + totals.deletions), "additions",
                                  (json_int_t)totals.additions, "deletions", (json_int_t)totals.deletions));
    json_object_set_new(w->work.value, "files", files_json(&w->work.place, changes->files, commit->oid));
    return true;
}

static bool
get_work(GitRepo *git, void *data, GError **error)
{
    CommitWork *w = data;
    g_autoptr(GError) problem = NULL;
    g_autofree char *oid = v3_resolve(git, &w->work.place, w->ref, &problem);

    if (oid == NULL) {
        /* "main/pulls": what there is of commits on GitHub and not here. */
        if (err_kind(problem) == ERR_NOT_FOUND && strchr(w->ref, '/') == NULL)
            return err_set(error, ERR_INVALID, "No commit found for SHA: %s", w->ref);
        g_propagate_error(error, g_steal_pointer(&problem));
        return false;
    }
    if (w->media == V3_SHA) {
        w->work.type = sha_type;
        w->work.bytes = g_bytes_new(oid, strlen(oid));
        return true;
    }
    g_autoptr(GitCommit) commit = commit_read(git, oid, error);

    if (commit == NULL)
        return false;
    if (w->media == V3_DIFF || w->media == V3_PATCH)
        return v3_text_make(git, &w->work, w->media, &(V3TextSpec){.old = commit->parents[0], .new = oid},
                            error);
    w->work.value = v3_commit(&w->work.place, commit);
    return add_changes(git, w, commit, error);
}

static void
get_commit(ApiCall *call)
{
    CommitWork *w = V3_WORK_NEW(CommitWork, call);

    if (w == NULL)
        return;
    w->ref = call_param(call, "ref");
    w->media = v3_media(call);
    w->work.paged = w->media == V3_JSON;
    v3_read_page_of(call, DIFF_PAGE_MAX, &w->work.page);
    v3_work_read(&w->work, "show a commit", get_work);
}

static bool
get_git_work(GitRepo *git, void *data, GError **error)
{
    CommitWork *w = data;

    if (!git_oid_is_valid(w->ref))
        return err_set(error, ERR_NOT_FOUND, "this is no object's name");
    g_autoptr(GitCommit) commit = commit_read(git, w->ref, error);

    if (commit == NULL)
        return false;
    w->work.value = v3_git_commit(&w->work.place, commit);
    return true;
}

static void
get_git_commit(ApiCall *call)
{
    CommitWork *w = V3_WORK_NEW(CommitWork, call);

    if (w == NULL)
        return;
    w->ref = call_param(call, "sha");
    v3_work_read(&w->work, "show a commit", get_git_work);
}

/* ---- two ---- */

typedef struct CompareWork {
    V3Work work;
    const char *owner;
    char *base, *head; /* texts of the work */
    V3Media media;
} CompareWork;

/* "owner:branch" is a branch of another's copy; here everybody's is this one. */
static const char *
without_owner(const char *name, const char *owner)
{
    const char *colon = strchr(name, ':');
    size_t n = colon != NULL ? (size_t)(colon - name) : 0;

    return colon != NULL && n == strlen(owner) && g_ascii_strncasecmp(name, owner, n) == 0 ? colon + 1 : name;
}

static Json *
one_commit(GitRepo *git, const V3Place *place, const char *oid, GError **error)
{
    g_autoptr(GitCommit) commit = commit_read(git, oid, error);

    return commit != NULL ? v3_commit(place, commit) : NULL;
}

static bool
add_compared(GitRepo *git, CompareWork *w, const char *base, const char *head, const char *old,
             GError **error)
{
    const ForgePage *page = &w->work.page;
    const V3Place *place = &w->work.place;
    const CommitRange range = {.head = head,
                               .without = base,
                               .oldest_first = true,
                               .skip = (page->page - 1) * page->per_page,
                               .max = page->per_page};
    g_autoptr(GPtrArray) commits = commit_list(git, &range, &w->work.more, error);

    if (commits == NULL)
        return false;
    json_object_set_new(w->work.value, "commits", commits_json(place, commits));
    /* GitHub's first page has the files, and all of them that it has at all. */
    if (page->page > 1) {
        json_object_set_new(w->work.value, "files", json_array());
        return true;
    }
    const DiffSpec spec = {.old = old, .new = head};
    g_autoptr(DiffPage) changes = diff_files(git, &spec, error);

    if (changes == NULL)
        return false;
    json_object_set_new(w->work.value, "files", files_json(place, changes->files, head));
    return true;
}

static bool
compare_json(GitRepo *git, CompareWork *w, const char *base, const char *head, GError **error)
{
    const V3Place *place = &w->work.place;
    g_auto(Comparison) comparison = {0};

    if (!compare_commits(git, base, head, &comparison, error))
        return false;
    const char *old = comparison.merge_base != NULL ? comparison.merge_base : base;
    g_autoptr(Json) first = one_commit(git, place, base, error);
    g_autoptr(Json) common = first != NULL ? one_commit(git, place, old, error) : NULL;

    if (common == NULL)
        return false;
    g_autofree char *url = g_strdup_printf("%s/compare/%s...%s", place->api, base, head);

    w->work.value = json_pack("{s:s, s:s, s:O, s:O, s:s, s:i, s:i, s:i}", "url", url, "html_url", place->html,
                              "base_commit", first, "merge_base_commit", common, "status", comparison.status,
                              "ahead_by", (int)comparison.ahead, "behind_by", (int)comparison.behind,
                              "total_commits", (int)comparison.ahead);
    return add_compared(git, w, base, head, old, error);
}

static bool
compare_work(GitRepo *git, void *data, GError **error)
{
    CompareWork *w = data;
    const V3Place *place = &w->work.place;
    g_autofree char *base = v3_resolve(git, place, without_owner(w->base, w->owner), error);
    g_autofree char *head = base != NULL ? v3_resolve(git, place, without_owner(w->head, w->owner), error)
                                         : NULL;
    g_autofree char *common = NULL;

    if (head == NULL)
        return false;
    if (w->media != V3_DIFF && w->media != V3_PATCH)
        return compare_json(git, w, base, head, error);
    if (!commit_merge_base(git, base, head, &common, error))
        return false;
    return v3_text_make(git, &w->work, w->media,
                        &(V3TextSpec){.old = common != NULL ? common : base, .new = head, .without = base},
                        error);
}

static void
compare(ApiCall *call)
{
    const char *text = call_param(call, "basehead");
    const char *dots = strstr(text, "...");

    if (dots == NULL || dots == text || dots[3] == '\0') {
        respond_error(call->request, 404, "write BASE...HEAD");
        return;
    }
    CompareWork *w = V3_WORK_NEW(CompareWork, call);

    if (w == NULL)
        return;
    w->base = g_string_chunk_insert_len(w->work.texts, text, dots - text);
    w->head = g_string_chunk_insert(w->work.texts, dots + 3);
    w->owner = call_param(call, "owner");
    w->media = v3_media(call);
    w->work.paged = w->media == V3_JSON;
    v3_read_page_of(call, COMMIT_PAGE_MAX, &w->work.page);
    v3_work_read(&w->work, "compare commits", compare_work);
}

const ApiRoute v3_commits_routes[] = {
    {"GET", V3_REPO "/commits", SCOPE_READ, ROUTE_BASIC, list_commits},
    {"GET", V3_REPO "/commits/{ref...}", SCOPE_READ, ROUTE_BASIC, get_commit},
    {"GET", V3_REPO "/git/commits/{sha}", SCOPE_READ, ROUTE_BASIC, get_git_commit},
    {"GET", V3_REPO "/compare/{basehead...}", SCOPE_READ, ROUTE_BASIC, compare},
    {NULL},
};
