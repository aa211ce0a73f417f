/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/loop.h"
#include "http/parse.h"
#include "http/request.h"
#include "http/server.h"

/* What server.c, conn.c, request.c and respond.c share; nobody else includes this. */

typedef enum ConnState {
    CONN_IDLE,     /* no byte of a request yet */
    CONN_HEAD,     /* part of a head has come */
    CONN_EXCHANGE, /* a request is being answered */
    CONN_DUPLEX,   /* taken over: bytes both ways */
    CONN_LINGER,   /* answered; what still comes is thrown away before the close */
} ConnState;

typedef enum ConnTimer {
    CONN_TIMER_NONE,
    CONN_TIMER_HEADER,
    CONN_TIMER_IDLE,
    CONN_TIMER_BODY,
    CONN_TIMER_WRITE,
    CONN_TIMER_LINGER,
} ConnTimer;

typedef struct HttpConn {
    LoopWatch watch; /* first: the loop hands back its address */
    LoopTimer timer;
    HttpServer *server;     /* borrowed: it frees us */
    HttpListener *listener; /* borrowed: closing it closes us */
    struct HttpConn *prev, *next;
    HttpParser *parser;   /* NULL while none is needed */
    HttpRequest *request; /* one reference; NULL outside an exchange */
    Buf in;               /* read, but not wanted yet */
    Buf out;
    size_t lingered;
    ConnState state;
    ConnTimer timer_kind;
    bool fresh;       /* no request has come yet */
    bool busy;        /* inside conn_run(): callbacks only leave marks */
    bool again;       /* a callback left one */
    bool progress;    /* bytes moved since the timer was set */
    bool renew;       /* an exchange began since then */
    bool peer_closed; /* recv() has returned 0 */
    bool fin_seen;    /* the kernel told of a FIN while we were not reading */
    bool later;       /* a splice goes on when the socket has room, in another turn */
    bool shut;        /* we closed our side */
    bool dead;        /* to be freed when conn_run() ends */
    bool buried;      /* closed; the memory waits for a walk over the list to end */
    struct HttpConn *grave;
    HttpPeer peer;
} HttpConn;

typedef enum BodyState {
    BODY_NONE,   /* the request has none */
    BODY_UNREAD, /* nobody has asked for it */
    BODY_READING,
    BODY_PAUSED, /* the sink wants no more for now */
    BODY_ENDED,  /* all of it was handed on */
    BODY_FAILED, /* too long, too slow or cut: no more is read */
} BodyState;

typedef enum AnswerState {
    ANSWER_NONE,
    ANSWER_STREAM,  /* the head is written, the source gives the rest */
    ANSWER_DUPLEX,  /* as STREAM, unframed; the sink gets what the client sends */
    ANSWER_HIJACK,  /* the socket is handed out when the out buffer is empty */
    ANSWER_WRITTEN, /* everything is in the out buffer */
} AnswerState;

struct HttpRequest {
    gint refs;
    HttpConn *conn;     /* NULL: gone, or over */
    HttpServer *server; /* may be gone where there is no connection */
    guint32 id_prefix;
    HttpHead head;
    char *path; /* NULL: not split off yet */
    guint64 number;
    gint64 started_us;
    char id[ID_REQUEST_LEN + 1]; /* "" until somebody asks */
    HttpPeer peer;
    void *listener_data;

    BodyState body;
    const HttpSink *sink;
    void *sink_ctx;
    guint64 body_max, body_got;

    AnswerState answer;
    int status;
    bool gone;
    bool last; /* the connection ends with this answer */
    bool chunked;
    bool waiting;       /* the source said WAIT */
    gint64 length_left; /* of a stream with a known length; -1: unknown */
    guint64 bytes_out;
    GString *extra; /* headers the handler added; NULL: none */
    const HttpSource *source;
    void *source_ctx;
    HttpHijackFunc hijack;
    void *hijack_data;

    void (*on_gone)(HttpRequest *request, void *data);
    void *gone_data;
    void (*on_over)(HttpRequest *request, const HttpOutcome *outcome, void *data);
    void *over_data;
    void *data;
    GDestroyNotify data_destroy;
};

struct HttpListener {
    LoopWatch watch; /* first */
    LoopTimer pause; /* armed: not accepting for a moment */
    HttpServer *server;
    char *name;
    void *data;
    guint max_connections; /* 0: no bound of its own */
    guint connections;
    guint16 port;
    bool is_unix;
    bool closed;
};

struct HttpServer {
    Loop *loop;
    HttpLimits limits;
    HttpHandler handler;
    void *data;
    char *server_name;
    GPtrArray *listeners;
    HttpConn *conns; /* list */
    HttpConn *buried;
    guint walking;
    HttpStats stats;
    guint64 next_number;
    guint32 id_prefix;
    int reserve_fd; /* given up for a moment when there are no others, to shed a client */
    gint64 shed_logged_us;
    bool draining;
    void (*drained)(void *data);
    void *drained_data;
    guint drained_source;
    gint64 date_s; /* the second `date` is for */
    char date[32];
};

/* server.c */
/* Takes `conn` out of every list and frees it. */
void server_conn_closed(HttpServer *server, HttpConn *conn);
const char *server_date(HttpServer *server);

/* conn.c */
HttpConn *conn_new(HttpServer *server, HttpListener *listener, int fd, const HttpPeer *peer);
/* Cuts the connection at once. */
void conn_kill(HttpConn *conn);
void conn_run(HttpConn *conn);

/* request.c */
HttpRequest *request_new(HttpConn *conn);
/* The exchange is over: the request loses its connection, every party is told, and the
 * connection's reference is dropped. */
void request_end(HttpRequest *request, bool complete);
/* Ends the reader, if there is one that has not been told. */
void request_end_body(HttpRequest *request, BodyState how, const GError *error);

/* respond.c */
/* Asks the source for more; false when the connection has to be cut. */
bool respond_pull(HttpConn *conn);
/* The source puts the next bytes on the socket itself, before which nothing may wait. */
bool respond_is_spliced(const HttpRequest *request);
/* An answer of the HTTP layer's own, outside or instead of a handler's. */
void respond_refuse(HttpConn *conn, int status, const char *reason);
