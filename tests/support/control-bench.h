/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "door/control.h"
#include "door/link.h"

/* The door's end of the control protocol with all its parts, and a server that the test plays; or the
 * server's end, and a door that the test plays. */
typedef struct ControlBench {
    Loop *loop;
    char *folder, *path; /* path: of the socket */
    int listener;        /* of a door that is played; else -1 */
    OwnAddresses *own;
    Dialer *dialer;
    FactLog *facts;
    PriceTable *prices;
    Budgets *budgets;
    Gate *gate;
    DoorVault *vault;
    Door *door;
    DoorControl *control;
    DoorLink *link;
    guint ups, downs, heard, forwarded;
} ControlBench;

ControlBench *control_bench_new_door(void);
ControlBench *control_bench_new_link(void); /* with the boxes "one" and "two", and not connected */
void control_bench_free(ControlBench *bench);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ControlBench, control_bench_free)

/* Everything that can be done without waiting is done. */
void control_bench_turn(ControlBench *bench);
/* The other end, connected. */
int control_bench_join(ControlBench *bench);
/* The next packet; NULL: none has come, or no JSON. */
Json *control_bench_hear(int fd);
void control_bench_say(int fd, const char *text, int with); /* `with` -1: no fd */
/* A TCP listener of this network, and its cookie as digits. */
int control_bench_listener(char **ret_cookie);
guint control_bench_fds(void); /* open in this process */
