/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <sys/types.h>

/* A running store-crash. */
typedef struct StoreChild {
    pid_t pid;
    int in, out;
} StoreChild;

/* `fail_at`: what COOP_FAIL_AT is set to, or NULL. */
void store_child_start(StoreChild *child, const char *fail_at, const char *mode, const char *path,
                       const char *argument);
/* Closes the pipes and waits; the status of waitpid(2). */
int store_child_wait(StoreChild *child);
