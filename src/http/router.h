/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* A table of method + pattern -> row number.
 *
 * Patterns are whole segments: "/a/{id}/b".  "{name}" matches exactly one non-empty segment,
 * "{name...}" at the end matches the rest (one segment or more).  A literal beats a
 * parameter, which beats a rest; a branch that leads nowhere gives way to the next.  The
 * pattern is chosen by the path alone, then the method is looked up in it: HEAD is matched as
 * GET where HEAD has no row.
 *
 * Paths are split at raw slashes first and decoded after, so "%2F" stays inside its segment
 * (in a rest it reads as a slash).  A segment is ROUTE_BAD when it is empty, has a broken
 * escape or an encoded NUL, or is "." or ".."; a slash that was encoded does not hide one of
 * these two, nor an empty piece in a rest.  Values need not be UTF-8. */
typedef struct Router Router;

enum { ROUTE_PARAMS_MAX = 8 };

typedef enum RouteResult { ROUTE_FOUND, ROUTE_NO_PATH, ROUTE_NO_METHOD, ROUTE_BAD } RouteResult;

typedef struct RouteMatch {
    guint row; /* ROUTE_FOUND */
    guint n_params;
    const char *names[ROUTE_PARAMS_MAX]; /* borrowed from the router */
    char *values[ROUTE_PARAMS_MAX];      /* decoded */
    char *allow;                         /* ROUTE_NO_METHOD: "GET, HEAD, POST" */
} RouteMatch;

Router *router_new(void);
void router_free(Router *router);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Router, router_free)

/* Two rows for one method and pattern are our mistake and assert. */
void router_add(Router *router, const char *method, const char *pattern, guint row);

RouteResult
router_match(const Router *router, const char *method, const char *raw_path, RouteMatch *ret_match);
void route_match_clear(RouteMatch *match);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RouteMatch, route_match_clear)
/* NULL: the pattern has no such parameter. */
const char *route_match_param(const RouteMatch *match, const char *name);
