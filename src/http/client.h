/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* HTTP client: libcurl's multi interface on the GLib loop.  Streaming both ways, pause, and
 * a deadline for each stage.  Redirects are not followed and no proxy or .netrc of the
 * environment is used unless asked for. */
typedef struct HttpClient HttpClient; /* connection pool; one per program */
typedef struct HttpCall HttpCall;

typedef struct HttpCallSpec {
    const char *method; /* NULL: GET */
    const char *url;
    const char *unix_socket;    /* NULL: TCP */
    const char *const *headers; /* "Name: value", …, NULL; may be NULL */
    const void *body;           /* copied; NULL: none */
    size_t body_len;
    int body_fd;         /* a regular file to send whole instead of `body`; borrowed; -1: none */
    guint connect_ms;    /* name, connection and TLS, and waiting for a place; 0: 10 s */
    guint first_byte_ms; /* until the answer's head, from the last byte sent; 0: none */
    guint stall_ms;      /* without a byte of the answer's body, unless stopped; 0: none */
    guint total_ms;      /* 0: none */
} HttpCallSpec;
#define HTTP_CALL_SPEC_INIT                                                                                  \
    {                                                                                                        \
        .body_fd = -1                                                                                        \
    }

/* From inside any of these, calls may be started, resumed and cancelled, this one included;
 * the client may be freed; and the loop may be run: what comes for this call meanwhile waits
 * until the callback returns. */
typedef struct HttpCallHandler {
    /* The head is complete.  May be NULL. */
    void (*head)(HttpCall *call, int status, void *ctx);
    /* All bytes are taken.  False: stop, `done` included, until http_call_resume(); one that
     * was called from inside counts. */
    bool (*data)(HttpCall *call, const guint8 *bytes, size_t n, void *ctx);
    /* Exactly once; the call is freed after it returns.  `error` NULL: a whole answer came,
     * whatever its status.  ERR_TIMEOUT, ERR_UNAVAILABLE (no connection), ERR_INVALID
     * (the answer made no sense or was cut), ERR_CONFLICT (the file became shorter).  The
     * message names the host and the stage. */
    void (*done)(HttpCall *call, int status, const GError *error, void *ctx);
} HttpCallHandler;

HttpClient *http_client_new(GMainContext *context);
/* How many connections may be open at once, in all and to one host, in the place of limits.h. */
void http_client_allow(HttpClient *client, guint connections, guint per_host);
/* For calls to URLs that strangers gave: which addresses are connected to, whatever a name says at
 * that moment (address.h).  Another one is ERR_DENIED.  Before the first call: connections are used
 * again. */
typedef enum HttpReach {
    HTTP_REACH_ANY,
    HTTP_REACH_PUBLIC,   /* and not this host */
    HTTP_REACH_LOOPBACK, /* public, and loopback too */
} HttpReach;
void http_client_fence(HttpClient *client, HttpReach reach);
void http_client_free(HttpClient *client); /* cancels what is under way */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HttpClient, http_client_free)

/* The callbacks come from the loop, never from inside this call.  Nothing of the spec is
 * needed afterwards.  NULL only for one that cannot be used (a bad URL, method or header). */
HttpCall *http_client_call(HttpClient *client, const HttpCallSpec *spec, const HttpCallHandler *handler,
                           void *ctx, GError **error);
/* `done` is not called; the call is freed. */
void http_call_cancel(HttpCall *call);
void http_call_resume(HttpCall *call);
/* The first header of that name of the answer; NULL: none.  To be asked in and after `head`;
 * what is returned lives as long as the call. */
const char *http_call_header(HttpCall *call, const char *name);
