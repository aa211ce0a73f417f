/* SPDX-License-Identifier: Apache-2.0 */
/* Every route has a rule.  What is open to everybody stands here a second time, so that it
 * is opened by two changes and not by one flag. */
#include <string.h>

#include "api/routes.h"
#include "api/state.h"

static const char *const public_routes[] = {
    "GET /",
    "GET /app.js",
    "GET /style.css",
    "GET /favicon.svg",
    "GET /docs/github-api.md",
    "GET /health",
    "POST /api/v1/session", /* takes a one-time ticket */
    "POST /webhooks/github",
    "POST /slack/commands", /* checks a signature */
};

static void
each_route(void (*each)(const ApiRoute *route, GHashTable *seen), GHashTable *seen)
{
    for (const ApiRoute *const *table = api_route_tables(); *table != NULL; table++) {
        for (const ApiRoute *r = *table; r->method != NULL; r++)
            each(r, seen);
    }
}

static char *
name_of(const ApiRoute *r)
{
    return g_strdup_printf("%s %s", r->method, r->pattern);
}

static void
check_rule(const ApiRoute *r, GHashTable *seen)
{
    const Scopes known = SCOPE_READ | SCOPE_BOX | SCOPE_ADMIN;
    bool is_public = (r->flags & ROUTE_PUBLIC) != 0;
    g_autofree char *name = name_of(r);

    g_test_message("%s", name);
    g_assert_nonnull(r->handle);
    g_assert_true(is_public == (r->scopes == 0));
    g_assert_cmpuint(r->scopes & ~known, ==, 0);
    g_assert_cmpuint(r->flags & ~(unsigned)(ROUTE_PUBLIC | ROUTE_STREAM | ROUTE_BOX | ROUTE_BASIC), ==, 0);
    g_assert_true(g_hash_table_add(seen, g_steal_pointer(&name)));
}

static void
test_rules(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    each_route(check_rule, seen);
    g_assert_cmpuint(g_hash_table_size(seen), >, G_N_ELEMENTS(public_routes));
}

static void
collect_public(const ApiRoute *r, GHashTable *seen)
{
    if ((r->flags & ROUTE_PUBLIC) != 0)
        g_hash_table_add(seen, name_of(r));
}

static void
test_public(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    each_route(collect_public, seen);
    for (size_t i = 0; i < G_N_ELEMENTS(public_routes); i++) {
        g_test_message("%s", public_routes[i]);
        g_assert_true(g_hash_table_remove(seen, public_routes[i]));
    }
    g_assert_cmpuint(g_hash_table_size(seen), ==, 0);
}

/* What changes something is nothing a key that may only read can do; closing its own session
 * is, and a fetch, which asks by a body. */
static void
check_writes(const ApiRoute *r, GHashTable *seen)
{
    g_autofree char *name = name_of(r);
    bool reads = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;

    g_test_message("%s", name);
    g_assert_true(reads || (r->scopes & SCOPE_READ) == 0 || strcmp(name, "DELETE /api/v1/session") == 0 ||
                  strcmp(name, "POST /git/{owner}/{repo}/git-upload-pack") == 0);
}

static void
test_writes(void)
{
    each_route(check_writes, NULL);
}

/* The description that the walk over all routes reads must not leave out a row. */
static void
test_description(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(Json) list = api_describe_routes();
    size_t i;
    Json *row;

    each_route(check_rule, seen);
    json_array_foreach(list, i, row)
    {
        g_autofree char *name = g_strdup_printf("%s %s", json_string_value(json_object_get(row, "method")),
                                                json_string_value(json_object_get(row, "pattern")));
        bool is_public = json_is_true(json_object_get(row, "public"));

        g_assert_true(g_hash_table_remove(seen, name));
        g_assert_true(is_public == (json_string_length(json_object_get(row, "scopes")) == 0));
    }
    g_assert_cmpuint(g_hash_table_size(seen), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/routes/rules", test_rules);
    g_test_add_func("/routes/public", test_public);
    g_test_add_func("/routes/writes", test_writes);
    g_test_add_func("/routes/description", test_description);
    return g_test_run();
}
