/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* In cgroup v2 a group that has processes cannot hand controllers to groups below it.  So the
 * supervisor moves itself, and with it every program it starts, into a leaf; what it was started
 * in is then free to hold the group of the boxes beside that leaf. */

/* Before anything is started.  True: we are in the leaf, the keeper is to be told.  False: there
 * is no need, or it cannot be done, which is logged: others are in our group, and we do not move
 * strangers. */
bool leaf_enter(void);

/* The same for a group's folder; `pid` is us. */
bool leaf_enter_at(const char *folder, int pid);
