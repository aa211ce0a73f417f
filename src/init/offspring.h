/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <sys/types.h>

/* All descendants of the calling process, which is a child subreaper and has every signal
 * blocked.  A process whose parent dies becomes the child of its nearest living ancestor that is
 * a subreaper, hence none of them can get away. */

/* But for those in the group. */
void offspring_signal(pid_t except_group, int signal);
/* Until there is none.  `reap` waits for what can be waited for, without blocking. */
void offspring_kill(void (*reap)(void *ctx), void *ctx);
