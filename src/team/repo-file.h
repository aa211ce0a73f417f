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
 *
 * The first part is a squad's config, below what the squad itself and the request say.  Nothing of it is run
 * by us, and nothing is more than what the server and the squad give: a repository may not decide what is
 * spent or kept (budget, council, chairman and keep are refused), may not choose the program of an agent or a
 * brain that the squad has not, and its limits and tools only take away. */

enum { REPO_ROLES_MAX = 20 };

/* Pure.  {"config": {…}, "roles": [{"name", "archetype", "specialization"?, "template"?, "llm_provider"?,
 * "llm_model"?, "prompt", "tools"?, "turns", "seconds", "context_tokens"}]}; NULL without an error: the file
 * says nothing of it. */
Json *repo_file_parse(const char *text, size_t len, GError **error);

/* The file of a branch (NULL: the default one); both are empty where there is none.  ERR_INVALID: there is
 * something wrong with it.  `done` may run inside the call. */
void repo_file_read(Team *team, const char *repository_id, const char *branch, TeamJsonFunc done, void *data);
