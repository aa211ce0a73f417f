/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "keeper/keeper.h"

/* All that a keeper has before it serves, from its settings: namespaces, state folder, ids, control
 * groups, devices and disks.  What an earlier one left behind is cleared away. */
bool keeper_open(Keeper *keeper, GError **error);
