/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "brain/ask.h"
#include "brain/circuit.h"
#include "brain/event-cut.h"
#include "brain/gate.h"
#include "brain/provider-private.h"
#include "brain/route.h"
#include "brain/script.h"
#include "brain/tape.h"
#include "http/client.h"

/* What the parts of the gate share.
 *
 *   gate.c            the providers, and who is asking
 *   gate-test.c       one small call for who sets a provider up
 *   exchange.c        one request's life: refusals, the end
 *   exchange-ask.c    its body is read and checked, a provider chosen, the budget held
 *   exchange-call.c   the provider is called, and called again where that may help
 *   exchange-tape.c   or a script or a recording plays it
 *   exchange-answer.c what comes is passed on
 *   exchange-fact.c   what it used is counted and told
 *
 * An exchange is in the gate's list from gate_handle() until exchange_end(), which comes once:
 * when the answer was given whole, when its stream has closed, or when the client went before;
 * a stream of which only the usage is missing lingers a while without its client.
 * Whatever answers or wakes a request may end the exchange at once, so who needs it afterwards
 * holds a reference. */

enum {
    GATE_PROVIDERS_MAX = 64,
    GATE_CONNECTIONS_MAX = 4096,        /* to providers: each stream has its own */
    GATE_ANSWER_MAX = 32 * 1024 * 1024, /* of one that is no stream, which is held whole */
    GATE_STREAM_MAX = 256 * 1024 * 1024,
    GATE_ERROR_MAX = 64 * 1024,         /* of a provider's error; the rest is left out */
    GATE_OUT_HIGH = 256 * 1024,         /* with more waiting for the client, the provider is not read */
    GATE_HELD_MAX = 1024 * 1024 * 1024, /* bodies and whole answers of all boxes */
    GATE_HELD_PER_BOX = GATE_HELD_MAX / 8,
    GATE_BODY_RATE = 64 * 1024,         /* bytes a second, the least after GATE_BODY_MS */
    GATE_PARSE_INLINE_MAX = 256 * 1024, /* a longer body is checked in a thread */

    GATE_BODY_MS = 60 * 1000,
    GATE_CONNECT_MS = 10 * 1000,
    GATE_FIRST_BYTE_MS = 600 * 1000, /* an answer that is no stream comes when it is ready */
    GATE_IDLE_MS = 120 * 1000,
    GATE_TOTAL_MS = 3600 * 1000,
    GATE_RETRY_MS = 500,
    GATE_LINGER_MS = 5 * 1000,
    GATE_RETRY_AFTER_MAX_S = 10, /* who is told to wait longer is told so */
};

typedef struct ProviderSlot {
    Provider *provider;
    BrainScript *script; /* of a PROVIDER_SCRIPT */
    Circuit *circuit;
} ProviderSlot;

typedef struct GateTest GateTest;

struct Gate {
    Loop *loop;
    Budgets *budgets;
    PriceTable *prices;
    char *recordings;
    void (*tell)(Json *fact, void *ctx);
    bool (*may_tell)(void *ctx);
    void *ctx;
    GateTimes times;
    HttpClient *client;
    GPtrArray *slots; /* ProviderSlot, by name */
    GQueue exchanges;
    GQueue tests;
    GHashTable *loads; /* box -> BoxLoad, while it has exchanges */
    guint64 held;
};

/* What one box takes of the gate. */
typedef struct BoxLoad {
    guint streams; /* exchanges */
    guint64 held;  /* bytes */
} BoxLoad;

typedef struct Who {
    char *box, *agent, *task, *squad;
    Breaker *breaker; /* the box's */
} Who;

typedef enum AnswerMode {
    ANSWER_NONE,
    ANSWER_STREAM, /* events, passed on one by one */
    ANSWER_WHOLE,  /* a JSON object */
    ANSWER_ERROR,  /* the provider's own words on why not */
} AnswerMode;

typedef struct Answer {
    AnswerMode mode;
    int status;
    char *retry_after, *request_id; /* of the provider, as they may go on; NULL: none */
    EventCut events;                /* ANSWER_STREAM: what came of the next event */
    Buf whole;                      /* the others: what came; of a stream: what waits for the client */
    guint64 bytes;
    UsageReader *usage; /* ANSWER_STREAM */
    Usage used;         /* ANSWER_WHOLE, when it has been read */
    bool ended;         /* nothing more comes */
    bool source_open;
} Answer;

typedef struct Exchange {
    guint refs;
    Gate *gate; /* NULL: over */
    Loop *loop; /* the gate's, which outlives it */
    GList link;
    HttpRequest *request; /* a reference */
    Who who;
    const Route *route;
    char *query;
    Ask *ask;
    guint64 held;   /* bytes of ours in gate->held */
    gint64 body_us; /* when its body was asked for */
    GByteArray *incoming;

    Provider *provider; /* a reference */
    char *model;        /* the provider's name of it; NULL: none */
    char *sent;         /* the body */
    guint8 digest[ASK_DIGEST_LEN];
    bool in_breaker;
    BudgetHold *hold;

    BrainScript *script; /* a reference; NULL: none */
    Circuit *circuit;    /* a reference */
    HttpCall *call;
    TapePlay *play;    /* in its place, for scripts and replays */
    const char *brain; /* "script" or "replay", static; NULL: a real one */
    guint retry;       /* source of the wait before another try; 0: none */
    Tape *recorded;    /* NULL: nothing is recorded */
    gint64 recorded_us;
    guint retries;
    gint64 began_us; /* 0: the provider was not called */
    gint64 first_byte_us;
    bool is_paused;
    bool lingers; /* the client has its answer and is gone; what it used is still to come */
    LoopTimer linger;
    Answer answer;
    const char *error; /* a fault's code, for the fact; static */
    bool told;
} Exchange;

Exchange *exchange_new(Gate *gate, HttpRequest *request, const GateCaller *caller, const Route *route);
Exchange *exchange_ref(Exchange *x);
void exchange_unref(Exchange *x);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Exchange, exchange_unref)
/* Answers with an error and ends it. */
void exchange_refuse(Exchange *x, Fault fault, const char *fmt, ...) G_GNUC_PRINTF(3, 4);
void exchange_refuse_busy(Exchange *x); /* exchange_hold_bytes() said no */
void exchange_end(Exchange *x);
bool exchange_hold_bytes(Exchange *x, size_t n); /* false: the gate, or the box, has no room */
void exchange_drop_bytes(Exchange *x, size_t n);
void gate_respond_fault(HttpRequest *request, Dialect dialect, Fault fault, const char *message);

void exchange_start(Exchange *x);
void exchange_call(Exchange *x);
void exchange_stop_call(Exchange *x);

void exchange_play_script(Exchange *x);
void exchange_replay(Exchange *x);
/* Keeps what passes by, where the provider's settings say so. */
void exchange_record_start(Exchange *x);
void exchange_record(Exchange *x, const guint8 *bytes, size_t n);
void exchange_record_end(Exchange *x);

/* From whoever plays the provider. */
typedef struct AnswerHead {
    const char *type, *encoding, *retry_after, *request_id; /* NULL: none */
} AnswerHead;
void answer_head(Exchange *x, int status, const AnswerHead *head);
bool answer_data(Exchange *x, const guint8 *bytes, size_t n); /* false: stop until resumed */
void answer_done(Exchange *x, const GError *error);
void answer_clear(Answer *answer);

/* Settles the budget and tells the fact; once. */
void exchange_account(Exchange *x);
void exchange_tell_auth(Exchange *x, int status);
void exchange_tell_warned(Exchange *x, const char *scope);
void exchange_tell_exceeded(Exchange *x, const BudgetNews *news, const char *message);
void exchange_tell_loop(Exchange *x, guint repeats);
guint64 exchange_cost(Exchange *x, const Usage *usage, bool *ret_known);

/* Which provider answers for this model; `*ret_model` points into `model`.  NULL: none. */
ProviderSlot *gate_choose(Gate *gate, Dialect dialect, const char *model, const char **ret_model);
void gate_test_free(GateTest *test); /* without `done` */
ProviderSlot *gate_find_provider(Gate *gate, const char *name);
