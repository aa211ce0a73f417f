/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "box/run.h"

/* The server's end of one box's channel: says HELLO, starts runs, moves their bytes, and
 * acknowledges what was written down.  The peer is hostile: what init sends is checked
 * against what can be, and nonsense ends the link, never the server. */
typedef struct BoxLink BoxLink;

typedef struct BoxLinkEvents {
    void (*ready)(BoxLink *link, void *ctx); /* init's HELLO came: runs can be started */
    /* A run that init has and `spec.runs` did not name: output and end follow as for others.
     * The callee may run_abandon() it. */
    void (*found)(BoxLink *link, Run *run, void *ctx);
    void (*started)(BoxLink *link, Run *run, void *ctx);
    /* A logged run has ended and its log is whole.  box_link_forget() once that is written
     * down. */
    void (*ended)(BoxLink *link, Run *run, void *ctx);
    /* A run died by SIGKILL, or with 137: answer by box_link_set_oom() whether the kernel
     * killed for memory; its end waits for that. */
    void (*ask_oom)(BoxLink *link, Run *run, void *ctx);
    void (*active)(BoxLink *link, void *ctx); /* bytes of a run moved; at most once a second */
    /* The channel broke or init talks nonsense (`error`).  Every run has ended as RUN_LOST, or
     * RUN_STOPPED after box_link_stop(). */
    void (*closed)(BoxLink *link, const GError *error, void *ctx);
} BoxLinkEvents;

/* What is known from before a restart of the server. */
typedef struct BoxLinkRun {
    guint32 run;
    bool terminal;
    gint64 started_us;
} BoxLinkRun;

typedef struct BoxLinkSpec {
    Loop *loop;
    int fd;             /* taken */
    const char *folder; /* of the box's logs; made when the first is needed */
    const BoxLinkRun *runs;
    size_t n_runs;
    guint32 last_run; /* the highest id of a logged run that was ever used */
    BoxLinkEvents events;
    void *ctx;
} BoxLinkSpec;

BoxLink *box_link_new(const BoxLinkSpec *spec, GError **error);
/* No event and no callback of a run after this; runs that others hold have ended as RUN_LOST. */
void box_link_free(BoxLink *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BoxLink, box_link_free)

/* The caller owns a reference.  The start is in the channel at once, unless that is full.  ERR_LIMIT: too
 * many runs; ERR_INVALID: a string too long, a name with '=' or such; ERR_UNAVAILABLE: closed. */
Run *box_link_start(BoxLink *link, const RunSpec *spec, GError **error);
Run *box_link_find(BoxLink *link, guint32 run); /* borrowed; NULL: none live, or forgotten */
void box_link_each(BoxLink *link, void (*func)(Run *run, void *data), void *data);
guint box_link_live(const BoxLink *link); /* logged runs that go on */
void box_link_forget(BoxLink *link, Run *run);
void box_link_set_oom(BoxLink *link, Run *run, bool oom);

/* A connection to a port on the box's loopback; `fd` is the callee's, non-blocking.  At most
 * once; ERR_UNAVAILABLE: refused; ERR_TIMEOUT. */
typedef void (*BoxConnectFunc)(int fd, const GError *error, void *data);
void box_link_connect(BoxLink *link, guint16 port, BoxConnectFunc func, void *data);

/* Whether init still answers, within BOX_LINK_PROBE_MS. */
enum { BOX_LINK_PROBE_MS = 10000 };
void box_link_probe(BoxLink *link, void (*func)(bool alive, void *data), void *data);

/* Asks init to end everything. */
void box_link_stop(BoxLink *link);
