/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "brain/route.h"

/* A request for a model, checked; what goes upstream is written anew from it. */
typedef struct Ask {
    const Route *route;
    Json *body;         /* NULL: a GET */
    char *model;        /* as the box named it; NULL: none */
    bool stream;        /* the answer shall be one */
    bool adds_usage;    /* the box did not ask for the usage chunk: we did, and it is left out again */
    guint64 max_output; /* tokens the answer may have */
    size_t bytes;       /* of the body that came */
    size_t values;      /* in it, at most */
} Ask;

enum {
    ASK_OUTPUT_DEFAULT = 4096, /* reckoned for who sets no bound */
    ASK_OUTPUT_MAX = 10 * 1000 * 1000,
    ASK_VALUES_MAX = 256 * 1024,
    ASK_VALUE_BYTES = 256, /* an empty object in memory, the most that a value of few bytes takes */
    ASK_DIGEST_LEN = 32,
    ASK_DROP_INLINE_MAX = 4096, /* values */
};

/* Needs nothing but its arguments, so it may run in a thread.  ERR_INVALID, or ERR_DENIED for
 * what would be kept at the provider. */
Ask *ask_new(const Route *route, const void *bytes, size_t n, GError **error);
Ask *ask_new_get(const Route *route, const char *model); /* `model` may be NULL */
void ask_free(Ask *ask);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Ask, ask_free)
/* The same, for the loop: a tree of many values goes in a thread. */
void ask_drop(Ask *ask, Loop *loop);

/* The body as it goes upstream, under the provider's name of the model. */
char *ask_encode(Ask *ask, const char *model);
/* Of what is asked, whatever the order of members; who asks and why is left out. */
void ask_digest(const Ask *ask, guint8 ret_digest[ASK_DIGEST_LEN]);

/* Refuses what refers to, or makes, things that stay at the provider, and servers of the box's
 * choice that the provider would call. */
bool ask_check_state(RouteKind kind, Json *body, GError **error);
