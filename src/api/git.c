/* SPDX-License-Identifier: Apache-2.0 */
/* Git's smart protocol: these four, and none of the files that older clients would ask for. */
#include <string.h>

#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "forge/identity.h"
#include "forge/smart.h"
#include "forge/workspace.h"

/* "name" and "name.git" are the same. */
static Repo *
find_repo(ApiCall *call)
{
    const char *name = call_param(call, "repo");
    size_t n = strlen(name) - (g_str_has_suffix(name, ".git") ? strlen(".git") : 0);
    g_autofree char *plain = g_strndup(name, n);

    return forge_find(call->api->forge, call_param(call, "owner"), plain);
}

static void
serve_person(ApiCall *call, SmartService service)
{
    Repo *repo = find_repo(call);
    const SmartCaller caller = {.actor = call->caller.actor, .may_advance = call_is_admin(call)};

    if (repo == NULL)
        respond_error(call->request, 404, "there is no such repository");
    else if (smart_service_writes(service) && !scopes_allow(call->caller.scopes, SCOPE_BOX))
        respond_error(call->request, 403, "this key may not push; it needs the scope box");
    else
        smart_serve(call->api->forge, repo, call->request, service, &caller);
}

/* Of all that it has, what the path names.  Where it has one only the path may say anything, also what the
 * repository was called before. */
static const Workspace *
find_workspace(ApiCall *call)
{
    Forge *forge = call->api->forge;
    Repo *named = find_repo(call);
    const Workspace *w = named != NULL ? workspace_find(forge, call->caller.box_id, named) : NULL;

    return w != NULL ? w : workspace_only(forge, call->caller.box_id);
}

/* False: answered. */
static bool
check_identity(ApiCall *call, const Workspace *w, const Repo *repo, SmartService service,
               const Identity **ret)
{
    Forge *forge = call->api->forge;
    const Identity *who = w->identity_id != NULL ? identity_find(forge, w->identity_id) : NULL;
    IdentityAccess needed = smart_service_writes(service) ? IDENTITY_WRITE : IDENTITY_READ;

    *ret = who;
    if (w->identity_id == NULL ||
        (who != NULL && who->revoked_us == 0 && identity_access(forge, who, repo) >= needed))
        return true;
    respond_error(call->request, 403, "the identity of this box may not do that in this repository");
    return false;
}

static void
serve_box(ApiCall *call, SmartService service)
{
    const Workspace *w = find_workspace(call);
    Repo *repo = w != NULL ? forge_find_id(call->api->forge, w->repository_id) : NULL;
    const Identity *who;

    if (repo == NULL) {
        respond_error(call->request, 404, "this box has no such repository");
        return;
    }
    if (!check_identity(call, w, repo, service, &who))
        return;
    g_autofree char *agent = who != NULL && who->agent_id != NULL ? g_strconcat("agent:", who->agent_id, NULL)
                                                                  : NULL;
    const SmartCaller caller = {.actor = agent != NULL ? agent : call->caller.actor,
                                .box_id = call->caller.box_id,
                                .branch = w->branch,
                                .may_force = w->may_force,
                                .may_advance = w->may_advance};

    smart_serve(call->api->forge, repo, call->request, service, &caller);
}

static void
serve(ApiCall *call, SmartService service)
{
    if (call_forge(call) == NULL)
        return;
    if (call->caller.kind == CALLER_BOX)
        serve_box(call, service);
    else
        serve_person(call, service);
}

static void
get_refs(ApiCall *call)
{
    SmartService service;

    if (smart_service_parse(http_request_query(call->request), &service))
        serve(call, service);
    else
        respond_error(call->request, 400,
                      "only git's smart protocol is spoken here: ?service=git-upload-pack or "
                      "?service=git-receive-pack");
}

static void
post_fetch(ApiCall *call)
{
    serve(call, SMART_FETCH);
}

static void
post_push(ApiCall *call)
{
    serve(call, SMART_PUSH);
}

const ApiRoute git_routes[] = {
    {"GET", "/git/{owner}/{repo}/info/refs", SCOPE_READ | SCOPE_BOX, ROUTE_BOX | ROUTE_BASIC, get_refs},
    {"POST", "/git/{owner}/{repo}/git-upload-pack", SCOPE_READ | SCOPE_BOX, ROUTE_BOX | ROUTE_BASIC,
     post_fetch},
    {"POST", "/git/{owner}/{repo}/git-receive-pack", SCOPE_BOX, ROUTE_BOX | ROUTE_BASIC, post_push},
    {NULL},
};
