/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "json/json.h"

/* The text of room_plan_text(), of {task, plan (or null), steps, agents, messages, now_us}: rows by their
 * columns' names.  Pure. */
char *plan_text_format(const Json *facts);
