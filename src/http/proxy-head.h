/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/buf.h"
#include "http/parse.h"
#include "http/proxy.h"

/* The heads that a proxy writes anew, in both directions.  Private to this folder. */

/* Whether the client asks for what may be tunnelled: a WebSocket and nothing else.  Another
 * protocol (h2c above all) would carry further requests past whoever judged this one. */
bool proxy_wants_upgrade(const HttpRequest *request, const HttpProxySpec *spec);

/* The request's head.  0, or the status to refuse the request with: 400 when it cannot be
 * written, 431 when it does not fit into `out`. */
int proxy_put_request(Buf *out, const HttpRequest *request, const HttpProxySpec *spec);

typedef char *(*ProxyJudge)(const char *name, const char *value);

/* Copies the headers of an upstream's answer to ours, as `judge` (NULL: nobody) lets them.
 * False: some of them cannot be passed on, and none was. */
bool proxy_copy_headers(HttpRequest *request, const HttpHead *head, ProxyJudge judge);
