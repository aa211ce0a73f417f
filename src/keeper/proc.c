/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/proc.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { USES_MAX = 64 };

static int
open_fresh(void)
{
    autofd context = fsopen("proc", FSOPEN_CLOEXEC);

    if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    return fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

int
proc_view_use(ProcView *view)
{
    if (view->fd >= 0 && view->uses < USES_MAX) {
        view->uses++;
        return view->fd;
    }
    proc_view_clear(view);
    view->fd = open_fresh();
    /* Whoever may not mount one has the host's. */
    if (view->fd < 0)
        view->fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    view->uses = 1;
    return view->fd;
}

void
proc_view_clear(ProcView *view)
{
    if (view->fd >= 0)
        close(view->fd);
    *view = (ProcView)PROC_VIEW_INIT;
}
