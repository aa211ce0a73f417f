/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "api/grant.h"

#define PREVIEW_COOKIE "coop_preview"
#define PREVIEW_TOKEN "coop_preview" /* in the query of a link */

/* Ports of boxes, under hosts of their own or by header.  True: it was for one, and has been
 * taken: nothing of ours is served under such a host, and nothing of a box under ours. */
bool preview_by_host(ApiCall *call);
/* For programs, with a key, after Host, Origin and caller were found good. */
bool preview_by_header(ApiCall *call);

/* Answers with a page for people or with JSON, as they accept. */
void preview_refuse(ApiCall *call, int status, const char *message);
/* The link's token becomes a cookie.  True: answered. */
bool preview_redeem(ApiCall *call, const GrantFor *what);
