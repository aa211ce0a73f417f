/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "box/box.h"

/* The owner of the boxes this caller sees: its key's id, NULL: everybody's (admin, the control
 * socket).  What others own does not exist for it. */
const char *caller_owner(const Caller *caller);

/* False: answered, since this server has no boxes. */
bool call_has_boxes(ApiCall *call);
/* Nothing is answered when there is none. */
Box *call_find_box(ApiCall *call);
/* The live box that {id} of the route names.  NULL: answered, 404 or 503.  Borrowed: take a
 * reference across the loop. */
Box *call_box(ApiCall *call);

/* The row of a box, ended or not, that {id} names; `row` NULL: answered. */
typedef void (*BoxRowFunc)(ApiCall *call, Json *row, void *data);
void call_box_row(ApiCall *call, BoxRowFunc func, void *data);
