/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/box-private.h"
#include "box/host-admit.h"
#include "box/host.h"
#include "box/told.h"
#include "box/wish.h"

enum {
    HOST_TICK_MS = 1000,
    HOST_FLUSH_TICKS = 30,   /* last uses are written this often */
    HOST_RETRY_TICKS = 10,   /* what could not be written is tried again */
    HOST_WAITING_MAX = 1024, /* creates that wait for the rows */
    HOST_POOL_TEMPLATES = 8,
    HOST_FREE_US = G_USEC_PER_SEC, /* what is free is read again after that */
};

typedef struct HostLater {
    void (*func)(void *data);
    void *data;
} HostLater;

typedef struct HostPool {
    GHashTable *boxes; /* id -> Box*: ready, nobody's */
    GPtrArray *lines;  /* PoolLine*, one a template */
    Box *making;       /* one at a time */
    guint wait_ticks;  /* after a failure */
    LoopTimer refill;
} HostPool;

typedef struct HostLoad {
    bool told;     /* who asked for the load was told; creates wait no longer */
    bool listed;   /* a LIST was worked through */
    bool rebooted; /* the rows are of before the machine was started */
    char *boot_id;
    DbDone done;
    void *data;
    GQueue waiting;       /* creates */
    GPtrArray *unknown;   /* char*: boxes of the LIST under way that nobody knows; NULL: none */
    GHashTable *commands; /* box id -> GPtrArray of CommandRow*, for adoption */
    Told *callers;        /* who was answered; NULL: not known */
} HostLoad;

struct BoxHost {
    guint refs; /* the owner, each box, each job of the store */
    bool closed;
    BoxHostSpec spec; /* its texts are the next three */
    char *home, *socket, *default_template;
    char **env; /* NULL: none */
    KeeperClient *keeper;
    GHashTable *boxes;  /* id -> Box*, a reference each */
    GHashTable *leases; /* owner, line feed, lease -> Box* of `boxes` */
    guint32 degraded;
    char *off;
    HostPool pool;
    HostLoad load;
    GQueue later; /* HostLater* */
    LoopTimer later_timer, tick_timer, upkeep_timer;
    guint ticks;
    guint probing;
    GPtrArray *to_probe; /* Box* */
    BoxHostStats stats;
    AdmitFree free;
    gint64 free_us; /* monotonic; 0: never read */
};

BoxHost *host_ref(BoxHost *host);
void host_unref(BoxHost *host);

/* Runs on the next turn of the loop, or when the host is freed. */
void host_later(BoxHost *host, void (*func)(void *data), void *data);
void host_run_later(BoxHost *host);

/* ERR_UNAVAILABLE, ERR_FULL: the machine has no room for another box. */
bool host_check_free(BoxHost *host, GError **error);
void host_add(BoxHost *host, Box *box);    /* to the table, with its lease */
void host_remove(BoxHost *host, Box *box); /* once its end is written */
void host_each(BoxHost *host, void (*func)(Box *box, void *data), void *data); /* ended ones too */
char *host_dup_log_folder(BoxHost *host, const char *id);
void host_set_degraded(BoxHost *host, const char *part, const char *reason);
void host_call_keeper(BoxHost *host, KeeperVerb verb, Box *box, KeeperFunc func, void *data);

/* ---- host-lease.c ---- */

Box *lease_find(BoxHost *host, const char *owner, const char *lease); /* a live one */
void lease_set(BoxHost *host, Box *box);
void lease_drop(BoxHost *host, Box *box);

/* ---- host-caps.c ---- */

bool host_check_caps(BoxHost *host, const char *owner, GError **error);

/* ---- host-create.c ---- */

void host_fill_create(BoxHost *host, const Template *template, const KeeperLimits *limits, const char *id,
                      KeeperRequest *ret_request);
void host_create_waiting(BoxHost *host, const GError *error); /* NULL: now they can be made */
void host_create_cancel(Box *box, const GError *error);       /* the server ends */

/* ---- host-pool.c ---- */

void pool_init(BoxHost *host);
void pool_clear(BoxHost *host);
/* A clean box of this template with these limits, out of the pool; NULL: none.  The caller owns
 * the reference. */
Box *pool_take(BoxHost *host, Template *template, const KeeperLimits *limits);
void pool_tick(BoxHost *host);
void pool_fill(BoxHost *host);
void pool_fill_soon(BoxHost *host);               /* one was taken */
void pool_trouble(BoxHost *host, const char *id); /* it is given up, if it is one of the pool's */
bool pool_gone(BoxHost *host, const char *id);    /* true: it was one of the pool's */
void pool_warm(BoxHost *host);                    /* the keeper is there */
Box *pool_find(BoxHost *host, const char *id);
void pool_each(BoxHost *host, void (*func)(Box *box, void *data), void *data);

/* ---- host-expiry.c ---- */

void host_start_tick(BoxHost *host);
void host_tick(BoxHost *host);
void host_flush_used(BoxHost *host);

/* ---- host-load.c ---- */

KeeperEvents host_keeper_events(void);
void host_load_clear(BoxHost *host);

/* ---- host-upkeep.c ---- */

void host_upkeep(BoxHost *host);
void host_sweep_logs(BoxHost *host); /* folders that no row knows */
