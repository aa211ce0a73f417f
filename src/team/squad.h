/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/thread.h"
#include "team/team.h"

/* Squads and their members.  As JSON: the rows' columns by name; a squad has `members` too.
 *
 * config of a squad (each may be set for one task too):
 *   planner: brain | council | person     approve: true (a person approves plans)
 *   until: tested | ready | reviewed | merged (the last rung)      pull_request: first | end
 *   branch: the pattern (workspace.h)     base: the branch that tasks start from and merge into
 *   merge: merge | squash | rebase        keep: files | box (of what failed)
 *   agents_per_task, tries, rounds, agent_s, turns: fewer or more than usual, within bounds
 *   council: {seats: [{provider, model}…], quorum, timeout_s, usd}
 *   budget: {tokens, usd, calls}
 *   chairman: {provider, model} */

enum {
    SQUAD_NAME_MAX = 60,
    SQUAD_TEXT_MAX = 4096,
    SQUAD_PROMPT_MAX = 32 * 1024,
    SQUAD_CONFIG_MAX = 16 * 1024,
    SQUAD_MEMBERS_MAX = 50,
    SQUADS_MAX = 1000,
};

/* NULL members: absent, or with squad_edit() as they were. */
typedef struct SquadSpec {
    const char *actor, *owner;
    const char *id; /* of squad_edit(), squad_remove(): UUID or name */
    const char *name, *description, *status, *org_id;
    const char *repository; /* "owner/name"; "": none */
    Json *config;           /* an object */
    Json *members;          /* of squad_create(): list of member objects; NULL: the usual five */
} SquadSpec;
void squad_create(Team *team, const SquadSpec *spec, TeamJsonFunc done, void *data);
void squad_edit(Team *team, const SquadSpec *spec, TeamJsonFunc done, void *data);
/* ERR_CONFLICT: it has tasks that go on.  Its identities are revoked, its hooks are gone. */
void squad_remove(Team *team, const SquadSpec *spec, TeamJsonFunc done, void *data);
void squad_get(Team *team, const char *id_or_name, const char *owner, TeamJsonFunc done, void *data);
/* Without its members; ERR_DENIED: it is the machine's. */
void
squad_get_to_change(Team *team, const char *id_or_name, const char *owner, TeamJsonFunc done, void *data);
void squad_list(Team *team, const char *owner, ForgePage page, TeamJsonFunc done, void *data);

/* `fields`: {name, role, specialization, llm_provider, llm_model, system_prompt, adapter, template, config,
 * is_active}; unknown ones are refused.  `member_id` NULL: a new one. */
typedef struct MemberSpec {
    const char *actor, *owner;
    const char *squad_id, *member_id;
    Json *fields; /* NULL: it is removed */
} MemberSpec;
void member_put(Team *team, const MemberSpec *spec, TeamJsonFunc done, void *data);

/* ---- roles (role.c) ---- */

/* A definition: templates/roles/NAME.yaml, or a squad's own.  Immutable. */
typedef struct Role {
    char *name;                           /* coder, reviewer, tester, planner, … */
    char *archetype;                      /* one of those four */
    char *specialization;                 /* NULL: none */
    char *template;                       /* NULL: the repository's, else the server's */
    char *adapter;                        /* "coop" */
    char *brain;                          /* "provider/model"; NULL: as usual */
    char *prompt;                         /* the system prompt's part for this role */
    char **tools;                         /* of coop-agent's; NULL: all that the archetype has */
    guint turns, seconds, context_tokens; /* 0: as usual */
} Role;
/* By any of its names ("backend_developer", "qa_tester"); the alias may give the specialisation, which
 * `*ret_specialization` (may be NULL) then is, borrowed.  NULL: nobody knows it, and coder is meant. */
const Role *team_role(Team *team, const char *name, const char **ret_specialization);
Json *team_roles_json(Team *team);
