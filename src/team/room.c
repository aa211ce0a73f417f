/* SPDX-License-Identifier: Apache-2.0 */
#include "team/team-private.h"

struct Rooms {
    Team *team;
};

Rooms *
rooms_new(Team *team)
{
    Rooms *rooms = g_new0(Rooms, 1);

    rooms->team = team;
    return rooms;
}

void
rooms_free(Rooms *rooms)
{
    g_free(rooms);
}
