/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "box/box.h"

/* The owner of the boxes this caller sees: its key's id, NULL: everybody's (admin, the control
 * socket).  What others own does not exist for it. */
const char *caller_owner(const Caller *caller);

/* The live box that {id} of the route names.  NULL: answered, 404 or 503.  Borrowed: take a
 * reference across the loop. */
Box *call_box(ApiCall *call);
