/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "api/v3/render.h"

typedef enum Sort { SORT_CREATED, SORT_PUSHED, SORT_NAME } Sort;

typedef struct Listing {
    const char *owner; /* NULL: of all */
    GPtrArray *repos;  /* Repo*, borrowed for the call */
} Listing;

static void
collect(Repo *repo, void *data)
{
    Listing *l = data;
    RepoInfo info;

    repo_info(repo, &info);
    if (l->owner == NULL || g_ascii_strcasecmp(l->owner, info.owner) == 0)
        g_ptr_array_add(l->repos, repo);
}

static int
compare_infos(const RepoInfo *a, const RepoInfo *b, Sort sort)
{
    if (sort == SORT_PUSHED)
        return (a->pushed_us > b->pushed_us) - (a->pushed_us < b->pushed_us);
    if (sort == SORT_CREATED)
        return (a->number > b->number) - (a->number < b->number);
    int order = g_ascii_strcasecmp(a->owner, b->owner);

    return order != 0 ? order : g_ascii_strcasecmp(a->name, b->name);
}

typedef struct Order {
    Sort sort;
    bool descending;
} Order;

static int
compare_repos(gconstpointer a, gconstpointer b, gpointer data)
{
    const Order *order = data;
    RepoInfo x, y;

    repo_info(*(Repo *const *)a, &x);
    repo_info(*(Repo *const *)b, &y);
    int result = compare_infos(&x, &y, order->sort);

    return order->descending ? -result : result;
}

/* Names go up and times go down unless somebody says otherwise.  False: answered. */
static bool
read_order(ApiCall *call, Sort usual, Order *ret_order)
{
    static const struct {
        const char *name;
        Sort sort;
    } names[] = {{"created", SORT_CREATED},
                 {"updated", SORT_PUSHED},
                 {"pushed", SORT_PUSHED},
                 {"full_name", SORT_NAME}};
    g_autofree char *sort = NULL, *direction = NULL;

    if (!v3_query(call, "sort", &sort) || !v3_query(call, "direction", &direction))
        return false;
    ret_order->sort = usual;
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_strcmp0(sort, names[i].name) == 0)
            ret_order->sort = names[i].sort;
    }
    ret_order->descending = direction != NULL ? strcmp(direction, "desc") == 0 : ret_order->sort != SORT_NAME;
    return true;
}

static void
respond_list(ApiCall *call, const char *owner, Sort usual)
{
    g_autoptr(GPtrArray) repos = g_ptr_array_new();
    Listing listing = {owner, repos};
    Order order;
    ForgePage page;

    if (call_forge(call) == NULL || !read_order(call, usual, &order))
        return;
    forge_each(call->api->forge, collect, &listing);
    g_ptr_array_sort_with_data(repos, compare_repos, &order);
    v3_read_page(call, &page);
    Json *list = json_array();

    for (guint i = (page.page - 1) * page.per_page; i < repos->len && json_array_size(list) < page.per_page;
         i++) {
        g_auto(V3Place) place = {0};
        RepoInfo info;

        v3_place_init(&place, call->api, repos->pdata[i]);
        repo_info(repos->pdata[i], &info);
        json_array_append_new(list, v3_repository(&place, &info));
    }
    v3_link(call, &page, repos->len);
    v3_respond(call, 200, list);
}

static void
list_own(ApiCall *call)
{
    respond_list(call, NULL, SORT_NAME);
}

static void
list_of_owner(ApiCall *call)
{
    respond_list(call, call_param(call, "username"), SORT_CREATED);
}

const ApiRoute v3_repo_list_routes[] = {
    {"GET", V3 "/user/repos", SCOPE_READ, ROUTE_BASIC, list_own},
    {"GET", V3 "/users/{username}/repos", SCOPE_READ, ROUTE_BASIC, list_of_owner},
    {"GET", V3 "/orgs/{username}/repos", SCOPE_READ, ROUTE_BASIC, list_of_owner},
    {NULL},
};
