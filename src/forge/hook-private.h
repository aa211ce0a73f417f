/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/hook.h"
#include "forge/row.h"

/* What the files of the webhooks share: hook.c has their rows, hook-follow.c makes deliveries out of
 * events, hook-delivery.c has those as rows, hook-send.c sends them. */

enum {
    HOOK_WAITING_MAX = 1000, /* deliveries of one hook; what comes beyond has failed at once */
    HOOK_EVENTS_MAX = 64,    /* names in one hook */
    HOOK_TIMEOUT_MS = 10 * 1000,
    HOOK_BACKOFF_S = 10, /* before the second try; three times that before the next, and so on */
    HOOK_BACKOFF_FACTOR = 3,
    HOOK_BACKOFF_MAX_S = 60 * 60,
    HOOK_TICK_MS = 1000,           /* while one is due soon */
    HOOK_LONG_TICK_MS = 60 * 1000, /* while one waits */
};

struct Hooks {
    guint refs; /* the owner, and each piece of work under way */
    HooksSpec spec;
    bool stopped;        /* the owner has let go */
    GHashTable *watched; /* ids of repositories that have an active hook */
    EventCursor *cursor; /* NULL: not started */
    bool busy;           /* an event is being made into deliveries */
    HttpClient *client;
    GHashTable *sending; /* id of a delivery under way -> what is being sent; NULL: sent, being written */
    bool looking;        /* for what is due */
    bool look_again;
    LoopTimer tick;
};

Hooks *hooks_ref(Hooks *hooks);
void hooks_unref(Hooks *hooks);

/* Inside a job: one hook, without its secret. */
Json *hook_load(RowJob *job, gint64 id, GError **error);

/* What an event is called there, one row after the other from *at = 0; false: there is no other.
 * `action` may be NULL. */
typedef struct HookName {
    const char *name, *action;
} HookName;
bool hook_next_name(const char *kind, const Json *data, size_t *at, HookName *ret_name);
/* For the follower's filter: NULL-terminated. */
const char *const *hook_kinds(void);
bool hook_event_is_known(const char *name);

/* One delivery for the hook, unless it has one of the same event. */
typedef struct DeliveryNew {
    gint64 hook_id;
    gint64 seq; /* 0: of no event */
    const char *guid;
    HookName name;
    const char *body;
} DeliveryNew;
bool delivery_insert(RowJob *job, const DeliveryNew *new, gint64 *ret_id, GError **error);

typedef struct HookPushSpec {
    const char *before, *after; /* as the event has them */
    const char *default_branch;
} HookPushSpec;
/* Blocks. */
HookPush *hook_push_read(GitRepo *git, const HookPushSpec *spec, GError **error);
void hook_push_free(HookPush *push);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HookPush, hook_push_free)

void hooks_follow(Hooks *hooks);
/* Looks for what is due and sends it. */
void hooks_send(Hooks *hooks);
/* `tries` that were made, at least one. */
gint64 hook_pause_us(guint tries);
