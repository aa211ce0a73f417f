/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "brain/provider.h"

const char *dialect_name(Dialect dialect);
bool dialect_from_name(const char *name, Dialect *ret);

/* Why the gate itself answers with an error, as each dialect's clients know it. */
typedef enum Fault {
    FAULT_INVALID,
    FAULT_STATEFUL, /* something that lives on at the provider, where other boxes' things live too */
    FAULT_PATH,
    FAULT_METHOD,
    FAULT_UPGRADE, /* a WebSocket is wanted; a plain POST works */
    FAULT_LARGE,
    FAULT_SLOW,
    FAULT_ENCODING,
    FAULT_MODEL,
    FAULT_BUDGET,
    FAULT_PRICE, /* a budget in money, and nobody knows what the model costs */
    FAULT_RATE,
    FAULT_LOOP,
    FAULT_BUSY, /* of ours: the log is full, too many bytes are held */
    FAULT_UPSTREAM,
    FAULT_UPSTREAM_AUTH,
    FAULT_UPSTREAM_TIMEOUT,
    FAULT_NO_RECORDING,
    FAULT_MAX,
} Fault;

int fault_status(Fault fault);
const char *fault_code(Fault fault);
bool fault_may_pass(Fault fault); /* the same request may succeed later */

/* The shape of an answer's stream: OpenAI's two APIs differ. */
typedef enum StreamShape { SHAPE_CHAT, SHAPE_RESPONSES, SHAPE_MESSAGES, SHAPE_MAX } StreamShape;

char *fault_body(Fault fault, Dialect dialect, const char *message);
/* A whole event, its empty line included. */
char *fault_event(Fault fault, StreamShape shape, const char *message);
