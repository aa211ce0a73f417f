/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "agent/model.h"
#include "agent/talk.h"

/* Keeps a conversation within what the model can take in (limits.context_tokens, less the longest answer).
 *
 * Above KEEP_HIGH of that, what tools answered long ago is cut to its beginning, oldest first, down to
 * KEEP_LOW; so the conversation's beginning changes seldom, and servers that remember it are cheap.  If that
 * is not enough, older turns are summarised by the model into one message.  The goal stays as it is.
 *
 * How many tokens bytes make is learned from what the server says it counted. */
typedef struct Keep {
    const Brief *brief;
    Model *model;
    Talk *talk;
    size_t fixed_bytes; /* of the system prompt and the tools */
    gint64 limit;       /* tokens */
    double bytes_per_token;
} Keep;

enum {
    KEEP_HIGH_PERCENT = 80,
    KEEP_LOW_PERCENT = 50,
    KEEP_RECENT_PERCENT = 25, /* what is not summarised */
    KEEP_RECENT = 8,          /* messages at the end that are cut last */
    KEEP_CUT = 300,           /* bytes that stay of what is cut */
    KEEP_SHORTER_MAX = 3,     /* how often a server may say that it is still too long */
};

void keep_init(Keep *keep, const Brief *brief, Model *model, Talk *talk);
/* The next answer of the model; the conversation was made to fit before. */
bool keep_ask(Keep *keep, Json *tools, Answer *ret_answer, ModelReason *ret_reason, GError **error);

/* ---- its parts ---- */

/* Of the next question, as far as one can tell. */
gint64 keep_tokens(const Keep *keep);
/* Cuts old results and arguments until it is `tokens` long; `spare` messages at the end stay. */
void keep_cut(Keep *keep, gint64 tokens, size_t spare);
/* The messages 1..return-1 are to be summarised; 0: too few. */
size_t keep_boundary(const Keep *keep);
