/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "door/door.h"
#include "door/meter.h"
#include "door/pipes.h"
#include "http/server.h"

/* What the files of the door share; nobody else includes this. */

typedef struct Stream Stream;
typedef struct Tunnel Tunnel;

enum {
    DOOR_HEAD_MAX = 16 * 1024, /* bytes of a request's head */
    DOOR_ID_LEN = 12,
};

struct Door {
    Loop *loop;
    Dialer *dialer;
    FactLog *facts;
    Gate *gate;
    HttpServer *server;
    PipePool *pipes;
    GHashTable *boxes; /* id -> DoorBox, which is borrowed: door_remove() drops it */
    DoorStats stats;
    DoorForward forward; /* NULL: nobody to hand on to */
    void *forward_ctx;
    char via[DOOR_ID_LEN + 8]; /* what a request that came round again carries */
};

/* Referenced by the door and by each of its streams. */
struct DoorBox {
    gint refs;
    Door *door;
    char *id;
    guint64 cookie;
    Policy *policy;
    char *agent, *task, *squad; /* NULL: none */
    HttpListener *listener;     /* NULL: removed */
    Breaker *breaker;           /* NULL until it calls a model */
    Stream *streams;            /* list */
    guint tunnels;
    Meter meter;
    LoopTimer stop; /* armed: the day's bytes are used up, and the streams are to be cut */
};

DoorBox *door_box_ref(DoorBox *box);
void door_box_unref(DoorBox *box);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DoorBox, door_box_unref)
/* `fact` is taken; it is told as of this box and of those it works for. */
void door_box_tell(DoorBox *box, Json *fact);

/* ---- stream.c: one destination for one request, from the verdict to the last byte ---- */

typedef struct StreamKind {
    /* Connected; `fd` is the callee's, as is the stream until stream_end(). */
    void (*opened)(Stream *stream, int fd);
    /* After that: end at once.  Leads to stream_end(). */
    void (*cut)(Stream *stream);
} StreamKind;

struct Stream {
    Stream *prev, *next; /* of the box's list */
    DoorBox *box;        /* a reference */
    const StreamKind *kind;
    HttpRequest *request; /* a reference */
    Policy *policy;       /* a reference: the verdict's texts are its */
    PolicyVerdict verdict;
    DoorName name;
    Dial *dial; /* NULL: not dialling */
    Tunnel *tunnel;
    char *target; /* of the plain proxy */
    bool open;
    bool is_inside; /* connected to an ADDRESS_INSIDE */
    gint64 started_us;
    guint64 to_upstream, from_upstream;
};

/* Judges and dials; answers the request itself when nothing comes of it.  `target` NULL: a
 * tunnel. */
void stream_start(DoorBox *box, HttpRequest *request, const DoorName *name, const char *target,
                  const StreamKind *kind);
void stream_end(Stream *stream); /* frees it */
void stream_count(Stream *stream, size_t to_upstream, size_t from_upstream);
/* The same for a request that is no stream. */
void stream_count_box(DoorBox *box, size_t to_upstream, size_t from_upstream);
/* Takes a request from the box's; its bound that was reached, or NULL. */
const char *stream_bound(DoorBox *box);
/* Whether its policy, as it is now, still permits it. */
bool stream_is_permitted(const Stream *stream);
void stream_cut(Stream *stream);
/* The fact that `kind` happened to it. */
Json *stream_fact(const Stream *stream, const char *kind, const char *why);

/* ---- answer.c: what a box is told ---- */

/* A plain text and X-Coop-Door: denied. */
void answer_refusal(HttpRequest *request, int status, const char *text);
/* 400; the fact is told too. */
void answer_bad_name(DoorBox *box, HttpRequest *request, const GError *error);
/* 403: the text names the rule, where it comes from and what would allow it. */
void answer_denied(DoorBox *box, HttpRequest *request, const DoorName *name, const PolicyVerdict *verdict);
/* 429; `what` is the bound.  Told once a minute. */
void answer_limit(DoorBox *box, HttpRequest *request, const char *what);
/* Name or address, as in a URL. */
char *answer_host(const DoorName *name, guint16 default_port);

/* ---- the ways ---- */

void tunnel_request(DoorBox *box, HttpRequest *request); /* tunnel.c */
void plain_request(DoorBox *box, HttpRequest *request);  /* plain.c */
/* forward.c */
bool forward_owns(const char *path);
void forward_request(DoorBox *box, HttpRequest *request);
