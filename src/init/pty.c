/* SPDX-License-Identifier: Apache-2.0 */
#include "init/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { ROWS_DEFAULT = 24, COLUMNS_DEFAULT = 80 };

void
pty_resize(int master, uint16_t rows, uint16_t columns)
{
    struct winsize size = {.ws_row = rows > 0 ? rows : (uint16_t)ROWS_DEFAULT,
                           .ws_col = columns > 0 ? columns : (uint16_t)COLUMNS_DEFAULT};

    /* It fails on what is no terminal any more, and then nobody looks. */
    (void)ioctl(master, TIOCSWINSZ, &size);
}

bool
pty_open(uint16_t rows, uint16_t columns, int *ret_master, int *ret_slave)
{
    int unlock = 0;
    int slave = -1;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

    if (master < 0)
        return false;
    if (ioctl(master, TIOCSPTLCK, &unlock) == 0)
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) {
        int e = errno;

        close(master);
        errno = e;
        return false;
    }
    pty_resize(master, rows, columns);
    *ret_master = master;
    *ret_slave = slave;
    return true;
}
