/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <curl/curl.h>
#include <glib.h>
#include <stdbool.h>

#include "base/buf.h"
#include "http/address.h"
#include "http/client.h"

/* What the parts of the client share: client.c is the pool and the loop, client-setup.c turns
 * a spec into curl's options, client-call.c takes what curl reports of one call, and
 * client-deliver.c hands that on and ends the call.
 *
 * No code of the caller's ever runs inside a curl function: what curl reports is noted in the
 * call, the call is put on `ready`, and it is handed on when curl has returned.  So callbacks
 * may start, resume and cancel calls, free the client, and run the loop again. */

typedef enum CallStage {
    CALL_CONNECT, /* name, connection, TLS; also waiting for a place in the pool */
    CALL_HEAD,    /* connected; the request goes out, the head of the answer is awaited */
    CALL_BODY,
    CALL_OVER, /* curl has let go of it; `error` says how it ended */
} CallStage;

struct HttpClient {
    guint refs; /* the owner, and each dispatch under way */
    GSource *source;
    gpointer epoll_tag;
    int epoll_fd;         /* curl's sockets */
    CURLM *multi;         /* NULL: freed */
    gint64 curl_due_us;   /* when curl wants to run again; -1: not by time */
    gint64 expire_due_us; /* no call's deadline is earlier; -1: none has one */
    HttpReach reach;
    OwnAddresses *own; /* NULL: any address will do */
    GQueue calls;      /* all */
    GQueue ready;      /* those with something to hand on */
};

typedef struct CallBody {
    guint8 *bytes; /* NULL: `fd` */
    int fd;
    guint64 len, sent;
} CallBody;

typedef struct CallLimits {
    guint connect_ms, first_byte_ms, stall_ms, total_ms; /* 0: none */
} CallLimits;

typedef struct CallHead {
    size_t bytes, trailer_bytes;
    guint count;
    int reading; /* the status of the head that is coming in, interim or not */
    int status;  /* 0: not complete */
    bool told;
} CallHead;

struct HttpCall {
    guint refs;         /* the client, and whoever is handing on to the caller */
    HttpClient *client; /* NULL: cancelled, or done */
    GList link, ready_link;
    CURL *easy;
    struct curl_slist *headers;
    GStringChunk *values; /* headers that were asked for */
    char *peer;           /* "host:port", for messages */
    HttpCallHandler handler;
    void *ctx;
    CallBody body;
    CallLimits limits;
    CallHead head;
    Buf in; /* bytes of the answer's body not handed on yet */
    GError *error;
    const char *denied; /* what the last address was that may not be connected to; NULL: none */
    gint64 start_us;
    gint64 mark_us; /* last progress in this stage */
    CallStage stage;
    bool is_ready;      /* on `ready` */
    bool is_delivering; /* a callback is on the stack */
    bool is_paused;     /* by the caller */
    bool is_held;       /* by curl, which keeps what it has read */
    bool was_resumed;   /* during the running `data` callback */
    bool is_expired;    /* ended by a deadline: nothing more is handed on */
};

void client_mark_ready(HttpClient *client, HttpCall *call);
/* Static text that says why not; NULL: it may be connected to. */
const char *client_denies(HttpClient *client, const struct sockaddr *address);
void client_watch_deadline(HttpClient *client, const HttpCall *call);

HttpCall *call_new(const HttpCallSpec *spec, const HttpCallHandler *handler, void *ctx, GError **error);
HttpCall *call_ref(HttpCall *call);
void call_unref(HttpCall *call);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HttpCall, call_unref)
/* Takes it out of the client and drops the client's reference. */
void call_detach(HttpCall *call);
/* Takes it from curl, which gives the connection back to the pool or closes it. */
void call_leave_curl(HttpCall *call);
/* Notes that the answer is unusable, unless something else came first; returns false. */
bool call_refuse(HttpCall *call, const char *why);

/* For the pool: curl is done with it; its deadline; hand on what there is. */
void call_complete(HttpCall *call, CURLcode code);
gint64 call_due_us(const HttpCall *call); /* -1: none */
void call_expire(HttpCall *call);
void call_deliver(HttpCall *call);

/* Checks the spec and sets every option that is not a callback. */
bool call_setup(HttpCall *call, const HttpCallSpec *spec, GError **error);
