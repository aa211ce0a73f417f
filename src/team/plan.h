/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/task.h"

/* Plans.  One schema, whoever makes them:
 *
 *   {"project": "…", "summary": "…",
 *    "features": [{"name": "multiply", "title": "…", "acceptance": [{"name": "tests", "run": "npm test"}]}],
 *    "steps": [{"name": "multiply", "title": "…", "feature": "multiply", "role": "coder",
 *               "specialization": "backend", "depends": ["…"], "files": ["src/…"], "details": "…"}],
 *    "risks": ["…"], "minutes": 5}
 *
 * A step is one feature's work; without acceptance its checks are the repository's own.  Names are of
 * [a-z0-9-], unique; dependencies exist and have no cycle; everything is bounded and nothing unknown.  Texts
 * have no control characters but, in `summary` and `details`, newlines and tabs. */

enum {
    PLAN_FEATURES_MAX = 30,
    PLAN_STEPS_MAX = 30,
    PLAN_ACCEPTANCE_MAX = 10,
    PLAN_RISKS_MAX = 20,
    PLAN_FILES_MAX = 50,
    PLAN_PATH_MAX = 1024,
    PLAN_ACCEPTANCE_RUN_MAX = 1024,
    PLAN_WORD_MAX = 60,
    PLAN_TITLE_MAX = 200,
    PLAN_DETAILS_MAX = 8192,
    PLAN_BYTES_MAX = 64 * 1024,
    PLAN_MINUTES_MAX = 7 * 24 * 60,
    /* Where a plan has no estimate: of each step on the longest way, and of what comes after the last. */
    PLAN_STEP_MINUTES = 5,
    PLAN_END_MINUTES = 5,
};

/* Pure.  Returns the plan in its whole form, a new object; the error names the member.  What may be left
 * out, or null: summary, risks, minutes; features of which each step is one (a step's `feature` is that
 * of its name then), or steps of which each feature has one; all of a step but its name, all of a feature
 * but its name; the name of an acceptance check. */
Json *plan_check(Json *plan, GError **error);
/* The JSON object in what a model said: bare, or between fences, with words around it; the longest where
 * there are several. */
Json *plan_find(const char *text, GError **error);
/* For people, and the first commit: Markdown. */
char *plan_format(Json *plan, const char *request);

/* ---- making them ---- */

/* Makes one for the task as its policy says: brain or council (with their fall-back); the row of the
 * plan and its voices say how far it is, so that after a kill only what is missing is asked again.  `done`
 * with the row of the plan, draft; or an error that says what to do.  One at a time for a task. */
void plan_make(Team *team, const char *task_id, TeamJsonFunc done, void *data);
void plan_cancel(Team *team, const char *task_id);

/* By a person: the task's newest from then on, approved.  ERR_CONFLICT: the work has begun. */
void plan_put(Team *team, const TaskRef *ref, Json *body, TeamJsonFunc done, void *data);
void plan_approve(Team *team, const TaskRef *ref, TeamJsonFunc done, void *data);
/* The newest, with `voices` and `text` (plan_format()). */
void plan_get(Team *team, const TaskRef *ref, TeamJsonFunc done, void *data);
