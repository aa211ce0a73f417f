/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/buf.h"
#include "base/loop.h"
#include "base/spawn.h"
#include "forge/repo-settings.h"
#include "forge/smart.h"

/* What smart*.c share. */

typedef struct Exchange Exchange;

enum {
    SMART_SPARES_MAX = 8,
    SMART_SPARE_MS = 3000, /* a client that will push does so long before */
};

struct Smart {
    Forge *forge;
    Loop *loop;
    Exchange *exchanges; /* list */
    guint n_exchanges;   /* spare ones too */
    guint n_spares;
};

/* ---- smart-env.c: what the child is told ---- */

typedef struct SmartAsk {
    SmartService service;
    const char *actor;
    const char *box_id, *branch; /* NULL: a person */
    bool may_force, may_advance;
    const char *default_branch;
    const RepoSettings *settings;
    const char *protocol; /* "version=2"; NULL: none */
    const char *encoding; /* "gzip"; NULL: none */
    const char *root;     /* of the repository */
} SmartAsk;

/* "name=value" of git's configuration. */
char **smart_settings(const SmartAsk *ask);
/* CGI's variables of a fetch, the hook's of a push (wire/hook.h). */
char **smart_env(const SmartAsk *ask);
/* Of git. */
const char *const *smart_args(SmartService service);

/* What a request may say of itself; false: `*ret_status` and the error say why not. */
bool smart_read_headers(HttpRequest *request, SmartAsk *ask, int *ret_status, GError **error);

/* ---- smart-head.c: the head of a CGI answer ---- */

enum { SMART_HEAD_MAX = 8 << 10 };

typedef struct SmartHead {
    int status;
    char *type;         /* NULL: none */
    GPtrArray *headers; /* name, value, name, value, … */
} SmartHead;
void smart_head_clear(SmartHead *head);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(SmartHead, smart_head_clear)

/* How long the head at the start of `bytes` is, with the empty line; 0: it has not ended. */
size_t smart_head_length(const guint8 *bytes, size_t n);
bool smart_head_parse(const guint8 *bytes, size_t n, SmartHead *ret_head, GError **error);
/* Where the child says no head: that of its answer, and what comes before it; NULL: it says one. */
const char *smart_begins(SmartService service, SmartHead *ret_head);

/* ---- smart-exchange.c: one request and its child ----
 *
 * It ends when the child was reaped, its pipes are at their end, the body's sink has ended and nobody
 * pulls the answer any more.  None of these waits for another once exchange_cut() was called. */
struct Exchange {
    Exchange *prev, *next;
    Smart *smart;         /* NULL: was freed */
    Repo *repo;           /* a reference */
    GitRepo *git;         /* a reference, for threads */
    HttpRequest *request; /* a reference; NULL: it is, or was, a spare one without */
    SmartAsk ask;         /* what it points to is below, static, or the repository's */
    char *actor, *box_id, *branch, *default_branch;
    RepoSettings *settings;

    Child *child; /* NULL: not started, or reaped */
    pid_t group;
    LoopWatch in, out, err, report; /* fd < 0: closed; armed 0: not watched */
    Buf to_child;
    Buf answer;           /* its head and what came with it */
    Buf said;             /* standard error */
    Buf moved;            /* what the hook has told */
    LoopTimer stall, end; /* of the whole, later of its last moments */
    bool spare;           /* waits for its request */
    bool body_over;       /* the sink has ended, or there is none */
    bool body_whole;      /* and everything came */
    bool paused;          /* the body waits for the child */
    bool answered;
    bool silent;      /* its output ended before it began */
    int code;         /* of the child that was reaped; -1: a signal */
    bool answer_over; /* nobody pulls any more */
    bool reading;     /* the settings */
    bool holding;     /* the keeper is asked for a group */
    bool telling;     /* what has moved is being written down */
    bool cut;
    guint over; /* source: it will be freed */
};

#define EXCHANGE_OF(member_ptr, member)                                                                      \
    ((Exchange *)(void *)((char *)(member_ptr)-G_STRUCT_OFFSET(Exchange, member)))

/* ---- smart-child.c ---- */

/* The child with its pipes; it waits. */
bool exchange_spawn(Exchange *x, ChildExitFunc on_end, GError **error);
/* In a group with limits, where there is a keeper.  Of a push nothing reaches it before it is there. */
void exchange_let_begin(Exchange *x);

/* ---- smart-answer.c: from the child to the client ---- */

void exchange_answer_init(Exchange *x);
/* The child was reaped. */
void exchange_reaped(Exchange *x);
/* What it said on standard error, into the log. */
void exchange_log_said(const Exchange *x, const char *message);

/* ---- smart-exchange.c ---- */

/* A pipe whose other end is closed is ready even when nothing is asked of it: it is in the loop only
 * while somebody waits for it. */
void exchange_watch(Exchange *x, LoopWatch *w, uint32_t events);
void exchange_unwatch(Exchange *x, LoopWatch *w);
void exchange_close_pipe(Exchange *x, LoopWatch *w);
void exchange_progress(Exchange *x);
/* False: it could not, and is gone. */
bool smart_exchange_start(Exchange *x);
/* The same in two steps: without a request, and what is done for one. */
bool exchange_come_up(Exchange *x, GError **error);
void exchange_attend(Exchange *x);
/* What has come for the child goes on to it, once it is in its group. */
void exchange_flush(Exchange *x);
/* The child is asked to end, and made to SMART_END_MS later; it goes on without its client. */
void exchange_cut(Exchange *x);
/* Answers where nothing has been said yet. */
void smart_exchange_refuse(Exchange *x, int status, const char *message);
/* Whatever it is at: the child is killed, nothing of it is in the loop any more. */
void exchange_close(Exchange *x);
/* Frees it before long, if it is over. */
void exchange_settle(Exchange *x);
/* What has moved is written down. */
void exchange_told(Exchange *x);

/* ---- smart-spare.c: children that are up before their push comes ----
 *
 * Who asks where to push to pushes in a moment.  Until then the child can be started and put into its group,
 * which takes longer than all else.  It has read nothing, and is what the request would have started,
 * variable by variable, or it is not used. */

/* Takes the settings of one that answers where to push to. */
void smart_make_spare(Exchange *x);
/* The spare one that is as this one would be, with its request; NULL: there is none. */
Exchange *smart_take_spare(Exchange *x);

/* ---- smart.c ---- */

Exchange *smart_exchange_new(Smart *s, Repo *repo, HttpRequest *request, const SmartCaller *caller);

void smart_drop(Exchange *x);
void exchange_free(Exchange *x);
/* What the hook has told becomes rows and events; exchange_told() later where it is `telling`. */
void smart_tell(Exchange *x);
