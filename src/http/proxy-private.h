/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/buf.h"
#include "base/loop.h"
#include "http/parse.h"
#include "http/proxy.h"

typedef enum ProxyState { PROXY_WAITING, PROXY_ANSWERING, PROXY_TUNNEL, PROXY_OVER } ProxyState;

typedef struct Proxy {
    LoopWatch watch; /* first; fd < 0: the upstream is closed */
    LoopTimer timer;
    LoopTimer hold;       /* armed: the meter lets nothing pass for a moment */
    Loop *loop;           /* borrowed: it outlives the server */
    HttpRequest *request; /* a reference */
    HttpParser *parser;
    Buf in;
    Buf out;
    Buf *body_to; /* during a pull */
    ProxyState state;
    guint head_ms, stall_ms;
    ProxyJudge judge;
    const HttpMeter *meter; /* NULL: nobody counts */
    void *meter_ctx;
    bool may_upgrade;
    bool chunked;   /* the request's body is sent so */
    bool all_sent;  /* the request is complete in `out` */
    bool out_dead;  /* the upstream takes nothing more; it may have answered all the same */
    bool eof;       /* the upstream has said its last byte */
    bool broken;    /* … and not of its own will */
    bool held;      /* a function up the stack still needs us */
    bool sink_open; /* the request will call our sink */
    bool source_open;
} Proxy;

/* ---- proxy.c ---- */

/* Of the request's body, and of a tunnel. */
extern const HttpSink proxy_body_sink;

/* Closes the connection to the upstream. */
void proxy_hang_up(Proxy *p);
void proxy_finish_if_over(Proxy *p);
/* In place of an answer: `message` is part of it. */
void proxy_refuse(Proxy *p, int status, const char *message);
/* A byte has moved, or somebody else's turn has begun. */
void proxy_restart_clock(Proxy *p);
void proxy_arm(Proxy *p);

/* ---- proxy-answer.c ---- */

/* For the parser. */
bool proxy_on_answer_body(void *ctx, const guint8 *bytes, size_t n);
/* Takes what `in` has of the head, and of those that stand before it (1xx). */
void proxy_read_head(Proxy *p);
