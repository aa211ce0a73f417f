/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/err.h"
#include "box/box.h"
#include "box/keeper-client.h"
#include "support/fake-templates.h"

/* Linked into a test program, these take the places of keeper-client.c, link.c and run.c: a
 * keeper that answers from the loop and outlives its server, and channels whose runs the test
 * ends.  One world at a time. */
void fake_boxes_reset(void);

/* ---- the keeper ---- */

/* Calls of these verbs wait until they are let go. */
void fake_keeper_hold(KeeperVerb verb);
void fake_keeper_release(KeeperVerb verb);
void fake_keeper_fail(KeeperVerb verb, ErrKind kind); /* the next call of this verb */
guint fake_keeper_calls(KeeperVerb verb);             /* ever made */
const KeeperRequest *fake_keeper_last(KeeperVerb verb);

bool fake_keeper_has(const char *id);
guint fake_keeper_live(void);
void fake_keeper_add(const char *id);    /* a box nobody asked for */
void fake_keeper_forget(const char *id); /* without a word */
void fake_keeper_gone(const char *id, int exit_code, guint oom_kills);
void fake_keeper_set_oom(guint kills); /* what STAT says */
void fake_keeper_tell(const KeeperAnswer *answer);
/* The connection breaks; `away`: and stays so until fake_keeper_return(). */
void fake_keeper_lose(bool away);
void fake_keeper_return(void);

/* ---- channels ---- */

BoxLink *fake_link_of(const char *box_id); /* NULL: none */
Run *fake_link_run(BoxLink *link, guint32 run);
/* A run that only init knows. */
void fake_link_find(BoxLink *link, guint32 run);
void fake_run_end(BoxLink *link, guint32 run, RunReason reason, int code);
void fake_run_ask_oom(BoxLink *link, guint32 run);
bool fake_run_is_oom(BoxLink *link, guint32 run);
void fake_link_close(BoxLink *link);
void fake_link_active(BoxLink *link);
void fake_link_set_alive(bool alive); /* what probes say */
char *fake_link_dup_last_env(void);   /* with spaces between */
const char *fake_link_last_user(void);
const char *fake_link_last_cwd(void);
guint fake_links_stopped(void);
guint fake_links_streamed(void); /* runs ever started */
