/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"

#include "api/state.h"

static const ApiRoute *const tables[] = {
    health_routes, metrics_routes, stats_routes, events_routes, keys_routes, session_routes, NULL,
};

const ApiRoute *const *
api_route_tables(void)
{
    return tables;
}
