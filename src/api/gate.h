/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"

/* Parts of the gate that the gate of previews uses too.  Each refusal is answered and counted,
 * and returns false. */
bool gate_refuse_origin(ApiCall *call, const char *why);
bool gate_refuse_key(ApiCall *call, const char *why); /* NULL: there was none */

/* `key` NULL: the owner of the server. */
void gate_set_caller(ApiCall *call, CallerKind kind, const Key *key);
bool gate_is_local_owner(const HttpPeer *peer);

/* Counts it against the caller's streams until it is over. */
bool gate_take_stream(ApiCall *call);
