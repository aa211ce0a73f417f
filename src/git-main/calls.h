/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* The system calls that git needs, and no other.  Sockets with `net` only; signals to other processes
 * only where something else keeps them from leaving (`scoped`).  Nothing leaves its session, so that
 * a signal to it reaches all.  False: errno. */
bool calls_enter(bool net, bool scoped);
