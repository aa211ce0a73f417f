/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "brain/gate.h"
#include "http-fixture.h"

/* A gate behind a real listener, and a provider that is a real server of this process. */
typedef struct GateFixture {
    Fixture door;
    Budgets *budgets;
    PriceTable *prices;
    Breaker *breaker;
    Gate *gate;
    GPtrArray *facts; /* Json, as told */
    bool log_is_full;
    const char *box;  /* who asks; NULL: FIXTURE_BOX */
    char *recordings; /* a folder of the test's; NULL: none */
} GateFixture;

enum { FIXTURE_RETRY_MS = 20 };
#define FIXTURE_KEY "sk-canary-0123456789abcdef"
#define FIXTURE_BOX "box0000000000000000a"

void gate_fixture_init(GateFixture *g, const GateTimes *times, const char *recordings);
void gate_fixture_clear(GateFixture *g);
/* {"name": …} of provider.h; `script` may be NULL.  The key is FIXTURE_KEY. */
void gate_fixture_provider(GateFixture *g, const char *json, const char *script);
/* The latest fact of that kind; fails the test when there is none.  Borrowed. */
Json *gate_fixture_fact(GateFixture *g, const char *kind);
guint gate_fixture_facts(GateFixture *g, const char *kind);

/* One request on a connection of its own; `headers` are whole lines, or "". */
char *gate_post(GateFixture *g, const char *path, const char *headers, const char *body);
char *gate_get(GateFixture *g, const char *target);
/* The body of an answer, chunks put together. */
char *gate_body(const char *answer);
int gate_post_begin(GateFixture *g, const char *path, const char *body);

/* What a request to the provider looked like. */
typedef struct Upstream {
    Fixture server;
    guint calls;
    char *method, *target, *body;
    GString *headers;   /* "name: value\n", names in lower case */
    const char *answer; /* the body; NULL: as `stream` says */
    const char *type;   /* NULL: application/json */
    int status;         /* 0: 200 */
    const char *header; /* "Name: value" to add; may be NULL */
    guint fail_first;   /* so many calls get `fail_status` before */
    int fail_status;
    const char *const *stream; /* pieces, one a turn; then NULL */
    bool hold;                 /* after the pieces, wait for the gate to close */
    HttpRequest *open;         /* of the latest stream, until it closes */
    guint sent;                /* pieces of streams */
    guint gone;                /* streams that the gate left */
} Upstream;

void upstream_init(Upstream *u);
void upstream_clear(Upstream *u);
/* {"name":"up","kind":KIND,"base_url":…,EXTRA} for gate_fixture_provider(). */
char *upstream_provider(const Upstream *u, const char *kind, const char *extra);

/* A gate with that one provider behind it. */
typedef struct GateWorld {
    GateFixture g;
    Upstream u;
} GateWorld;

void gate_world_init(GateWorld *w, const char *kind);
void gate_world_clear(GateWorld *w);

#define GATE_CHAT "/openai/v1/chat/completions"
#define GATE_RESPONSES "/openai/v1/responses"
#define GATE_MESSAGES "/anthropic/v1/messages"
#define GATE_CHAT_ANSWER                                                                                     \
    "{\"id\":\"c1\",\"object\":\"chat.completion\",\"model\":\"gpt-4o-mini\",\"choices\":[{\"index\":0,"     \
    "\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\"finish_reason\":\"stop\"}],"                  \
    "\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":200,\"total_tokens\":1200,"                     \
    "\"prompt_tokens_details\":{\"cached_tokens\":400}}}"
#define GATE_ASK "{\"model\":\"gpt-4o-mini\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}"
#define GATE_ASK_STREAM                                                                                      \
    "{\"model\":\"gpt-4o-mini\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}"

gint64 fact_number(Json *fact, const char *name);
const char *fact_text(Json *fact, const char *name);
