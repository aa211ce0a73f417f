/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "http-fixture.h"
#include "http/proxy.h"

/* A server that passes every request on to an upstream which the test plays by hand, on the
 * other end of a socket pair. */
typedef struct ProxyTest {
    Fixture f;
    HttpProxySpec spec;
    int client;
    int upstream; /* of the last request; -1: none has come */
    bool wait;    /* requests are kept for proxy_pass_on() */
    HttpRequest *kept;
} ProxyTest;

void proxy_test_init(ProxyTest *t, const HttpLimits *limits);
void proxy_test_clear(ProxyTest *t); /* also closes both ends */

/* Sends on a fresh connection, and waits until the proxy has it. */
void proxy_ask(ProxyTest *t, const char *request);
/* The same; also takes the request's head from the upstream's end. */
char *proxy_ask_head(ProxyTest *t, const char *request);
/* What the handler does, for a request that was kept. */
void proxy_pass_on(ProxyTest *t);
void proxy_close_client(ProxyTest *t);
void proxy_close_upstream(ProxyTest *t);
/* The upstream's end sees that ours is closed; whatever came before is thrown away. */
void proxy_expect_hangup(ProxyTest *t);

/* Sends until everything between is full; returns how much that was. */
size_t proxy_fill(int fd);
void proxy_take(int fd, size_t n);
/* `n` bytes in at one end, out at the other. */
void proxy_pass(int from, int to, size_t n);

/* Everything in an answer with chunked framing; NULL: it is not complete. */
GString *answer_unchunk(const char *answer);
