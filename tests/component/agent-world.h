/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/spawn.h"
#include "http-fixture.h"
#include "http-script.h"
#include "json/json.h"

/* coop-agent as a program of its own, between a server that plays the face for agents and one that plays the
 * model.  The latter plays bytes, right or wrong: connection i is answer i. */
typedef struct AgentWorld {
    Fixture f;
    char *folder, *tree;
    Script *model;
    Json *brief;
    const char *dialect;

    /* What the face answers. */
    guint away;         /* so many calls are answered with 503 first */
    bool deaf;          /* reports are answered with 503 */
    bool mute;          /* reports are not answered at all */
    guint done_away;    /* so many reports of the end are answered with 503 */
    guint answer_after; /* looks for an answer that find none */
    int brief_status;   /* 0: 200 */

    /* What was heard. */
    Json *events, *posts, *questions;
    Json *done; /* the last; NULL: none */
    guint briefs, dones, reports, looks;

    Child *child;
    guint ended;
    ChildExit how;
    GPtrArray *held; /* requests that are not answered */
} AgentWorld;

void agent_world_init(AgentWorld *w);
void agent_world_clear(AgentWorld *w);

/* The model's answers; both live as long as the world. */
void agent_world_model(AgentWorld *w, const ScriptStep *const *answers, guint n);
/* Starts the program with `argv` behind its name (NULL: without). */
void agent_world_start(AgentWorld *w, const char *const *argv);
void agent_world_wait(AgentWorld *w);
/* Both, and the exit code. */
int agent_world_run(AgentWorld *w);

/* Of the report: "outcome/reason/summary", a missing part is "-". */
char *agent_world_end(const AgentWorld *w);
/* Events of a kind; with `name` of tools: that tool's. */
guint agent_world_events(const AgentWorld *w, const char *kind, const char *name);
/* The first event of a tool with this name; NULL: none. */
Json *agent_world_tool(const AgentWorld *w, const char *name);
/* A file of the work tree, "../out": what the program printed; NULL: there is none. */
char *agent_world_file(const AgentWorld *w, const char *name);

/* ---- answers of models ---- */

#define MODEL_OK "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define OPENAI_TEXT(text) "data: {\"choices\":[{\"delta\":{\"content\":\"" text "\"}}]}\n\n"
#define OPENAI_CALL(index, name, arguments)                                                                  \
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":" #index ",\"id\":\"c" #index                \
    "\",\"function\":{\"name\":\"" name "\",\"arguments\":\"" arguments "\"}}]}}]}\n\n"
#define OPENAI_END                                                                                           \
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":100,"       \
    "\"completion_tokens\":10}}\n\ndata: [DONE]\n\n"
#define OPENAI_DONE OPENAI_CALL(0, "done", "{\\\"summary\\\": \\\"all is well\\\"}") OPENAI_END

/* One that is sent whole. */
#define MODEL_ANSWER(name, bytes)                                                                            \
    static const ScriptStep name[] = {{SCRIPT_REQUEST}, {SCRIPT_SEND, MODEL_OK bytes}, {SCRIPT_CLOSE}}
