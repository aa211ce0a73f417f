/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/seal.h"
#include "forge/thread.h"
#include "team/team.h"

/* Tasks as people and faces see them.
 *
 *   queued -> planning -> approving -> preparing -> working -> reviewing -> landing -> done
 *      any of them -> blocked (with a question; back by an answer or a retry), failed, cancelled
 *
 * As JSON: the row's columns by name, `squad` {id, name}, `column` of the board
 * (backlog, in_progress, in_review, done), `progress` {done, total}, `waiting_for` (in words, or null);
 * task_get() adds `plan`, `steps`, `agents`, `questions`, `kept`, `totals`. */

enum {
    TASK_REQUEST_MAX = 32 * 1024, /* bytes */
    TASK_TITLE_MAX = 120,
    TASK_ANSWER_MAX = 16 * 1024,
    TASKS_QUEUED_MAX = 1000,
};

typedef struct TaskSpec {
    const char *actor, *owner;
    const char *source;     /* cli, api, chat, slack, n8n, demo */
    const char *request;    /* what is wanted, in words */
    const char *title;      /* NULL: made of the request */
    const char *squad;      /* id or name; NULL: the default one */
    const char *repository; /* "owner/name"; NULL: the squad's, or none; "": none */
    const char *base;       /* branch; NULL: the squad's, else the repository's default */
    const char *dedupe;     /* the same again is the same task; NULL: none */
    const char *reply;      /* where progress is posted to (hook.h); NULL: nowhere */
    const Seal *seal;       /* what that address is kept with; borrowed until the database is closed */
    Json *policy;           /* over the squad's config; NULL: as it is */
    Json *plan;             /* a person's; NULL: made */
} TaskSpec;
/* Answers with the task, which has its number and branch; `created` false in it: dedupe found it. */
void task_create(Team *team, const TaskSpec *spec, TeamJsonFunc done, void *data);

/* By UUID or number ("12", "#12"); `owner` NULL: anybody's. */
typedef struct TaskRef {
    const char *id, *owner, *actor;
} TaskRef;
void task_get(Team *team, const TaskRef *ref, TeamJsonFunc done, void *data);

typedef struct TaskFilter {
    const char *owner, *squad, *state; /* NULL: any */
    bool open;                         /* only those that have not ended */
    ForgePage page;
} TaskFilter;
void task_list(Team *team, const TaskFilter *filter, TeamJsonFunc done, void *data);

/* Ends its agents and boxes; answers with the task, cancelled.  One that has ended is answered as it is. */
void task_stop(Team *team, const TaskRef *ref, const char *reason, TeamJsonFunc done, void *data);
/* A blocked or failed one goes on from where it was. */
void task_retry(Team *team, const TaskRef *ref, TeamJsonFunc done, void *data);
/* `question` NULL: the only one that is open.  ERR_CONFLICT: it has an answer. */
void task_answer(Team *team, const TaskRef *ref, const char *question, const char *answer, TeamJsonFunc done,
                 void *data);
