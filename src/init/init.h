/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

/* Pid 1 of a box.  One thread, one loop.  It holds what runs in the box and says it to the
 * server over one channel (wire/frame.h); the server may go and come back.
 *
 * Nothing is queued for the server: what is to be said follows from the state of the runs, so a
 * server that does not read costs nothing and one that comes back is told everything again. */

enum { INIT_CHANNEL_FD = 3 };

/* With `sudo` the box's user may run commands as root (wire/sudo.h).
 *
 * Serves the channel on INIT_CHANNEL_FD until it is closed or a shutdown is done.  Returns the
 * exit code of pid 1, at once when the caller is not pid 1.  Descriptors 0…2 are open. */
int init_run(bool sudo);
