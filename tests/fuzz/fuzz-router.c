/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "http/router.h"

/* The input is "METHOD PATH", or a path for GET.  The router is held against a slow reading of
 * the same rules, and against itself: writing a byte as an escape changes nothing. */

typedef struct Rule {
    const char *method, *pattern;
} Rule;

static const Rule rules[] = {
    {"GET", "/"},
    {"GET", "/a"},
    {"POST", "/a"},
    {"GET", "/a/b"},
    {"GET", "/a/{x}"},
    {"DELETE", "/a/{y}"},
    {"GET", "/a/b/c"},
    {"GET", "/a/{x}/d"},
    {"PUT", "/{w}/b/{x}"},
    {"GET", "/{w}/{x}/e/{y}"},
    {"GET", "/f/{rest...}"},
    {"GET", "/f/b/{rest...}"},
    {"HEAD", "/f/b/{x}"},
    {"POST", "/f/{x}/c"},
    {"GET", "/g/{w}/{x}/{y}/{z}"},
};

static Router *
make_router(void)
{
    Router *router = router_new();

    for (guint i = 0; i < G_N_ELEMENTS(rules); i++)
        router_add(router, rules[i].method, rules[i].pattern, i);
    return router;
}

/* ---- the slow reading ---- */

static char *
join_rest(char **segments, guint from)
{
    return g_strjoinv("/", segments + from);
}

/* Decoded segments; NULL: a bad path. */
static char **
slow_split(const char *path)
{
    if (*path != '/')
        return NULL;
    g_auto(GStrv) raw = strcmp(path, "/") != 0 ? g_strsplit(path + 1, "/", -1) : g_new0(char *, 1);

    for (guint i = 0; raw[i] != NULL; i++) {
        g_autoptr(GBytes) bytes = g_uri_unescape_bytes(raw[i], -1, NULL, NULL);

        if (bytes == NULL || g_bytes_get_size(bytes) == 0)
            return NULL;
        gsize n;
        const char *text = g_bytes_get_data(bytes, &n);
        if (memchr(text, '\0', n) != NULL)
            return NULL;
        g_free(raw[i]);
        raw[i] = g_strndup(text, n);
        g_auto(GStrv) pieces = g_strsplit(raw[i], "/", -1);
        if (g_strv_contains((const char *const *)pieces, ".") ||
            g_strv_contains((const char *const *)pieces, ".."))
            return NULL;
    }
    return g_steal_pointer(&raw);
}

/* How well a pattern fits: a letter for each segment, the first in the alphabet is the best;
 * NULL: not at all. */
static char *
slow_rank(const char *pattern, char **segments)
{
    g_auto(GStrv) wanted = strcmp(pattern, "/") != 0 ? g_strsplit(pattern + 1, "/", -1) : g_new0(char *, 1);
    g_autoptr(GString) rank = g_string_new(NULL);
    guint i = 0;

    for (; wanted[i] != NULL; i++) {
        if (segments[i] == NULL)
            return NULL;
        if (g_str_has_suffix(wanted[i], "...}"))
            return g_strconcat(rank->str, "R", NULL);
        if (*wanted[i] != '{' && strcmp(wanted[i], segments[i]) != 0)
            return NULL;
        g_string_append_c(rank, *wanted[i] == '{' ? 'P' : 'L');
    }
    return segments[i] == NULL ? g_strdup(rank->str) : NULL;
}

static char *
best_rank(char **segments)
{
    char *best = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(rules); i++) {
        g_autofree char *rank = slow_rank(rules[i].pattern, segments);

        if (rank != NULL && (best == NULL || strcmp(rank, best) < 0)) {
            g_free(best);
            best = g_steal_pointer(&rank);
        }
    }
    return best;
}

/* The row of the best pattern for a method; -1: none. */
static int
slow_row(const char *best, char **segments, const char *method)
{
    for (guint i = 0; i < G_N_ELEMENTS(rules); i++) {
        g_autofree char *rank = slow_rank(rules[i].pattern, segments);

        if (strcmp(rules[i].method, method) == 0 && g_strcmp0(rank, best) == 0)
            return (int)i;
    }
    return -1;
}

static char *
slow_allow(const char *best, char **segments)
{
    static const char *const methods[] = {"DELETE", "GET", "HEAD", "POST", "PUT"};
    GString *allow = g_string_new("only ");

    for (guint i = 0; i < G_N_ELEMENTS(methods); i++) {
        bool as_get = strcmp(methods[i], "HEAD") == 0 && slow_row(best, segments, "GET") >= 0;

        if (as_get || slow_row(best, segments, methods[i]) >= 0)
            g_string_append_printf(allow, "%s%s", allow->len > 5 ? ", " : "", methods[i]);
    }
    return g_string_free(allow, FALSE);
}

/* What the router should say, as describe() puts it. */
static char *
slow_match(const char *method, const char *path)
{
    g_auto(GStrv) segments = slow_split(path);

    if (segments == NULL)
        return g_strdup("bad");
    g_autofree char *best = best_rank(segments);
    if (best == NULL)
        return g_strdup("no path");
    if (g_str_has_suffix(best, "R")) {
        g_autofree char *rest = join_rest(segments, (guint)strlen(best) - 1);
        g_auto(GStrv) pieces = g_strsplit(rest, "/", -1);

        if (g_strv_contains((const char *const *)pieces, ""))
            return g_strdup("bad");
    }
    int row = slow_row(best, segments, method);
    if (row < 0 && strcmp(method, "HEAD") == 0)
        row = slow_row(best, segments, "GET");
    if (row < 0)
        return slow_allow(best, segments);
    GString *said = g_string_new(NULL);

    g_string_printf(said, "row %d", row);
    for (guint i = 0; best[i] != '\0'; i++) {
        g_autofree char *value = best[i] == 'R' ? join_rest(segments, i) : g_strdup(segments[i]);

        if (best[i] != 'L')
            g_string_append_printf(said, " <%s>", value);
    }
    return g_string_free(said, FALSE);
}

/* ---- the router ---- */

static char *
describe(const Router *router, const char *method, const char *path)
{
    g_auto(RouteMatch) match;
    RouteResult result = router_match(router, method, path, &match);

    g_assert((match.allow != NULL) == (result == ROUTE_NO_METHOD));
    g_assert(result == ROUTE_FOUND || match.n_params == 0);
    if (result == ROUTE_BAD)
        return g_strdup("bad");
    if (result == ROUTE_NO_PATH)
        return g_strdup("no path");
    if (result == ROUTE_NO_METHOD)
        return g_strconcat("only ", match.allow, NULL);
    GString *said = g_string_new(NULL);

    g_string_printf(said, "row %u", match.row);
    for (guint i = 0; i < match.n_params; i++) {
        g_assert(route_match_param(&match, match.names[i]) == match.values[i]);
        g_string_append_printf(said, " <%s>", match.values[i]);
    }
    return g_string_free(said, FALSE);
}

/* The path with the byte at `cut` (FUZZ_EACH_BYTE: each) written as an escape, unless it is a
 * slash or belongs to an escape. */
static char *
escape_at(const char *path, size_t cut)
{
    GString *escaped = g_string_new(NULL);
    size_t in_escape = 0;

    for (size_t i = 0; path[i] != '\0'; i++) {
        in_escape = path[i] == '%' ? 3 : in_escape;
        if ((cut == i || cut == FUZZ_EACH_BYTE) && path[i] != '/' && in_escape == 0)
            g_string_append_printf(escaped, "%%%02x", (guint8)path[i]);
        else
            g_string_append_c(escaped, path[i]);
        in_escape -= in_escape > 0;
    }
    return g_string_free(escaped, FALSE);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    g_autoptr(Router) router = make_router();
    g_autofree char *text = fuzz_string(data, n);
    char *space = strchr(text, ' ');
    const char *method = space != NULL ? text : "GET";
    const char *path = space != NULL ? space + 1 : text;

    if (space != NULL)
        *space = '\0';
    g_autofree char *escaped = escape_at(path, cut);
    g_autofree char *said = describe(router, method, path);
    g_autofree char *said_escaped = describe(router, method, escaped);
    g_autofree char *wanted = slow_match(method, path);

    g_assert_cmpstr(said, ==, wanted);
    g_assert_cmpstr(said_escaped, ==, said);
}
