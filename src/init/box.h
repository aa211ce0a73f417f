/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "init/run.h"
#include "wire/channel.h"
#include "wire/frame.h"

/* Everything that pid 1 knows.  One mapping of zero pages: what is not used is not there. */

enum {
    CONNECTS_MAX = 64,
    REFUSALS_MAX = FRAME_RUNS_MAX + CONNECTS_MAX, /* a server asks for no more at a time */
    SINKS_MAX = 512, /* pipes of runs that ended, whose background processes still write */
    SUDO_MAX = 16,   /* commands by sudo at a time */
    CONNECT_TIMEOUT_MS = 5000,
    SHUTDOWN_TERM_MS = 1000, /* between SIGTERM and SIGKILL */
    SHUTDOWN_SAY_MS = 2000,  /* for the server to hear the ends */
};

/* The way of a CONNECT: tried, then an answer is owed. */
typedef struct Connect {
    bool used, done, watched;
    uint8_t step; /* which loopback address */
    uint16_t port;
    uint32_t asked; /* the server's number for it */
    int fd;
    int error;
    uint64_t deadline_us;
} Connect;

typedef enum BoxStop { STOP_NOT, STOP_TERM, STOP_KILL, STOP_SAY } BoxStop;

typedef struct Box {
    int epoll_fd, signal_fd, timer_fd;
    int sudo_fd;          /* 0: this box has none */
    bool sudo_paused;     /* not watched: there was no descriptor for a client */
    int leases[SUDO_MAX]; /* 0: free */
    bool gone;            /* the channel is closed */
    bool channel_full;    /* EPOLLOUT is asked for */
    bool retry;           /* the kernel had no memory for a packet */
    bool owe_hello;
    uint64_t hello_number; /* the server's */
    BoxStop stop;
    uint64_t stop_us;   /* end of this stage of the stop */
    uint64_t timer_us;  /* what the timer is set to; 0: off */
    uint32_t n_slots;   /* runs[] below this have been used */
    uint32_t next_slot; /* who speaks first next time */
    uint32_t n_sinks, n_refusals;
    uint32_t channel_events; /* what epoll watches it for */
    UserMemory memory;
    StartWay way;
    Run runs[FRAME_RUNS_MAX];
    Connect connects[CONNECTS_MAX];
    FrameHead refusals[REFUSALS_MAX]; /* owed to the server that asked */
    /* Buffers of one call each; large, so not on a stack that forks copy. */
    uint8_t packet[CHANNEL_PACKET_MAX] __attribute__((aligned(8)));
    uint8_t scratch[FRAME_DATA_MAX];
    FrameStart start;
    FrameRun hello[FRAME_RUNS_MAX];
} Box;

uint64_t now_us(void);

/* loop.c */
typedef enum WatchKind {
    WATCH_CHANNEL,
    WATCH_SIGNAL,
    WATCH_TIMER,
    WATCH_RUN,
    WATCH_CONNECT,
    WATCH_SINK,
    WATCH_SUDO,
    WATCH_LEASE
} WatchKind;
bool box_watch(Box *box, int op, int fd, uint32_t events, uint64_t data);
uint64_t watch_data(WatchKind kind, uint32_t slot, uint32_t id);

/* hear.c: one packet from the server, with the descriptor that came along, or -1. */
void box_hear(Box *box, size_t n, int fd);
/* say.c: sends what is owed until the channel is full. */
void box_say(Box *box);

/* connect.c */
/* False: too many at once. */
bool connect_begin(Box *box, uint32_t asked, uint32_t port);
void connect_on_event(Box *box, Connect *c);
void connect_on_time(Box *box, uint64_t now);
/* Forgets the answers that a server that is gone did not fetch. */
void connect_clear(Box *box);
void connect_done(Connect *c);
