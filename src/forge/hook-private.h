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
    HOOK_PLACE_EVERY = 1000,       /* events that nobody wanted: the place moves all the same */
};

struct Hooks {
    guint refs; /* the owner, and each piece of work under way */
    HooksSpec spec;
    bool stopped;        /* the owner has let go */
    GHashTable *watched; /* ids of repositories and squads that have an active hook */
    EventCursor *cursor; /* NULL: not started */
    bool busy;           /* an event is being made into deliveries */
    guint passed;        /* events since the place was written */
    HttpClient *client;
    GHashTable *sending; /* id of a delivery under way -> what is being sent; NULL: sent, being written */
    bool looking;        /* for what is due */
    bool look_again;
    LoopTimer tick;
};

Hooks *hooks_ref(Hooks *hooks);
void hooks_unref(Hooks *hooks);

/* Inside a job: one hook, without its secret. */
Json *hook_load(RowJob *job, HookOwner owner, gint64 id, GError **error);
/* "repository_id", "squad_id", "task_id". */
const char *hook_owner_column(HookOwnerKind kind);
/* hook.changed, with `data` (taken) and the owner. */
bool hook_tell(RowJob *job, HookOwner owner, const char *actor, Json *data, GError **error);
/* Jobs on hooks: a repository's know it by RowJob.repository_id too. */
void
hook_run(Hooks *hooks, HookOwner owner, const RowOp *op, const void *spec, ForgeJsonFunc done, void *data);
/* What the secret of a hook is sealed for. */
char *hook_purpose(gint64 id);
/* An empty one of this owner. */
bool hook_insert(RowJob *job, HookOwner owner, gint64 *ret_id, GError **error);
bool hook_set_secret(RowJob *job, const Seal *seal, gint64 id, const char *secret, GError **error);

/* What an event is called there, one row after the other from *at = 0; false: there is no other.
 * `action` may be NULL. */
typedef struct HookName {
    const char *name, *action;
} HookName;
bool hook_next_name(const char *kind, const Json *data, size_t *at, HookName *ret_name);
bool hook_event_is_known(HookOwnerKind kind, const char *name);
/* Some repository's hook may want it. */
bool hook_kind_is_told(const char *kind);
/* What a task's progress is: `*ret_ends` (may be NULL): nothing follows. */
bool hook_kind_is_progress(const char *kind, bool *ret_ends);

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

/* Where the follower is, among the settings. */
#define HOOK_PLACE "hooks.seq"

/* What an event is about, for the bodies: {thread, object, sender} where RowJob.repository_id is said,
 * {team} for squads and tasks; `for_squad`, `for_task`: a hook there wants it. */
typedef struct HookAbout {
    const char *kind, *actor;
    const char *event_owner;
    Json *data;
    const char *task_id, *squad_id;
    bool for_squad, for_task;
    HookLook look;
} HookAbout;
extern const RowOp hook_about_op;

/* Deliveries to the hooks of RowJob.repository_id and these, and the place, which alone is moved without
 * bodies. */
typedef struct HookMake {
    gint64 seq;
    const char *squad_id, *task_id; /* NULL: none */
    Json *bodies;                   /* [{owner, name, action, body}] */
} HookMake;
extern const RowOp hook_make_op;

void hooks_follow(Hooks *hooks);
/* Looks for what is due and sends it. */
void hooks_send(Hooks *hooks);
/* `tries` that were made, at least one. */
gint64 hook_pause_us(guint tries);
