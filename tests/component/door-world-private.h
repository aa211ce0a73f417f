/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "door-world.h"

/* What the files of the fixture share. */
typedef struct Server {
    LoopWatch watch; /* first */
    World *world;
} Server;

/* door-names.c */
void name_server_ready(LoopWatch *watch, uint32_t events);
