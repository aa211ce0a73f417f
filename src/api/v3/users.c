/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "api/v3/render.h"
#include "base/clock.h"
#include "base/err.h"
#include "forge/people.h"

/* ---- people ---- */

typedef struct Look {
    ApiCall *call;
    char *login; /* a login, or an actor */
    Json *person;
} Look;

static bool
look_up(DbTx *tx, void *data, GError **error)
{
    Look *look = data;
    g_autoptr(People) people = people_new(tx);
    g_autofree char *actor = people_find(people, look->login, error);

    if (actor == NULL)
        return false;
    g_clear_pointer(&look->person, json_decref);
    look->person = people_json(people, actor, error);
    return look->person != NULL;
}

static void
on_looked(void *data, const GError *error)
{
    Look *look = data;
    g_auto(V3Place) place = {0};

    if (error != NULL && err_kind(error) == ERR_INVALID) {
        respond_error(look->call->request, 404, error->message);
        return;
    }
    if (error != NULL) {
        call_respond_error(look->call, error);
        return;
    }
    v3_place_init(&place, look->call->api, NULL);
    v3_respond(look->call, 200, v3_user(&place, look->person));
}

static void
look_free(gpointer data)
{
    Look *look = data;

    json_decref(look->person);
    g_free(look->login);
    http_request_unref(look->call->request);
    g_free(look);
}

static void
respond_person(ApiCall *call, const char *login)
{
    Look *look = g_new0(Look, 1);

    *look = (Look){.call = call, .login = g_strdup(login)};
    http_request_ref(call->request);
    db_read(call->api->db, look_up, on_looked, look, look_free);
}

static void
get_user(ApiCall *call)
{
    respond_person(call, call->caller.actor);
}

/* ---- owners ---- */

typedef struct OwnerSearch {
    const char *login;
    char *owner; /* as it is written; NULL: none yet */
} OwnerSearch;

static void
match_owner(Repo *repo, void *data)
{
    OwnerSearch *search = data;
    RepoInfo info;

    repo_info(repo, &info);
    if (search->owner == NULL && g_ascii_strcasecmp(info.owner, search->login) == 0)
        search->owner = g_strdup(info.owner);
}

static void
get_named(ApiCall *call)
{
    OwnerSearch search = {.login = call_param(call, "username")};
    g_auto(V3Place) place = {0};

    if (call_forge(call) == NULL)
        return;
    forge_each(call->api->forge, match_owner, &search);
    if (search.owner == NULL) {
        respond_person(call, search.login);
        return;
    }
    g_autofree char *owner = search.owner;

    v3_place_init(&place, call->api, NULL);
    v3_respond(call, 200, v3_owner(&place, owner));
}

/* ---- the rate ---- */

/* The bucket of the key: `limit` calls at once, full again at `reset`.  Who has no key has no bucket. */
static void
get_rate_limit(ApiCall *call)
{
    static const RateBucket full;
    const Key *key = caller_key(call->api, &call->caller);
    RateState state;

    rate_look(key != NULL ? &key->rate : &full, &call->api->rate, clock_mono_us(), &state);
    Json *core = json_pack("{s:i, s:i, s:i, s:I, s:s}", "limit", (int)state.limit, "remaining",
                           (int)state.remaining, "used", (int)(state.limit - state.remaining), "reset",
                           (json_int_t)(clock_wall_us() / G_USEC_PER_SEC + state.full_s), "resource", "core");

    v3_respond(call, 200, json_pack("{s:{s:O}, s:o}", "resources", "core", core, "rate", core));
}

const ApiRoute v3_users_routes[] = {
    {"GET", V3 "/user", SCOPE_READ, ROUTE_BASIC, get_user},
    {"GET", V3 "/users/{username}", SCOPE_READ, ROUTE_BASIC, get_named},
    {"GET", V3 "/orgs/{username}", SCOPE_READ, ROUTE_BASIC, get_named},
    {"GET", V3 "/rate_limit", SCOPE_READ, ROUTE_BASIC, get_rate_limit},
    {NULL},
};
