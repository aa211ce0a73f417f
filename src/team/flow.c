/* SPDX-License-Identifier: Apache-2.0 */
#include "team/team-private.h"

struct Flow {
    Team *team;
};

Flow *
flow_new(Team *team)
{
    Flow *flow = g_new0(Flow, 1);

    flow->team = team;
    return flow;
}

void
flow_free(Flow *flow)
{
    g_free(flow);
}

void
flow_start(Flow *flow)
{
}

void
flow_wake(Flow *flow, const char *task_id)
{
}
