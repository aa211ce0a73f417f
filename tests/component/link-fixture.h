/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/loop.h"
#include "box/file-op.h"
#include "box/link.h"

/* The program coop-init as pid 1 of a pid namespace, and a link to it on a loop. */
typedef struct LinkBox {
    Loop *loop;
    pid_t pid;
    int kept; /* the keeper's copy of the channel */
    char *folder;
    BoxLink *link;
    guint32 last_run;
    /* what the link told */
    guint ready, found, started, ended, oom, active, closed;
    char *error; /* of closed */
    Run *last_found;
    bool answer_oom, is_oom, forget, abandon_found;
} LinkBox;

LinkBox *link_box_new(void);
/* Only the loop and the folder; the other end of the channel is the caller's. */
LinkBox *link_box_scripted(int *ret_peer);
/* Closes the channel and waits for the end of pid 1: its exit code, or -signal. */
int link_box_free(LinkBox *box);
/* Drops the link, as a kill would, and makes one with what a new server knows. */
void link_box_restart(LinkBox *box, const BoxLinkRun *runs, size_t n_runs);
void link_box_attach(LinkBox *box, int fd, const BoxLinkRun *runs, size_t n_runs);

/* For file operations, over the link alone. */
FilePlace link_box_place(LinkBox *box);

/* Turns the loop until it holds; a minute without is a failure. */
void turn_until(bool (*done)(void *data), void *data);
void turn_until_count(const guint *count, guint n);
void turn_until_ended(Run *run);
/* What is ready, without waiting. */
void turn_some(guint n);

/* argv is a shell line. */
Run *link_box_shell(LinkBox *box, unsigned flags, const char *line);
Run *link_box_stream(LinkBox *box, unsigned flags, const char *line, const RunSink *sink, void *ctx);

/* Everything a follower gives until the run has ended or `max` bytes came. */
typedef struct Followed {
    GByteArray *out[2];
    guint64 gaps[2];
    guint64 at[2];
    bool ended, failed, go;
    RunFollower *follower;
} Followed;
void followed_begin(Followed *f, Run *run, guint64 out, guint64 err);
/* Takes what is there; false: nothing more for now. */
bool followed_step(Followed *f);
void followed_to_end(Followed *f);
char *followed_text(const Followed *f, int stream);
void followed_clear(Followed *f);
/* All of a stream that has ended, as text. */
char *run_text(Run *run, int stream);
