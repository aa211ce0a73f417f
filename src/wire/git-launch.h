/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between whoever starts coop-git and that program. */
enum {
    GIT_LAUNCH_REFUSED = 124, /* exit code: the repository is not as we made it */
    GIT_LAUNCH_FAILED = 125,  /* exit code: git was not started; standard error says why */
    GIT_LAUNCH_WAIT_FD = 3, /* --wait: one byte here lets it go on, the end of it ends it; git inherits it */
    /* --config: git's own configuration in the place of a user's, as a file that git opens anew each time. */
    GIT_LAUNCH_CONFIG_FD = 4,
};
#define GIT_LAUNCH_CONFIG "GIT_CONFIG_GLOBAL=/proc/self/fd/4"
