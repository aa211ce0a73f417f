/* SPDX-License-Identifier: Apache-2.0 */
#include "team/team-private.h"

struct Crew {
    Team *team;
};

Crew *
crew_new(Team *team)
{
    Crew *crew = g_new0(Crew, 1);

    crew->team = team;
    return crew;
}

void
crew_free(Crew *crew)
{
    g_free(crew);
}
