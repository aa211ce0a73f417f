/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/team-private.h"

/* Rows of squads and members, inside a job of the database. */

#define SQUAD_DEFAULT "default"

extern const RowTable squad_table;  /* "squads s" */
extern const RowTable member_table; /* "squad_members m" */

/* By UUID or name, not a removed one.  `owner` NULL: anybody's; else his own, or the machine's, which all
 * may use. */
Json *squad_row(RowJob *job, const char *id_or_name, const char *owner, GError **error);
/* One that this owner may change: ERR_DENIED for the machine's. */
Json *squad_row_to_change(RowJob *job, const char *id_or_name, const char *owner, GError **error);
/* In their order; inactive ones too. */
Json *squad_members(RowJob *job, const char *squad_id, GError **error);

/* A squad's config, or a task's policy: known and within bounds. */
bool squad_config_check(Json *config, GError **error);
/* `config` with the members of `over` (null: without it), checked; either may be NULL. */
Json *squad_config_over(const Json *config, const Json *over, GError **error);
/* Whether the policy of a task keeps what its squad demands: a person's approval, and a budget. */
bool squad_config_is_kept(const Json *config, const Json *policy, GError **error);

/* The squad that is there without being made. */
typedef struct SquadDefault {
    const char *provider, *model; /* NULL: as the rows say */
} SquadDefault;
bool squad_make_default(RowJob *job, const SquadDefault *spec, GError **error);
bool squad_add_usual_members(RowJob *job, const char *squad_id, const SquadDefault *spec, GError **error);
