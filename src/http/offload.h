/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "http/loop.h"

/* The pool behind http_loop_offload(); private to this folder. */
typedef struct HttpOffload HttpOffload;

HttpOffload *offload_new(HttpLoop *loop);
/* Waits for the work under way and delivers every `done` that is left. */
void offload_free(HttpOffload *offload);
void offload_push(HttpOffload *offload, void (*work)(void *data), void (*done)(void *data), void *data);
