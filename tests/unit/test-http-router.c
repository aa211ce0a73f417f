/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "http/router.h"

typedef struct Rule {
    const char *method;
    const char *pattern;
} Rule;

static const Rule rules[] = {
    {"GET", "/"},
    {"GET", "/hello"},
    {"GET", "/health"},
    {"POST", "/sandbox/create"},
    {"POST", "/sandbox/{id}/execute"},
    {"GET", "/sandbox/{id}/status"},
    {"GET", "/sandbox/{id}"},
    {"DELETE", "/sandbox/{id}"},
    {"PUT", "/sandbox/{id}"},
    {"HEAD", "/own-head"},
    {"GET", "/own-head"},
    {"POST", "/only-post"},
    {"HEAD", "/only-head"},
    {"GET", "/repos/{owner}/{repo}/issues/{number}"},
    {"GET", "/repos/{owner}/{repo}/issues/comments/{comment}"},
    {"GET", "/repos/{owner}/{repo}/issues/{number}/comments"},
    {"POST", "/repos/{who}/{what}/issues/{n}/comments"},
    {"GET", "/repos/{owner}/{repo}/contents/{path...}"},
    {"GET", "/a/b/c/d"},
    {"GET", "/a/{x}/c/e"},
    {"GET", "/a/{x}/{y}/f"},
    {"GET", "/a/{rest...}"},
    {"GET", "/files/{path...}"},
    {"GET", "/v1.0/x..y/~a"},
    {"GET", "/{one}/{two}/{three}/{four}/{five}/{six}/{seven}/{eight}"},
};

static Router *
make_router(void)
{
    Router *router = router_new();

    for (guint i = 0; i < G_N_ELEMENTS(rules); i++)
        router_add(router, rules[i].method, rules[i].pattern, i);
    return router;
}

/* "name=value name=value" */
static char *
format_params(const RouteMatch *match)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < match->n_params; i++)
        g_string_append_printf(text, "%s%s=%s", i > 0 ? " " : "", match->names[i], match->values[i]);
    return g_string_free(text, FALSE);
}

static void
test_found(void)
{
    static const struct {
        const char *method, *path, *pattern, *params;
    } cases[] = {
        {"GET", "/", "/", ""},
        {"GET", "/hello", "/hello", ""},
        {"HEAD", "/hello", "/hello", ""},
        {"GET", "/%68ello", "/hello", ""},
        {"POST", "/sandbox/create", "/sandbox/create", ""},
        {"POST", "/sandbox/%63reate", "/sandbox/create", ""},
        {"GET", "/sandbox/creat", "/sandbox/{id}", "id=creat"},
        {"GET", "/sandbox/created", "/sandbox/{id}", "id=created"},
        {"GET", "/sandbox/x", "/sandbox/{id}", "id=x"},
        {"DELETE", "/sandbox/x", "/sandbox/{id}", "id=x"},
        {"GET", "/sandbox/x/status", "/sandbox/{id}/status", "id=x"},
        /* a literal that leads nowhere gives way */
        {"GET", "/sandbox/create/status", "/sandbox/{id}/status", "id=create"},
        {"POST", "/sandbox/create/execute", "/sandbox/{id}/execute", "id=create"},
        {"GET", "/repos/o/r/issues/7", "/repos/{owner}/{repo}/issues/{number}", "owner=o repo=r number=7"},
        {"GET", "/repos/o/r/issues/comments", "/repos/{owner}/{repo}/issues/{number}",
         "owner=o repo=r number=comments"},
        {"GET", "/repos/o/r/issues/comments/7", "/repos/{owner}/{repo}/issues/comments/{comment}",
         "owner=o repo=r comment=7"},
        {"GET", "/repos/o/r/issues/comments/comments", "/repos/{owner}/{repo}/issues/comments/{comment}",
         "owner=o repo=r comment=comments"},
        {"GET", "/repos/o/r/issues/7/comments", "/repos/{owner}/{repo}/issues/{number}/comments",
         "owner=o repo=r number=7"},
        {"POST", "/repos/o/r/issues/7/comments", "/repos/{who}/{what}/issues/{n}/comments",
         "who=o what=r n=7"},
        {"GET", "/a/b/c/d", "/a/b/c/d", ""},
        {"GET", "/a/b/c/e", "/a/{x}/c/e", "x=b"},
        {"GET", "/a/b/c/f", "/a/{x}/{y}/f", "x=b y=c"},
        {"GET", "/a/b/c/g", "/a/{rest...}", "rest=b/c/g"},
        {"GET", "/a/b/c", "/a/{rest...}", "rest=b/c"},
        {"GET", "/a/b/c/d/e", "/a/{rest...}", "rest=b/c/d/e"},
        {"GET", "/a/x", "/a/{rest...}", "rest=x"},
        {"GET", "/v1.0/x..y/~a", "/v1.0/x..y/~a", ""},
        {"GET", "/1/2/3/4/5/6/7/8", "/{one}/{two}/{three}/{four}/{five}/{six}/{seven}/{eight}",
         "one=1 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8"},

        {"GET", "/sandbox/a%20b", "/sandbox/{id}", "id=a b"},
        {"GET", "/sandbox/a+b", "/sandbox/{id}", "id=a+b"},
        {"GET", "/sandbox/a%2Fb", "/sandbox/{id}", "id=a/b"},
        {"GET", "/sandbox/a%2fstatus", "/sandbox/{id}", "id=a/status"},
        {"GET", "/sandbox/%2F", "/sandbox/{id}", "id=/"},
        {"GET", "/sandbox/%2Fetc", "/sandbox/{id}", "id=/etc"},
        {"GET", "/sandbox/%2525", "/sandbox/{id}", "id=%25"},
        {"GET", "/sandbox/%252e%252e", "/sandbox/{id}", "id=%2e%2e"},
        {"GET", "/sandbox/%FF", "/sandbox/{id}", "id=\xff"},
        {"GET", "/sandbox/a%3Fb%23c", "/sandbox/{id}", "id=a?b#c"},
        {"GET", "/sandbox/...", "/sandbox/{id}", "id=..."},
        {"GET", "/sandbox/.x", "/sandbox/{id}", "id=.x"},
        {"GET", "/sandbox/..x", "/sandbox/{id}", "id=..x"},
        {"GET", "/sandbox/x..", "/sandbox/{id}", "id=x.."},
        {"GET", "/sandbox/x%2F...%2Fy", "/sandbox/{id}", "id=x/.../y"},
        {"GET", "/sandbox/{id}", "/sandbox/{id}", "id={id}"},
        {"GET", "/files/a%20b/c", "/files/{path...}", "path=a b/c"},
        {"GET", "/files/a%2Fb/c", "/files/{path...}", "path=a/b/c"},
        {"GET", "/repos/o%2Fp/r/contents/src%2Fmain.c", "/repos/{owner}/{repo}/contents/{path...}",
         "owner=o/p repo=r path=src/main.c"},
    };
    g_autoptr(Router) router = make_router();

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(RouteMatch) match;

        g_test_message("%s %s", cases[i].method, cases[i].path);
        g_assert_cmpint(router_match(router, cases[i].method, cases[i].path, &match), ==, ROUTE_FOUND);
        g_autofree char *params = format_params(&match);

        g_assert_cmpstr(rules[match.row].pattern, ==, cases[i].pattern);
        g_assert_cmpstr(params, ==, cases[i].params);
        g_assert_null(match.allow);
        if (strcmp(cases[i].method, "HEAD") != 0)
            g_assert_cmpstr(rules[match.row].method, ==, cases[i].method);
    }
}

static void
test_not_found(void)
{
    static const struct {
        const char *path;
        RouteResult result;
    } cases[] = {
        /* prefixes, extensions, other case */
        {"/hell", ROUTE_NO_PATH},
        {"/hello2", ROUTE_NO_PATH},
        {"/hello-", ROUTE_NO_PATH},
        {"/hello.", ROUTE_NO_PATH},
        {"/hello%20", ROUTE_NO_PATH},
        {"/Hello", ROUTE_NO_PATH},
        {"/HELLO", ROUTE_NO_PATH},
        {"/h", ROUTE_NO_PATH},
        {"/hello/x", ROUTE_NO_PATH},
        {"/hello%2Fx", ROUTE_NO_PATH},
        {"/sandbox", ROUTE_NO_PATH},
        {"/sandboxes", ROUTE_NO_PATH},
        {"/sandbox%2Fcreate", ROUTE_NO_PATH},
        {"/sandbox%2Fx%2Fstatus", ROUTE_NO_PATH},
        {"/sandbox/x/stat", ROUTE_NO_PATH},
        {"/sandbox/x/Status", ROUTE_NO_PATH},
        {"/sandbox/x/status/y", ROUTE_NO_PATH},
        {"/sandbox/x/y/status", ROUTE_NO_PATH},
        {"/sandbox/x%2Fstatus/y", ROUTE_NO_PATH},
        {"/repos/o/r", ROUTE_NO_PATH},
        {"/repos/o/r/issues", ROUTE_NO_PATH},
        {"/repos/o/r/issues/7/commentsx", ROUTE_NO_PATH},
        {"/repos/o/r/issues/comments/7/x", ROUTE_NO_PATH},
        {"/repos/o/r/contents", ROUTE_NO_PATH},
        {"/files", ROUTE_NO_PATH},
        {"/a", ROUTE_NO_PATH},
        {"/v1x0/x..y/~a", ROUTE_NO_PATH},
        {"/1/2/3/4/5/6/7", ROUTE_NO_PATH},
        {"/1/2/3/4/5/6/7/8/9", ROUTE_NO_PATH},
        {"/*", ROUTE_NO_PATH},
        {"/%2A", ROUTE_NO_PATH},

        /* no path at all */
        {"", ROUTE_BAD},
        {"*", ROUTE_BAD},
        {"hello", ROUTE_BAD},
        {"http://host/hello", ROUTE_BAD},

        /* empty segments */
        {"//", ROUTE_BAD},
        {"///", ROUTE_BAD},
        {"//hello", ROUTE_BAD},
        {"/hello/", ROUTE_BAD},
        {"/hello//", ROUTE_BAD},
        {"/sandbox/", ROUTE_BAD},
        {"/sandbox//status", ROUTE_BAD},
        {"/sandbox/x/", ROUTE_BAD},
        {"/sandbox/x//status", ROUTE_BAD},
        {"/sandbox/%41/", ROUTE_BAD},
        {"/%41//b", ROUTE_BAD},
        {"/files/", ROUTE_BAD},
        {"/files/a/", ROUTE_BAD},
        {"/files//a", ROUTE_BAD},
        {"/files/a//b", ROUTE_BAD},
        {"/nowhere//x", ROUTE_BAD},

        /* dots */
        {"/.", ROUTE_BAD},
        {"/..", ROUTE_BAD},
        {"/./hello", ROUTE_BAD},
        {"/../hello", ROUTE_BAD},
        {"/hello/..", ROUTE_BAD},
        {"/x/../hello", ROUTE_BAD},
        {"/sandbox/.", ROUTE_BAD},
        {"/sandbox/..", ROUTE_BAD},
        {"/files/a/../b", ROUTE_BAD},
        {"/files/..", ROUTE_BAD},
        {"/%2e", ROUTE_BAD},
        {"/%2E%2e", ROUTE_BAD},
        {"/.%2e/hello", ROUTE_BAD},
        {"/%2e./hello", ROUTE_BAD},
        {"/sandbox/%2e%2e", ROUTE_BAD},
        {"/sandbox/%2e%2e/status", ROUTE_BAD},
        {"/files/a/%2e%2e/b", ROUTE_BAD},
        {"/nowhere/%2e%2e", ROUTE_BAD},
        /* and behind a slash that was encoded */
        {"/sandbox/..%2F", ROUTE_BAD},
        {"/sandbox/..%2Fx", ROUTE_BAD},
        {"/sandbox/x%2F..", ROUTE_BAD},
        {"/sandbox/x%2F..%2Fy", ROUTE_BAD},
        {"/sandbox/x%2F%2E%2E%2Fy", ROUTE_BAD},
        {"/sandbox/x%2F.%2Fy", ROUTE_BAD},
        {"/files/a%2F..%2Fb", ROUTE_BAD},
        {"/files/..%2F..%2Fetc", ROUTE_BAD},

        /* a rest has no empty pieces, however they were made */
        {"/files/%2Fetc/passwd", ROUTE_BAD},
        {"/files/a/%2Fetc", ROUTE_BAD},
        {"/files/a%2F/b", ROUTE_BAD},
        {"/files/a%2F%2Fb", ROUTE_BAD},
        {"/files/a%2F", ROUTE_BAD},
        {"/files/%2F", ROUTE_BAD},

        /* escapes */
        {"/%", ROUTE_BAD},
        {"/%4", ROUTE_BAD},
        {"/%4/1", ROUTE_BAD},
        {"/hello%", ROUTE_BAD},
        {"/hello%4", ROUTE_BAD},
        {"/hello%zz", ROUTE_BAD},
        {"/hello%4z", ROUTE_BAD},
        {"/hello%%41", ROUTE_BAD},
        {"/hello%+1", ROUTE_BAD},
        {"/hello%00", ROUTE_BAD},
        {"/%00", ROUTE_BAD},
        {"/sandbox/a%00b", ROUTE_BAD},
        {"/sandbox/x/%zz", ROUTE_BAD},
    };
    g_autoptr(Router) router = make_router();

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(RouteMatch) match;

        g_test_message("%s", cases[i].path);
        g_assert_cmpint(router_match(router, "GET", cases[i].path, &match), ==, cases[i].result);
        g_assert_cmpuint(match.n_params, ==, 0);
        g_assert_null(match.allow);
    }
}

static void
test_methods(void)
{
    static const struct {
        const char *method, *path, *allow;
    } cases[] = {
        {"POST", "/hello", "GET, HEAD"},
        {"get", "/hello", "GET, HEAD"},
        {"GE", "/hello", "GET, HEAD"},
        {"GETS", "/hello", "GET, HEAD"},
        {"", "/hello", "GET, HEAD"},
        {"OPTIONS", "/hello", "GET, HEAD"},
        {"POST", "/", "GET, HEAD"},
        {"POST", "/sandbox/x", "DELETE, GET, HEAD, PUT"},
        {"POST", "/own-head", "GET, HEAD"},
        {"GET", "/only-post", "POST"},
        {"HEAD", "/only-post", "POST"},
        {"GET", "/only-head", "HEAD"},
        {"DELETE", "/repos/o/r/issues/7/comments", "GET, HEAD, POST"},
        {"POST", "/files/a/b", "GET, HEAD"},
        /* the path alone chooses the pattern: the parameter's methods are not borrowed */
        {"GET", "/sandbox/create", "POST"},
        {"DELETE", "/sandbox/create", "POST"},
        {"HEAD", "/sandbox/create", "POST"},
    };
    g_autoptr(Router) router = make_router();

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(RouteMatch) match;

        g_test_message("%s %s", cases[i].method, cases[i].path);
        g_assert_cmpint(router_match(router, cases[i].method, cases[i].path, &match), ==, ROUTE_NO_METHOD);
        g_assert_cmpstr(match.allow, ==, cases[i].allow);
        g_assert_cmpuint(match.n_params, ==, 0);
    }
    g_auto(RouteMatch) head;

    g_assert_cmpint(router_match(router, "HEAD", "/own-head", &head), ==, ROUTE_FOUND);
    g_assert_cmpstr(rules[head.row].method, ==, "HEAD");
}

static void
test_params(void)
{
    g_autoptr(Router) router = make_router();
    g_auto(RouteMatch) match;

    g_assert_cmpint(router_match(router, "GET", "/repos/o/r/issues/7", &match), ==, ROUTE_FOUND);
    g_assert_cmpstr(route_match_param(&match, "owner"), ==, "o");
    g_assert_cmpstr(route_match_param(&match, "number"), ==, "7");
    g_assert_null(route_match_param(&match, "own"));
    g_assert_null(route_match_param(&match, "owners"));
    g_assert_null(route_match_param(&match, ""));
    route_match_clear(&match);
    g_assert_null(route_match_param(&match, "owner"));
}

/* More segments than any pattern has, and a table that invites a search to go astray. */
static void
test_bounds(void)
{
    g_autoptr(Router) router = router_new();
    g_autoptr(GString) deep = g_string_new(NULL);

    router_add(router, "GET", "/a/{p}/a/{q}/a/{r}/a/{s}/end", 0);
    router_add(router, "GET", "/{p}/a/{q}/a/{r}/a/{s}/a/end", 1);
    router_add(router, "GET", "/{rest...}", 2);
    for (guint i = 0; i < 4000; i++)
        g_string_append(deep, "/a");
    g_auto(RouteMatch) match;

    g_assert_cmpint(router_match(router, "GET", deep->str, &match), ==, ROUTE_FOUND);
    g_assert_cmpuint(match.row, ==, 2);
    g_assert_cmpstr(match.values[0], ==, deep->str + 1);
    route_match_clear(&match);

    g_assert_cmpint(router_match(router, "GET", "/a/a/a/a/a/a/a/a/end", &match), ==, ROUTE_FOUND);
    g_assert_cmpuint(match.row, ==, 0);
    route_match_clear(&match);
    g_assert_cmpint(router_match(router, "GET", "/b/a/a/a/a/a/a/a/end", &match), ==, ROUTE_FOUND);
    g_assert_cmpuint(match.row, ==, 1);
    route_match_clear(&match);

    g_string_append(deep, "/..");
    g_assert_cmpint(router_match(router, "GET", deep->str, &match), ==, ROUTE_BAD);
    g_string_truncate(deep, deep->len - 2);
    g_string_append(deep, "%41");
    g_assert_cmpint(router_match(router, "GET", deep->str, &match), ==, ROUTE_FOUND);
    g_assert_true(g_str_has_suffix(match.values[0], "/a/A"));
}

static void
test_many_names(void)
{
    g_autoptr(Router) router = router_new();

    /* In an order that is not the sorted one. */
    for (guint i = 0; i < 500; i++) {
        g_autofree char *pattern = g_strdup_printf("/n%u", (i * 7919) % 500);

        router_add(router, "GET", pattern, (i * 7919) % 500);
    }
    for (guint i = 0; i < 600; i++) {
        g_autofree char *path = g_strdup_printf("/n%u", i);
        g_auto(RouteMatch) match;
        RouteResult result = router_match(router, "GET", path, &match);

        g_assert_cmpint(result, ==, i < 500 ? ROUTE_FOUND : ROUTE_NO_PATH);
        g_assert_cmpuint(match.row, ==, i < 500 ? i : 0);
    }
}

/* Each of these is a mistake in a route table, found when the program starts. */
static const char *const bad_patterns[] = {
    "",       "hello",     "/hello/",
    "//",     "/a//b",     "/{}",
    "/{a",    "/a}",       "/{a}b",
    "/x{a}",  "/{a...}/b", "/{a...}/{b}",
    "/{...}", "/{a}/{a}",  "/{a}/{a...}",
    "/%41",   "/a?b",      "/a b",
    "/{a.b}", "/{a}{b}",   "/1/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}",
};

static void
test_bad_pattern(gconstpointer pattern)
{
    if (g_test_subprocess()) {
        g_autoptr(Router) router = router_new();

        router_add(router, "GET", pattern, 0);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*assertion failed*");
}

static void
test_duplicate(void)
{
    if (g_test_subprocess()) {
        g_autoptr(Router) router = router_new();

        router_add(router, "GET", "/a/{x}", 0);
        router_add(router, "POST", "/a/{y}", 1);
        router_add(router, "GET", "/a/{z}", 2);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*assertion failed*");
}

/* With -m perf.  A match is on the way of every request: a microsecond is the most it may take. */
static void
test_speed(void)
{
    enum { ROUTES = 300, ROUNDS = 200000 };
    g_autoptr(Router) router = router_new();

    for (guint i = 0; i < ROUTES; i++) {
        g_autofree char *pattern = i % 2 == 0 ? g_strdup_printf("/api/v1/section%u/part/item%u", i % 20, i)
                                              : g_strdup_printf("/api/v1/section%u/{id}/item%u", i % 20, i);

        router_add(router, "GET", pattern, i);
    }
    static const char *const paths[] = {"/api/v1/section8/part/item48", "/api/v1/section7/0123456789/item47"};

    for (size_t k = 0; k < G_N_ELEMENTS(paths); k++) {
        gint64 start = g_get_monotonic_time();

        for (guint i = 0; i < ROUNDS; i++) {
            g_auto(RouteMatch) match;

            g_assert_cmpint(router_match(router, "GET", paths[k], &match), ==, ROUTE_FOUND);
        }
        double ns = (double)(g_get_monotonic_time() - start) * 1000 / ROUNDS;

        g_test_minimized_result(ns, "%s: %.0f ns", paths[k], ns);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http/router/found", test_found);
    g_test_add_func("/http/router/not-found", test_not_found);
    g_test_add_func("/http/router/methods", test_methods);
    g_test_add_func("/http/router/params", test_params);
    g_test_add_func("/http/router/bounds", test_bounds);
    g_test_add_func("/http/router/many-names", test_many_names);
    g_test_add_func("/http/router/duplicate", test_duplicate);
    for (size_t i = 0; i < G_N_ELEMENTS(bad_patterns); i++) {
        g_autofree char *name = g_strdup_printf("/http/router/bad-pattern/%zu", i);

        g_test_add_data_func(name, bad_patterns[i], test_bad_pattern);
    }
    if (g_test_perf())
        g_test_add_func("/http/router/speed", test_speed);
    return g_test_run();
}
