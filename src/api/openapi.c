/* SPDX-License-Identifier: Apache-2.0 */
#include "api/assets.h"
#include "api/routes.h"
#include "http/assets.h"

static void
get_openapi(ApiCall *call)
{
    http_respond_asset(call->request, http_asset_find(api_assets, "/openapi.json"));
}

const ApiRoute openapi_routes[] = {
    {"GET", "/openapi.json", SCOPE_READ | SCOPE_BOX, 0, get_openapi},
    {NULL},
};
