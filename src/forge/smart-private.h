/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/buf.h"
#include "base/loop.h"
#include "base/spawn.h"
#include "forge/repo-settings.h"
#include "forge/smart.h"

/* What smart*.c share. */

typedef struct Exchange Exchange;

struct Smart {
    Forge *forge;
    Loop *loop;
    Exchange *exchanges; /* list */
    guint n_exchanges;
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
/* CGI's variables and those of the hook (hook/hook.h). */
char **smart_env(const SmartAsk *ask);

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

/* ---- smart-exchange.c: one request and its child ----
 *
 * It ends when the child was reaped, its pipes are at their end, the body's sink has ended and nobody
 * pulls the answer any more.  None of these waits for another once exchange_cut() was called. */
struct Exchange {
    Exchange *prev, *next;
    Smart *smart;         /* NULL: was freed */
    Repo *repo;           /* a reference */
    GitRepo *git;         /* a reference, for threads */
    HttpRequest *request; /* a reference */
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
    bool body_over;       /* the sink has ended, or there is none */
    bool body_whole;      /* and everything came */
    bool paused;          /* the body waits for the child */
    bool answered;
    bool answer_over; /* nobody pulls any more */
    bool reading;     /* the settings */
    bool holding;     /* the keeper is asked for a group */
    bool telling;     /* what has moved is being written down */
    bool cut;
    guint over; /* source: it will be freed */
};

/* ---- smart-child.c ---- */

/* The child with its pipes; it waits. */
bool exchange_spawn(Exchange *x, ChildExitFunc on_end, GError **error);
/* In a group with limits, where there is a keeper. */
void exchange_let_begin(Exchange *x);

/* ---- smart-exchange.c ---- */

void exchange_start(Exchange *x);
/* The child is asked to end, and made to SMART_END_MS later; it goes on without its client. */
void exchange_cut(Exchange *x);
/* Answers where nothing has been said yet. */
void exchange_refuse(Exchange *x, int status, const char *message);
/* Whatever it is at: the child is killed, nothing of it is in the loop any more. */
void exchange_close(Exchange *x);
/* Frees it before long, if it is over. */
void exchange_settle(Exchange *x);
/* What has moved is written down. */
void exchange_told(Exchange *x);

/* ---- smart.c ---- */

void smart_drop(Exchange *x);
void exchange_free(Exchange *x);
/* What the hook has told becomes rows and events; exchange_told() later where it is `telling`. */
void smart_tell(Exchange *x);
