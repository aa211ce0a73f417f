/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/team-private.h"

/* What a repository asks of the squads that work on it, in its coop.yaml:
 *
 *     team:
 *       planner: council
 *       until: reviewed
 *       rounds: 2
 *       roles:
 *         - name: coder                  # one that there is, of this specialisation alone
 *           specialization: frontend
 *           prompt: Use the components of src/ui.
 *         - name: poet                   # a new one; steps of a plan can have it
 *           archetype: coder
 *           template: python-3.11
 *           brain: groq/llama-3.3-70b    # one that the squad has
 *           tools: [read, write, edit, test, commit, done]
 *           limits: {turns: 50, seconds: 900}
 *       members:                         # as in the file of a squad; here they take the places of its
 * members
 *         - role: coder
 *           specialization: payments
 *           llm_provider: groq
 *           llm_model: llama-3.3-70b
 *           system_prompt: Amounts are whole cents.
 *
 * The first part is a squad's config, below what the squad itself and the request say.  Nothing of it is run
 * by us, and nothing is more than what the server and the squad give: a repository may not decide what is
 * spent or kept (budget, council, chairman and keep are refused), may not choose the program of an agent or a
 * brain that the squad has not, and its limits and tools only take away.  Its members are members of the
 * squad with other words: each takes the place, the name and the identity of one who works as the same
 * archetype, and archetypes that it does not name stay as they are, so nobody is added or sent home. */

enum { REPO_ROLES_MAX = 20 };

/* Pure.  {"config": {…}, "roles": [{"name", "archetype", "specialization"?, "template"?, "llm_provider"?,
 * "llm_model"?, "prompt", "tools"?, "turns", "seconds", "context_tokens"}], "members": [{"line", "fields"}]},
 * the last not looked at yet; NULL without an error: the file says nothing of it. */
Json *repo_file_parse(const char *text, size_t len, GError **error);

/* The file of a branch (NULL: the default one); all are empty where there is none.  ERR_INVALID: there is
 * something wrong with it.  `done` may run inside the call. */
void repo_file_read(Team *team, const char *repository_id, const char *branch, TeamJsonFunc done, void *data);

/* ---- members (repo-members.c) ---- */

/* On the loop: `fields` of each become what member_prepare() makes of them, without what was not said.
 * ERR_INVALID: what no repository may have. */
bool repo_members_check(Team *team, Json *file, GError **error);
/* Pure.  Each gets the place of one of the squad: "members" are then those `fields`, with the `id` of that
 * one.  ERR_INVALID: there is no place, or nobody in the squad has such a brain or adapter. */
bool repo_members_seat(Json *file, const Json *squad, GError **error);
/* Pure.  The squad as the file (NULL: none) would have it: rows of members, those whose place was taken with
 * what the file says of them, and that itself as `asked`. */
Json *repo_members_over(const Json *file, const Json *squad);

/* Brains cost money: those of the squad are all there are.  `asks` names none, or one of theirs. */
bool repo_has_brain(const Json *squad, const Json *asks);
/* A template with rules of its own at the door is a squad's to choose.  `who` asks for it, or NULL. */
bool repo_may_use(const TeamSpec *spec, const char *who, const char *template, GError **error);
/* The archetype of a role of the file; NULL: it has none of that name. */
const char *repo_role_archetype(const Json *file, const char *role);
