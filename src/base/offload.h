/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/loop.h"

/* Threads of one's own, for work that would hold those of loop_offload() too long. */
typedef struct Offload Offload;

Offload *offload_new(Loop *loop, guint threads);
/* Waits for the work under way and delivers every `done` that is left. */
void offload_free(Offload *offload);
/* As loop_offload(). */
void offload_push(Offload *offload, void (*work)(void *data), void (*done)(void *data), void *data);
