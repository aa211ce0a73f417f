/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Named places where a crash is most interesting.  COOP_FAIL_AT=name:n makes the n-th pass
 * (from 1) kill the process with SIGKILL, as a power cut or the OOM killer would.  Compiled
 * into developer builds only. */
#ifdef COOP_FAILPOINTS
void failpoint_hit(const char *name);
#define FAILPOINT(name) failpoint_hit(name)
#else
#define FAILPOINT(name) ((void)0)
#endif
