/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/team.h"

/* What somebody says that a box, or a pull request, is for.  Names are free, but for those of rows: what is
 * counted, limited and told under one of these is its owner's. */
typedef struct Claim {
    const char *owner;              /* who says so */
    const char *task_id, *agent_id; /* NULL: none; an agent's name or id, or a member's id */
} Claim;

/* ERR_NOT_FOUND: one of them is a row of somebody else's. */
void claim_check(Team *team, const Claim *claim, TeamJsonFunc done, void *data);
