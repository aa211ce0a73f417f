/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "brain/provider.h"
#include "team/mind.h"

/* How a question is written for the gateway, and what is read of the answer.  Pure. */

enum {
    MIND_OUTPUT_TOKENS = 8192,       /* where the question sets no bound */
    MIND_BODY_MAX = 2 * 1024 * 1024, /* of an answer as it comes, escapes and all */
    MIND_PROBLEM_MAX = 500,
};

/* Whom a question goes to: a provider of one dialect where it must be that one, else OpenAI's.
 * `providers` as door_models_providers() lists them, `own` the names of those of the door's environment
 * (may be NULL). */
ProviderKind mind_kind(Json *providers, Json *own, const MindAsk *ask);

const char *mind_path(ProviderKind kind);
char *mind_encode(ProviderKind kind, const MindAsk *ask);

/* `answer` points into `*ret_body`, which the caller owns.  ERR_INVALID. */
bool mind_decode(ProviderKind kind, const char *bytes, size_t n, Json **ret_body, MindAnswer *answer,
                 GError **error);
/* Always false: what a refusal with this status and body means, as mind.h says. */
bool mind_refused(int status, const char *bytes, size_t n, GError **error);
