/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/box.h"

/* A command of Coop's own in a box, for what it says. */

enum {
    BOX_CALL_OUTPUT_MAX = 64 * 1024, /* of each stream; the rest is dropped */
    BOX_CALL_MS = 10 * 60 * 1000,
};

typedef struct BoxCall {
    const char *const *argv;
    const char *cwd;        /* NULL: the template's */
    const char *const *env; /* NULL: none */
    const char *input;      /* NULL: none */
    guint timeout_ms;       /* 0: BOX_CALL_MS */
    size_t output_max;      /* 0: BOX_CALL_OUTPUT_MAX */
} BoxCall;
/* Once, from the loop.  `error`: it did not come to an end of its own.  ERR_TIMEOUT; ERR_CONFLICT: it was
 * killed; ERR_UNAVAILABLE: it did not start (`code` is 126, or 127 for one that is not there), or its box is
 * gone. */
typedef void (*BoxCallFunc)(int code, const char *out, const char *err, const GError *error, void *data);
void box_call(Box *box, const BoxCall *call, const char *actor, BoxCallFunc done, void *data);
/* What a command that failed said, cleaned and cut, as an error. */
GError *box_call_error(const char *what, int code, const char *err);
