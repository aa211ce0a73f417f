/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"

/* Goes on with `func`, unless the body's `task_id` or `agent_id`, which say what something is for, is a row
 * of another key's: then 404 was answered. */
void call_check_claim(ApiCall *call, Json *body, CallBodyFunc func, void *data);
