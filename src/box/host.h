/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/box.h"
#include "box/keeper-client.h"
#include "store/db.h"
#include "store/events.h"

/* All boxes of this server: makes them, hands them out by lease, keeps a pool of clean ones,
 * ends them when their time is over, and after a restart finds them again. */

enum {
    BOX_LIFE_MAX_MS = 24 * 3600 * 1000,
    BOX_UPKEEP_S = 60, /* orphans, health */
};

typedef struct BoxHostSpec {
    Loop *loop; /* borrowed, as are the next three */
    Db *db;
    EventLog *events;
    TemplateStore *templates;
    const char *home; /* logs are below it */
    const char *keeper_socket;
    const char *default_template;
    KeeperLimits limits;     /* of a box that names none */
    KeeperLimits limits_max; /* what one may ask for */
    gint64 lifetime_ms, idle_ms;
    guint boxes_per_key, boxes_max;
    guint pool;  /* clean boxes kept ready for each template in use; 0: none */
    guint disks; /* prepared disks */
    guint64 memory_floor_bytes, disk_floor_bytes; /* below: no new box */
    gint64 keep_rows_ms;                          /* how long rows and logs of ended boxes are kept */
    guint16 door_port;                            /* 0: no door */
    /* A box that is handed out, or was found again, has its way out: `fd` is its listener, the
     * callee's; and no more.  NULL: nobody wants to know. */
    void (*door_opened)(Box *box, int fd, guint64 cookie, void *ctx);
    void (*door_closed)(const char *id, void *ctx);
    /* A part works less well than it should (api_set_degraded); `reason` NULL: well again. */
    void (*degraded)(const char *part, const char *reason, void *ctx);
    void *ctx;
} BoxHostSpec;

BoxHost *box_host_new(const BoxHostSpec *spec);
/* Reads the rows and finds its boxes at the keeper; boxes can be asked for before that, and
 * wait.  `done` when the first LIST was worked through, or the keeper could not be reached. */
void box_host_load(BoxHost *host, DbDone done, void *data);
/* Boxes go on; only this end closes. */
void box_host_free(BoxHost *host);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BoxHost, box_host_free)

typedef struct BoxSpec {
    const char *owner, *actor;
    const char *template; /* NULL: the default one */
    const char *lease;    /* NULL: a box of its own; else the live box of that owner and lease */
    const char *name, *agent_id, *task_id, *squad_id, *repo_url; /* NULL: none */
    const char *const *env;                                      /* NULL: none */
    const char *metadata;                                        /* JSON object; NULL: none */
    KeeperLimits limits;                                         /* 0 in a field: the default */
    gint64 lifetime_ms, idle_ms;                                 /* 0: the default */
    bool keep; /* at its end it is paused for `keep_rows_ms`, not destroyed */
    /* A new box takes commands: before its row is written, and perhaps inside the call.  Whoever
     * has a first one starts it here, and waits for `done` with everything else.  NULL: nobody;
     * not called when the lease had the box. */
    void (*usable)(Box *box, void *data);
} BoxSpec;

/* ERR_INVALID, ERR_NOT_FOUND (template), ERR_LIMIT (caps: 429), ERR_UNAVAILABLE (template not
 * built, keeper away, tier off, memory), ERR_FULL (disk), ERR_CONFLICT (killed meanwhile).
 * `created` false: the lease had it.  Like every `done` here and in box.h, it runs from the loop or
 * from box_host_free(), never inside the call. */
typedef void (*BoxCreatedFunc)(Box *box, bool created, const GError *error, void *data);
void box_host_create(BoxHost *host, const BoxSpec *spec, BoxCreatedFunc done, void *data);

/* After ERR_LIMIT: in how many seconds the first of the boxes that are too many is over if nobody
 * touches it; 0: that is not known. */
gint64 box_host_room_s(BoxHost *host, const char *owner);

/* By box id, with or without "sb-", or by UUID; `owner` NULL: anybody's.  Only boxes that have
 * not ended.  Borrowed; NULL: none. */
Box *box_host_find(BoxHost *host, const char *id, const char *owner);
void box_host_each(BoxHost *host, const char *owner, void (*func)(Box *box, void *data), void *data);

/* Rows of boxes that have ended, newest first; and the commands of one box, ended ones
 * included, oldest first: as the API shows them. */
typedef void (*BoxRowsFunc)(Json *rows, const GError *error, void *data);
void box_host_ended(BoxHost *host, const char *owner, guint limit, BoxRowsFunc func, void *data);
void box_host_row(BoxHost *host, const char *id, const char *owner, BoxRowsFunc func, void *data);
void box_host_commands(BoxHost *host, const char *box_id, guint limit, BoxRowsFunc func, void *data);
/* A list with the one row, or without any. */
void box_host_command(BoxHost *host, const char *box_id, guint32 run, BoxRowsFunc func, void *data);
/* The folder with the logs of a box, ended or not. */
char *box_host_dup_log_folder(BoxHost *host, const char *box_id);

/* What every command finds in its environment, under what template and box say; copied.  Boxes
 * made before keep theirs. */
void box_host_set_env(BoxHost *host, const char *const *env);

/* Puts a child of this server, and what it starts from then on, into a group of its own with the limits
 * of memory, processes and processors; the rest of `limits` does not count.  Whatever is left in the
 * group when the child has ended is killed.  `pidfd` is borrowed.  ERR_UNAVAILABLE: no keeper, or
 * a machine that has no such groups; inside the call where there never was a keeper. */
typedef void (*BoxHeldFunc)(const GError *error, void *data);
void box_host_hold(BoxHost *host, int pidfd, const KeeperLimits *limits, BoxHeldFunc done, void *data);

/* The tier is off (the self-test failed): creates are refused with this reason.  NULL: on. */
void box_host_set_off(BoxHost *host, const char *reason);

typedef struct BoxHostStats {
    guint live, pooled, creating, paused;
    guint64 created, failed, expired, killed;
    guint64 from_pool;
    guint64 runs_started, runs_by_reason[RUN_REASON_MAX];
    guint64 runs_failed; /* of those that ended by an exit: with a code that is not 0 */
    guint64 run_us;      /* of all that ended */
    guint32 degraded;
    bool keeper_ready;
} BoxHostStats;
void box_host_stats(const BoxHost *host, BoxHostStats *ret_stats);
