/* SPDX-License-Identifier: Apache-2.0 */
#include "api/assets.h"
#include "api/routes.h"
#include "http/assets.h"

/* The files hold no data, so they need no key; what they show, they ask for. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types default";

static void
get_asset(ApiCall *call)
{
    HttpRequest *r = call->request;
    const HttpAsset *asset = http_asset_find(api_assets, call->route->pattern);

    g_assert(asset != NULL); /* each route below names one */
    http_response_header(r, "Content-Security-Policy", policy);
    http_response_header(r, "Cross-Origin-Opener-Policy", "same-origin");
    http_respond_asset(r, asset);
}

const ApiRoute page_routes[] = {
    {"GET", "/", 0, ROUTE_PUBLIC, get_asset},
    {"GET", "/app.js", 0, ROUTE_PUBLIC, get_asset},
    {"GET", "/style.css", 0, ROUTE_PUBLIC, get_asset},
    {"GET", "/favicon.svg", 0, ROUTE_PUBLIC, get_asset},
    {"GET", "/docs/github-api.md", 0, ROUTE_PUBLIC, get_asset},
    {NULL},
};
