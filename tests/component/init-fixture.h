/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "wire/frame.h"

/* A box's init as pid 1 of a pid namespace, and the server's end of its channel.  The server
 * here checks every frame: offsets without hole or overlap, windows, one end for each run. */

typedef struct TestRun {
    uint32_t id;
    bool started, ended, failed, known;
    uint32_t pid, stage, error;
    FrameEnd end;
    GByteArray *out[2]; /* what was heard, dropped bytes left out */
    uint64_t offset[2]; /* everything below was heard */
    uint64_t dropped[2];
    uint64_t flying[2]; /* data since the last ack */
    uint64_t in_acked;
    bool keep; /* the bytes in out[] */
    void (*on_data)(struct TestRun *run, int stream, uint64_t offset, const guint8 *bytes, size_t n);
} TestRun;

typedef struct TestBox {
    bool reuses_runs;   /* starts one of an ended run's number, whose frames are not for the first */
    int channel, spare; /* spare: the keeper's copy */
    pid_t pid;
    GHashTable *runs;
    bool hello, hold_acks, wait_hello;
    FrameRun hello_runs[FRAME_RUNS_MAX];
    guint n_hello;
    uint64_t generation; /* of the server */
    int connected_fd, connect_error;
    bool connect_done;
    guint8 *packet;
    int pass_fd;      /* goes with the next start; 0: none */
    uint32_t next_id; /* of box_op() and box_expect(), far from those that tests choose */
} TestBox;

typedef bool (*BoxTest)(TestBox *box, void *data);

TestBox *box_new(void);
/* With coop-sudo in /tmp/bin, in a network namespace of its own. */
TestBox *box_new_sudo(bool allowed);
/* Closes the channel and waits for the end of pid 1: its exit code, or -signal. */
int box_free(TestBox *box);

/* argv is a shell line. */
TestRun *box_shell(TestBox *box, uint32_t id, uint32_t flags, const char *line);
TestRun *box_start(TestBox *box, uint32_t id, const FrameStart *start);
void box_send(TestBox *box, FrameHead head, const void *body);
/* Hears frames until the condition holds; a minute without is a failure. */
void box_until(TestBox *box, BoxTest done, void *data);
void box_until_ended(TestBox *box, TestRun *run);
void box_until_started(TestBox *box, TestRun *run);
void box_until_bytes(TestBox *box, TestRun *run, uint64_t n);
/* Handles what is there, without waiting; how many frames. */
guint box_hear_some(TestBox *box, guint max);
/* The server was killed: what it had heard and not written down is forgotten. */
void box_restart_server(TestBox *box);
void box_forget(TestBox *box, TestRun *run);
void box_write(TestBox *box, TestRun *run, uint64_t offset, const void *bytes, size_t n);
/* A built-in operation in /tmp; its words are separated by spaces. */
TestRun *box_op_start(TestBox *box, uint32_t flags, const char *line);
/* And its end, which is an exit. */
TestRun *box_op(TestBox *box, const char *line);
/* A shell line and what it must print. */
void box_expect(TestBox *box, const char *line, const char *want);
/* All of it, as fast as init takes it, and the end of input. */
void box_feed(TestBox *box, TestRun *run, const void *bytes, size_t n);
/* A Python program in the box; its output is the run's. */
TestRun *box_python(TestBox *box, uint32_t flags, const char *program);
FrameStart *box_spec(uint32_t flags, const char *line);
char *test_run_text(const TestRun *run);
/* Hears until the run's output has the text. */
void box_until_text(TestBox *box, TestRun *run, const char *text);
