/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "box/host.h"
#include "forge/git.h"

/* What a git that works on much may take, with all it starts. */
extern const KeeperLimits git_hold_limits;

/* The way of the forge's threads to the keeper, which is the loop's. */

GitHolder *git_holder_new(BoxHost *boxes); /* on the loop; borrowed until git_holder_close() */
/* From then on nothing is held. */
void git_holder_close(GitHolder *holder);
GitHolder *git_holder_ref(GitHolder *holder);
void git_holder_unref(GitHolder *holder);

/* From a thread: waits for the loop and the keeper, as long as `cancel` (may be NULL) is 0 and for
 * GIT_HOLD_MS at most.  False: the process is in no group of its own. */
enum { GIT_HOLD_MS = 5000 };
bool git_holder_hold(GitHolder *holder, int pidfd, const gint *cancel, GError **error);
