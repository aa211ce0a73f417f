/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/loop.h"

/* The pool behind loop_offload(); private to this folder. */
typedef struct Offload Offload;

Offload *offload_new(Loop *loop);
/* Waits for the work under way and delivers every `done` that is left. */
void offload_free(Offload *offload);
void offload_push(Offload *offload, void (*work)(void *data), void (*done)(void *data), void *data);
