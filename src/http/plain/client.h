/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "http/parse.h"

/* HTTP/1.1 in clear to one address, for small programs that may wait: poll(2) with deadlines, no loop, no
 * thread, no resolver.  One connection, kept between calls. */
typedef struct PlainClient PlainClient;

enum {
    PLAIN_READ_SIZE = 16 * 1024,
    PLAIN_CONNECT_MS = 5000,
    PLAIN_SEND_MS = 30000,
    PLAIN_BODY_MAX = 4 * 1024 * 1024, /* of an answer that is collected */
};

/* `url` is "http://" with an IPv4 address, [IPv6] or localhost, maybe a port; what follows is not looked at
 * (plain_url_path()).  ERR_INVALID otherwise. */
PlainClient *plain_client_new(const char *url, GError **error);
void plain_client_free(PlainClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PlainClient, plain_client_free)
/* A call under way, or the next one, ends with ERR_CANCELLED when this is readable; borrowed, -1: none. */
void plain_client_set_cancel(PlainClient *client, int fd);
/* Waits that long, or until the above: then false with ERR_CANCELLED. */
bool plain_client_pause(PlainClient *client, gint64 ms, GError **error);

/* What follows the host, without slashes at its end and without a query; the caller owns it. */
char *plain_url_path(const char *url);

/* Bytes of an answer's body, as they come; false ends the call with ERR_CANCELLED. */
typedef bool (*PlainBodyFunc)(int status, const void *bytes, size_t n, void *ctx);

typedef struct PlainCall {
    const char *method, *path;
    const char *const *headers; /* "Name: value", ended by NULL; may be NULL */
    const void *body;           /* NULL: none */
    size_t body_len;
    gint64 head_ms;        /* until the head of the answer has come */
    gint64 stall_ms;       /* between two pieces of its body */
    gint64 deadline_us;    /* of all, on the monotonic clock; 0: none */
    PlainBodyFunc on_body; /* of 2xx; NULL: collected, as all others are */
    void *ctx;
} PlainCall;

typedef struct PlainAnswer {
    int status;
    HttpHead head;
    GString *body;
} PlainAnswer;
void plain_answer_clear(PlainAnswer *answer);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(PlainAnswer, plain_answer_clear)

/* Any status is an answer.  ERR_UNAVAILABLE: no connection, or it broke; ERR_TIMEOUT; ERR_LIMIT: too much;
 * ERR_INVALID: that was no HTTP.  `ret_answer` has what came, also on failure: status 0 when nothing did. */
bool plain_call(PlainClient *client, const PlainCall *call, PlainAnswer *ret_answer, GError **error);
