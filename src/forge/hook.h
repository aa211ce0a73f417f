/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/commit.h"
#include "forge/diff.h"
#include "forge/seal.h"
#include "forge/thread.h"
#include "http/client.h"

/* Webhooks: events of a repository, posted elsewhere.
 *
 * The event log is the source.  A follower makes one delivery for each hook that wants an event and
 * moves its own place in the log in the same transaction; a delivery is unique by hook and event, so
 * a crash makes none twice and misses none.  Deliveries are rows too: what was not answered with 2xx
 * is tried again with growing pauses, HOOK_TRIES in all.  A server killed between the answer and the
 * row sends again, under the same GUID.
 *
 * Places: http and https, no redirects; private, link-local and loopback addresses are refused when
 * the connection is made (so that a name cannot change its mind), unless loopback was allowed. */

enum {
    HOOK_COUNT_MAX = 20, /* in one repository */
    HOOK_URL_MAX = 2048,
    HOOK_SECRET_MAX = 512,
    HOOK_TRIES = 8,
    HOOK_SENDING_MAX = 8, /* under way at once */
    HOOK_KEPT_MAX = 200,  /* ended deliveries kept for each hook */
    HOOK_BODY_MAX = 1 << 20,
    HOOK_COMMITS_MAX = 20, /* of one push */
};

/* JSON of a hook: the row's columns; `events` a list of names such as "push" and "pull_request" or
 * "*"; in the place of the secret `has_secret`. */
typedef struct HookSpec {
    const char *actor;
    gint64 id; /* 0: a new one; else NULL members stay as they are */
    const char *url;
    const char *secret;        /* "": none */
    const char *const *events; /* NULL in a new one: push */
    int active;                /* -1: as it is (a new one: active) */
} HookSpec;

typedef struct Hooks Hooks;

/* What a push brought, the oldest first. */
typedef struct HookCommit {
    GitCommit *commit;
    DiffPage *changes; /* names only; NULL: not known */
} HookCommit;
typedef struct HookPush {
    GPtrArray *commits; /* HookCommit, at most HOOK_COMMITS_MAX */
    GitCommit *head;    /* NULL: the ref is gone */
    bool forced;
} HookPush;

/* What happened, for whoever writes the body. */
typedef struct HookEvent {
    const char *name;   /* "pull_request", … */
    const char *action; /* "opened", …; NULL: none */
    const char *kind;   /* of the event: "pr.opened" */
    const char *actor;
    gint64 at_us;
    Json *data;           /* of the event; borrowed, as are the next */
    Json *thread;         /* of an event with a number: thread.h, pull requests as pull_get(); NULL: none */
    Json *object;         /* the comment, review, check run, … that the event is about; NULL: none */
    Json *sender;         /* people.h */
    const HookPush *push; /* of a ref that moved; NULL: none, or git could not tell */
} HookEvent;
/* The body; NULL: this is not sent.  On the loop. */
typedef Json *(*HookRender)(Repo *repo, const HookEvent *event, void *ctx);

typedef struct HooksSpec {
    Forge *forge; /* borrowed, as is the seal */
    const Seal *seal;
    bool allow_loopback;
    HookRender render;
    void *ctx;
} HooksSpec;
Hooks *hooks_new(const HooksSpec *spec);
void hooks_start(Hooks *hooks); /* after forge_load(), each time */
void hooks_free(Hooks *hooks);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Hooks, hooks_free)

void hook_put(Hooks *hooks, Repo *repo, const HookSpec *spec, ForgeJsonFunc done, void *data);
void hook_remove(Hooks *hooks, Repo *repo, const char *actor, gint64 id, ForgeJsonFunc done, void *data);
void hook_get(Hooks *hooks, Repo *repo, gint64 id, ForgeJsonFunc done, void *data);
void hook_list(Hooks *hooks, Repo *repo, ForgePage page, ForgeJsonFunc done, void *data);
/* Sends a "ping" event. */
void hook_ping(Hooks *hooks, Repo *repo, const char *actor, gint64 id, ForgeJsonFunc done, void *data);

/* "sha256=…", as X-Hub-Signature-256 has it. */
char *hook_sign(const char *secret, size_t secret_len, const char *body, size_t body_len);

/* `id` 0: a list, newest first, without bodies; else that one with its body. */
void delivery_list(Hooks *hooks, Repo *repo, gint64 hook_id, gint64 id, ForgePage page, ForgeJsonFunc done,
                   void *data);
/* The same body once more, as a delivery of its own under the same GUID. */
void delivery_again(Hooks *hooks, Repo *repo, const char *actor, gint64 hook_id, gint64 id,
                    ForgeJsonFunc done, void *data);
