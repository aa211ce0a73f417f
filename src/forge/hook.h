/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/commit.h"
#include "forge/diff.h"
#include "forge/row.h"
#include "forge/seal.h"
#include "forge/thread.h"
#include "http/client.h"

/* Webhooks: what happens, posted elsewhere.  A hook is of a repository, whose events it sends as GitHub
 * does; of a squad, whose events it sends by their own names; or of a task that came from a chat, and then
 * it is where progress is answered to.
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
    HOOK_COUNT_MAX = 20, /* of one owner */
    HOOK_URL_MAX = 2048,
    HOOK_SECRET_MAX = 512,
    HOOK_TRIES = 8,
    HOOK_SENDING_MAX = 8, /* under way at once */
    HOOK_KEPT_MAX = 200,  /* ended deliveries kept for each hook */
    HOOK_BODY_MAX = 1 << 20,
    HOOK_COMMITS_MAX = 20, /* of one push */
    /* What Slack takes at one address; the last is kept for the end of the task. */
    HOOK_REPLIES_MAX = 5,
    HOOK_REPLY_LIFE_S = 30 * 60,
};

typedef enum HookOwnerKind { HOOK_OF_REPOSITORY, HOOK_OF_SQUAD, HOOK_OF_TASK, HOOK_OWNER_MAX } HookOwnerKind;
typedef struct HookOwner {
    HookOwnerKind kind;
    const char *id;
} HookOwner;

/* JSON of a hook: the row's columns; `events` a list of names such as "push" and "pull_request" or
 * "*", a squad's such as "task.completed" and "task.*"; in the place of the secret `has_secret`. */
typedef struct HookSpec {
    const char *actor;
    gint64 id; /* 0: a new one; else NULL members stay as they are */
    const char *url;
    const char *secret;        /* "": none */
    const char *const *events; /* NULL in a new one: push; of a squad: task.*, human.*, pr.* */
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
    Json *whole;          /* the event as the API shows it; NULL of a ping */
    Json *about;          /* of a squad's or a task's: what HookLook found; NULL of a ping */
    const char *address;  /* of this server, as a URL */
} HookEvent;
/* The body; NULL: this is not sent.  On the loop; `repo` NULL unless it is a repository's hook. */
typedef Json *(*HookRender)(Repo *repo, const HookEvent *event, void *ctx);
/* Inside a job: what bodies for squads and tasks need beyond the event; either id may be NULL. */
typedef Json *(*HookLook)(RowJob *job, const char *task_id, const char *squad_id, GError **error);

typedef struct HooksSpec {
    Loop *loop; /* borrowed, as are all */
    Db *db;
    EventLog *events;
    Forge *forge; /* NULL: repositories have none */
    const Seal *seal;
    const char *address; /* of this server, as a URL */
    bool allow_loopback;
    HookRender render[HOOK_OWNER_MAX]; /* NULL: those have none */
    HookLook look;                     /* NULL: squads and tasks have none */
    void *ctx;
} HooksSpec;
Hooks *hooks_new(const HooksSpec *spec);
void hooks_start(Hooks *hooks); /* after forge_load(), each time */
void hooks_free(Hooks *hooks);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Hooks, hooks_free)

void hook_put(Hooks *hooks, HookOwner owner, const HookSpec *spec, ForgeJsonFunc done, void *data);
void hook_remove(Hooks *hooks, HookOwner owner, const char *actor, gint64 id, ForgeJsonFunc done, void *data);
void hook_get(Hooks *hooks, HookOwner owner, gint64 id, ForgeJsonFunc done, void *data);
void hook_list(Hooks *hooks, HookOwner owner, ForgePage page, ForgeJsonFunc done, void *data);
/* Sends a "ping" event. */
void hook_ping(Hooks *hooks, HookOwner owner, const char *actor, gint64 id, ForgeJsonFunc done, void *data);

/* Where a task's progress is answered to.  The address lets whoever has it speak there, so it is sealed.
 * Inside the job that makes the task, before its first event. */
bool hook_add_reply(RowJob *job, const Seal *seal, const char *task_id, const char *url, GError **error);
/* For it; until the database is closed. */
const Seal *hooks_seal(const Hooks *hooks);

/* "sha256=…", as X-Hub-Signature-256 has it. */
char *hook_sign(const char *secret, size_t secret_len, const char *body, size_t body_len);

/* `id` 0: a list, newest first, without bodies; else that one with its body. */
void delivery_list(Hooks *hooks, HookOwner owner, gint64 hook_id, gint64 id, ForgePage page,
                   ForgeJsonFunc done, void *data);
/* The same body once more, as a delivery of its own under the same GUID. */
void delivery_again(Hooks *hooks, HookOwner owner, const char *actor, gint64 hook_id, gint64 id,
                    ForgeJsonFunc done, void *data);
