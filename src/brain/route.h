/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "brain/dialect.h"
#include "http/request.h"

/* What may be asked for: an exact table.  A path that no row names is not passed on, whatever
 * the provider has there. */
typedef enum RouteKind {
    ROUTE_CHAT,
    ROUTE_RESPONSES,
    ROUTE_EMBEDDINGS,
    ROUTE_MESSAGES,
    ROUTE_COUNT_TOKENS,
    ROUTE_MODELS,
    ROUTE_MODEL,
} RouteKind;

typedef struct Route {
    RouteKind kind;
    Dialect dialect;
    const char *method;
    const char *path;     /* at the door; of ROUTE_MODEL what stands before the name */
    const char *upstream; /* behind the provider's base URL */
    bool metered;         /* tokens are paid for */
    bool streams;
    StreamShape shape;
} Route;

enum { ROUTE_MODEL_NAME_MAX = 200 };

/* NULL: `*ret_fault` and `*ret_message` (static) say what to answer, in `*ret_dialect`. */
const Route *
route_find(HttpRequest *request, Dialect *ret_dialect, Fault *ret_fault, const char **ret_message);
/* The model of a ROUTE_MODEL's path, decoded; NULL: malformed. */
char *route_model(const Route *route, const char *path);
/* Letters, digits and "-._:/@+", no empty or dot segment: nothing that could change a path. */
bool route_model_is_plain(const char *model);
/* The query as it may be sent on, written anew; "" for none; NULL with ERR_INVALID. */
char *route_query(const Route *route, const char *query, GError **error);
