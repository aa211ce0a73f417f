/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "forge/identity.h"
#include "http/request.h"

enum { REFERENCE_MAX = 200 };

static void
list_identities(ApiCall *call)
{
    Forge *forge = call_forge(call);

    if (forge != NULL)
        call_respond_json(call, 200, json_pack("{s:o}", "identities", identities_json(forge)));
}

static void
show_signers(ApiCall *call)
{
    Forge *forge = call_forge(call);

    if (forge == NULL)
        return;
    g_autofree char *text = identities_allowed_signers(forge);

    call_respond_json(call, 200, json_pack("{s:s}", "allowed_signers", text));
}

static void
show_identity(ApiCall *call)
{
    Forge *forge = call_forge(call);
    const Identity *who = forge != NULL ? identity_find(forge, call_param(call, "identity")) : NULL;

    if (who != NULL)
        call_respond_json(call, 200, identity_json(forge, who));
    else if (forge != NULL)
        respond_error(call->request, 404, "there is no such identity");
}

/* ---- making ---- */

/* A repository by its name, or "*". */
static bool
read_right(Forge *forge, Json *object, IdentityRight *ret_right, GError **error)
{
    const char *repository = NULL;
    const char *access = NULL;
    const JsonField fields[] = {
        {"repository", JSON_KIND_STRING, &repository, true, 1, 2 * REPO_NAME_MAX + 1},
        {"access", JSON_KIND_STRING, &access, true, 1, REFERENCE_MAX},
        {NULL},
    };
    g_autofree char *owner = NULL;
    g_autofree char *name = NULL;
    RepoInfo info;

    if (!json_is_object(object))
        return err_set(error, ERR_INVALID, "'rights' has something that is no object");
    if (!json_read(object, fields, error))
        return false;
    if (!identity_access_parse(access, &ret_right->access))
        return err_set(error, ERR_INVALID, "'access' is \"read\" or \"write\"");
    ret_right->repository = "*";
    if (strcmp(repository, "*") == 0)
        return true;
    if (!repo_name_split(repository, &owner, &name, error))
        return false;
    const Repo *repo = forge_find(forge, owner, name);

    if (repo == NULL)
        return err_set(error, ERR_NOT_FOUND, "there is no repository '%s'", repository);
    repo_info(repo, &info);
    ret_right->repository = info.id;
    return true;
}

static bool
read_rights(Forge *forge, Json *array, IdentityRight *rights, IdentitySpec *spec, GError **error)
{
    size_t i;
    Json *object;

    json_array_foreach(array, i, object)
    {
        if (!read_right(forge, object, &rights[i], error))
            return false;
    }
    spec->rights = array != NULL ? rights : NULL;
    spec->n_rights = array != NULL ? i : 0;
    return true;
}

static void
on_made(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, 201, json_incref(value));
    http_request_unref(call->request);
}

static void
create(ApiCall *call, Json *body, void *data)
{
    IdentitySpec spec = {.actor = call->caller.actor};
    IdentityRight rights[IDENTITY_RIGHTS_MAX];
    Json *list = NULL;
    const JsonField fields[] = {
        {"name", JSON_KIND_STRING, &spec.name, true, 1, IDENTITY_NAME_MAX},
        {"email", JSON_KIND_STRING, &spec.email, false, 3, IDENTITY_EMAIL_MAX},
        {"agent_id", JSON_KIND_STRING, &spec.agent_id, false, 1, REFERENCE_MAX},
        {"squad_id", JSON_KIND_STRING, &spec.squad_id, false, 1, REFERENCE_MAX},
        {"rights", JSON_KIND_ARRAY, &list, false, 0, IDENTITY_RIGHTS_MAX},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error) || !read_rights(call->api->forge, list, rights, &spec, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    identity_create(call->api->forge, &spec, on_made, call);
}

static void
post_identity(ApiCall *call)
{
    if (call_forge(call) != NULL)
        call_read_json(call, create, NULL);
}

static void
delete_identity(ApiCall *call)
{
    Forge *forge = call_forge(call);

    if (forge == NULL)
        return;
    http_request_ref(call->request);
    identity_revoke(forge, call_param(call, "identity"), call->caller.actor, call_on_json, call);
}

const ApiRoute identities_routes[] = {
    {"GET", "/api/v1/identities", SCOPE_READ, 0, list_identities},
    {"POST", "/api/v1/identities", SCOPE_ADMIN, 0, post_identity},
    {"GET", "/api/v1/identities/{identity}", SCOPE_READ, 0, show_identity},
    {"DELETE", "/api/v1/identities/{identity}", SCOPE_ADMIN, 0, delete_identity},
    {"GET", "/api/v1/allowed-signers", SCOPE_READ, 0, show_signers},
    {NULL},
};
