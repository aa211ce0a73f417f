/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <string.h>

#include "base/buf.h"
#include "github/cache.h"
#include "github/client.h"

/* What the files of the client share: client.c has the queue and its clock, client-try.c one try over
 * HTTP, client-hear.c what follows from an answer. */

typedef enum CallPhase {
    CALL_ACTS,
    CALL_LOOKS, /* whether it was done before */
} CallPhase;

typedef struct GithubCall GithubCall;

struct GithubClient {
    guint refs;            /* the owner, and whoever of us is calling back */
    bool is_freed;         /* the owner has let go */
    GithubClientSpec spec; /* its texts are ours */
    /* Writes have connections of their own, never used twice: a request that a dead connection has
     * swallowed is sent again by curl itself, and nobody would know. */
    HttpClient *reads, *writes;
    GQueue calls; /* in the order they came, those under way too */
    guint reading;
    bool writing;
    bool pumping;       /* or nothing shall be started */
    gint64 write_ok_us; /* not before */
    GithubBudget budget;
    GithubCache *cache;
    LoopTimer tick;
    guint64 n_calls, n_cached, n_retries, n_found;
};

struct GithubCall {
    GithubClient *client;
    GList link;
    char *method, *path, *accept;
    Json *body;
    GithubLook look; /* its path is ours; NULL: none */
    bool may_repeat; /* twice does no harm */
    gint64 patience_us;
    GithubFunc done;
    void *data;

    CallPhase phase;
    guint tries, redirects, look_pages;
    bool may_be_done; /* a try was sent whose end is not known */
    bool writes_now;  /* the try under way is a write */
    char *look_path;  /* page of the list that is looked at */
    char *url;        /* where a redirect led; NULL: base and path */
    gint64 since_us, due_us;
    HttpCall *http; /* NULL: waits */
    Buf in;
    bool too_much;
};

static inline bool
call_is_read(const GithubCall *call)
{
    return call->phase == CALL_LOOKS || strcmp(call->method, "GET") == 0;
}

GithubClient *client_ref(GithubClient *client);
void client_unref(GithubClient *client);
gint64 client_now_us(const GithubClient *client);
guint32 client_random(const GithubClient *client);
/* The part behind the base; NULL: it is elsewhere. */
const char *client_below(const GithubClient *client, const char *url);
/* Starts what is due, and arms the clock for the rest. */
void client_pump(GithubClient *client);

/* ---- client-try.c ---- */

/* Of the next try. */
char *call_url(const GithubCall *call);
/* False with the error: it can never be sent. */
bool call_try(GithubCall *call, GError **error);

/* ---- client-hear.c ---- */

/* `http` is what `call->http` was. */
void call_heard(GithubCall *call, HttpCall *http, int status, const GError *error);

/* ---- client.c ---- */

/* Both free the call. */
void call_finish(GithubCall *call, const GithubAnswer *answer);
void call_fail(GithubCall *call, const GithubAnswer *answer, const GError *error);
