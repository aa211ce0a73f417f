/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/id.h"
#include "box/link.h"
#include "box/run.h"
#include "box/template.h"
#include "wire/record.h"
#include "json/json.h"

/* A box as the server knows it.
 *
 *   creating -> ready <-> paused
 *       |         |          |
 *       +---------+----------+--> stopping -> terminated
 *       +---------+----------+--> error (with its reason: lost, stuck, storage, failed, …)
 *
 * Of a box that is in error something may be left: one that is stuck is ended again and again;
 * one in trouble with its storage is frozen, and can be killed, or resumed if it was the host's
 * disk that ran full.
 *
 * `busy` is shown for a ready box with commands under way; it is no state of its own.  Every
 * change of state is one transaction with its event.  A box stays in memory until it has ended
 * and its end is written; afterwards it is a row. */
typedef struct Box Box;
typedef struct BoxHost BoxHost;

typedef enum BoxState {
    BOX_CREATING,
    BOX_READY,
    BOX_PAUSED,
    BOX_STOPPING,
    BOX_TERMINATED,
    BOX_ERROR,
    BOX_STATE_MAX,
} BoxState;

enum { BOX_ID_LEN = KEEPER_ID_LEN, BOX_NAME_MAX = 63, BOX_ENV_MAX = 256, BOX_METADATA_MAX = 16 * 1024 };

Box *box_ref(Box *box);
void box_unref(Box *box);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Box, box_unref)

/* Everything a face shows; strings are borrowed from the box. */
typedef struct BoxInfo {
    const char *id;    /* 20 characters of [a-z0-9]; the service face puts "sb-" before it */
    const char *uuid;  /* of the row */
    const char *owner; /* key id; "": made by the machine's owner over the control socket */
    const char *name, *template, *template_hash;
    const char *agent_id, *task_id, *squad_id, *repo_url, *lease; /* NULL: none */
    const char *metadata;                                         /* a JSON object as text */
    const char *shell; /* runs a line with -c: SHELL of its environment, or /bin/sh */
    BoxState state;
    bool busy;
    const char *reason; /* of ERROR and TERMINATED: "killed", "expired", "lost", …; else NULL */
    KeeperLimits limits;
    guint32 degraded;                                                  /* KeeperDegraded */
    gint64 created_us, updated_us, last_used_us, expires_us, ended_us; /* wall clock; 0: not yet */
    gint64 lifetime_ms, idle_ms;
    gint64 uptime_ms;
    guint64 executions; /* commands ever started */
    bool from_pool;
    bool sudo; /* its template lets commands be root inside */
} BoxInfo;
void box_info(const Box *box, BoxInfo *ret_info);
/* creating, ready, busy, paused, stopping, terminated, error */
const char *box_state_name(BoxState state, bool busy);
/* CREATED, RUNNING, TERMINATED, ERROR */
const char *box_status_name(BoxState state);
/* "ids", "memory", … of KeeperDegraded, NULL-terminated; a static table. */
void box_degraded_names(guint32 degraded, const char *ret_names[33]);

/* ---- what can be done with one ---- */

/* Commands: as box_link_start(), with the template's and the box's environment, user and
 * working folder for what the spec leaves out.  ERR_CONFLICT: paused, stopping or ended. */
Run *box_start(Box *box, const RunSpec *spec, const char *actor, GError **error);
Run *box_find_run(Box *box, guint32 run); /* borrowed; NULL: ended long ago, see box_host_command() */
/* The rows of commands that are in memory, which the store may not have yet, by id; the form is
 * that of box_host_commands().  NULL: no such one. */
Json *box_command_row(Box *box, guint32 run);
void box_each_command(Box *box, void (*func)(Json *row, void *data), void *data);
void box_connect(Box *box, guint16 port, BoxConnectFunc func, void *data);
/* Its link broke, and nobody has said yet what became of it. */
bool box_is_cut_off(const Box *box);
/* Someone uses it: the idle clock starts anew. */
void box_touch(Box *box);

typedef void (*BoxFunc)(Box *box, const GError *error, void *data);
/* `done` when nothing of it is left (or with an error: stuck).  A second call joins the first. */
void box_kill(Box *box, const char *reason, const char *actor, BoxFunc done, void *data);
void box_pause(Box *box, const char *actor, BoxFunc done, void *data);
void box_resume(Box *box, const char *actor, BoxFunc done, void *data);
/* Lives this long from now on, within the 24 h of its whole life. */
void box_renew(Box *box, gint64 lifetime_ms, const char *actor, BoxFunc done, void *data);

/* A folder of the generations, by its name, read-only at KEEPER_ATTACH_DIR/NAME inside.  ERR_CONFLICT:
 * another is being attached to this box.  Detached, it is not there for anybody any more. */
void box_mount(Box *box, const char *generation, BoxFunc done, void *data);
void box_unmount(Box *box, const char *generation, BoxFunc done, void *data);

typedef struct BoxUse {
    guint64 memory_bytes, memory_peak_bytes, disk_bytes, cpu_us;
    guint32 pids, inodes, oom_kills;
} BoxUse;
typedef void (*BoxUseFunc)(Box *box, const BoxUse *use, const GError *error, void *data);
void box_use(Box *box, BoxUseFunc func, void *data);
