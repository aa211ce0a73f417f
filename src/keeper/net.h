/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct NetSpec {
    int home_fd;        /* the keeper's own network namespace */
    int pidfd;          /* whose network it is */
    uint16_t door_port; /* 0: none */
    int proc_fd;        /* through which low ports are opened */
    bool low_ports;
} NetSpec;

/* Brings loopback up and opens the door's listener, before any code of the box runs: nothing
 * inside can have the port first.  Sets errno.  The keeper is back in its own network when this
 * returns; if it could not go back it would be of no use to anybody, and ends. */
bool net_open(const NetSpec *spec, int *ret_door_fd, uint64_t *ret_cookie);
