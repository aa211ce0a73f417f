/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/id.h"
#include "team/squad-private.h"

typedef enum MemberUse { MEMBER_NEW, MEMBER_CHANGED } MemberUse;

/* On the loop: what was said of a member, checked, with its archetype and what is usual where it is new; null
 * for what shall be none.  Names of members are columns. */
Json *member_prepare(Team *team, Json *given, MemberUse use, GError **error);
const char *member_provider(Team *team);
const char *member_model(Team *team);

/* In a job, with what was prepared. */
bool member_insert(RowJob *job, const char *squad_id, const Json *fields, char ret_id[ID_UUID_LEN + 1],
                   GError **error);
bool
member_update(RowJob *job, const char *squad_id, const char *member_id, const Json *fields, GError **error);

/* Members have identities, and those whose member is gone are revoked.  `squad_id` NULL: of all squads. */
void member_identities(Team *team, const char *squad_id, DbDone done, void *data);
