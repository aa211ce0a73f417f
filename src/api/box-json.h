/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "box/box.h"
#include "box/run.h"

/* Boxes and commands as the faces show them. */

/* A lease that stands for an Idempotency-Key is nobody's business. */
#define LEASE_OF_CALL "idempotency/"

/* The object of /api/v1/sandboxes. */
Json *box_describe(const Api *api, const Box *box);
/* The same out of a row of box_host_ended() or box_host_row(). */
Json *box_describe_row(const Api *api, Json *row);
/* The object of the service's face, out of one of the above. */
Json *box_describe_service(Json *sandbox, bool in_list);

/* Of a run that has ended. */
Json *run_end_describe(const Run *run);

/* `wall_us` 0: null. */
void json_set_time(Json *object, const char *name, gint64 wall_us);
