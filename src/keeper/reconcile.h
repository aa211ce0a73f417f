/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/cgroup-find.h"

typedef struct Keeper Keeper;

/* What a keeper that was killed has left: processes and groups below cgroups that carry our
 * instance's name, loop devices whose image lies in our state folder, folders and images in it.
 * Nothing else is touched.  May wait; for the start, before there is any box. */
bool reconcile_start(Keeper *keeper, const CgroupPlace *place, GError **error);

/* The same for what no live box holds, without waiting. */
void reconcile_again(Keeper *keeper);
