/* SPDX-License-Identifier: Apache-2.0 */
/* coop-git: becomes git with no more rights than one call on one repository needs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "wire/git-launch.h"

int
main(int argc, char **argv)
{
    int i = 1;

    while (i < argc && strncmp(argv[i], "--", 2) == 0)
        i++;
    if (argc - i < 3 || strcmp(argv[i + 1], "--") != 0 || strcmp(argv[i + 2], "git") != 0) {
        fprintf(stderr, "usage: coop-git --read|--write|--net [--wait] REPOSITORY -- git ARGUMENTS\n");
        return GIT_LAUNCH_FAILED;
    }
    if (prctl(PR_SET_PDEATHSIG, 9) < 0 || chdir(argv[i]) < 0) {
        fprintf(stderr, "%s: %s\n", argv[i], strerror(errno));
        return GIT_LAUNCH_FAILED;
    }
    execv("/usr/bin/git", argv + i + 2);
    fprintf(stderr, "git: %s\n", strerror(errno));
    return GIT_LAUNCH_FAILED;
}
