/* SPDX-License-Identifier: Apache-2.0 */
/* The description that is served, and what is served, are the same. */
#include <glib.h>
#include <string.h>

#include "api/assets.h"
#include "api/state.h"
#include "store/events.h"
#include "json/json.h"

static Json *
load(void)
{
    const HttpAsset *asset = http_asset_find(api_assets, "/openapi.json");
    g_autoptr(GError) error = NULL;

    g_assert_nonnull(asset);
    Json *document = json_decode(asset->data, asset->size, &error);
    g_assert_no_error(error);
    return document;
}

static const ApiRoute *
find_route(const char *method, const char *path)
{
    for (const ApiRoute *const *table = api_route_tables(); *table != NULL; table++) {
        for (const ApiRoute *r = *table; r->method != NULL; r++) {
            if (g_ascii_strcasecmp(r->method, method) == 0 && strcmp(r->pattern, path) == 0)
                return r;
        }
    }
    return NULL;
}

static void
test_every_route_is_described(void)
{
    g_autoptr(Json) document = load();
    Json *paths = json_object_get(document, "paths");

    for (const ApiRoute *const *table = api_route_tables(); *table != NULL; table++) {
        for (const ApiRoute *r = *table; r->method != NULL; r++) {
            g_autofree char *method = g_ascii_strdown(r->method, -1);
            Json *operation = json_object_get(json_object_get(paths, r->pattern), method);

            g_test_message("%s %s", r->method, r->pattern);
            g_assert_nonnull(operation);
            /* "security": [] says that no key is needed. */
            bool open = json_object_get(operation, "security") != NULL;
            g_assert_true(open == ((r->flags & ROUTE_PUBLIC) != 0));
        }
    }
}

static void
test_every_description_is_a_route(void)
{
    g_autoptr(Json) document = load();
    const char *path, *method;
    Json *item, *operation;

    json_object_foreach(json_object_get(document, "paths"), path, item)
    {
        json_object_foreach(item, method, operation)
        {
            g_test_message("%s %s", method, path);
            g_assert_nonnull(find_route(method, path));
        }
    }
}

static void
test_event_kinds(void)
{
    g_autoptr(Json) document = load();
    Json *schemas = json_object_get(json_object_get(document, "components"), "schemas");
    Json *kinds = json_object_get(json_object_get(schemas, "EventKind"), "enum");
    size_t n = 0;

    for (const char *const *kind = event_kinds(); *kind != NULL; kind++, n++)
        g_assert_cmpstr(json_string_value(json_array_get(kinds, n)), ==, *kind);
    g_assert_cmpuint(json_array_size(kinds), ==, n);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/openapi/routes", test_every_route_is_described);
    g_test_add_func("/openapi/paths", test_every_description_is_a_route);
    g_test_add_func("/openapi/kinds", test_event_kinds);
    return g_test_run();
}
