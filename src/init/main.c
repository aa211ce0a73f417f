/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "init/init.h"

/* The numbers below the channel's must be taken, or a pipe of a run could get one of them. */
static int
fill_low_fds(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd < INIT_CHANNEL_FD);
    if (fd > INIT_CHANNEL_FD)
        close(fd);
    return fd;
}

/* The keeper has made the box, set what pid 1 may do and tied its life to its own; the channel
 * is INIT_CHANNEL_FD; the word "sudo" says that the template allows it. */
int
main(int argc, char **argv)
{
    if (fcntl(INIT_CHANNEL_FD, F_GETFD) < 0 || fill_low_fds() < 0)
        return 1;
    return init_run(argc > 1 && strcmp(argv[1], "sudo") == 0);
}
