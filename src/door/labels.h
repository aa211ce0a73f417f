/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "door/door.h"

/* Labels and limits as they stand in messages. */

/* Strings are borrowed from `object`. */
bool door_labels_read(Json *object, DoorLabels *ret, GError **error);
Json *door_labels_json(const DoorLabels *labels);

/* A bound that is not there stays what it is in `ret`. */
bool door_limits_read(Json *object, DoorLimits *ret, GError **error);
/* ERR_LIMIT: one is above `max`, where 0 is above everything.  Of `max` 0 is no maximum. */
bool door_limits_check(const DoorLimits *limits, const DoorLimits *max, GError **error);
/* What is above `max` becomes it. */
void door_limits_clamp(DoorLimits *limits, const DoorLimits *max);
Json *door_limits_json(const DoorLimits *limits);
