/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/folder-watch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "keeper/folder.h"
#include "keeper/fork.h"
#include "keeper/keeper.h"

enum {
    LOOK_US = G_USEC_PER_SEC,
    REST_TIMES = 20, /* a large tree is left alone for so many times what its measure took */
};

struct FolderWatch {
    Keeper *keeper;
    char box[KEEPER_ID_LEN + 1]; /* that is being measured */
    int pidfd;                   /* -1: no helper runs */
    int64_t began_us;
    Watch result;
};

FolderWatch *
folder_watch_new(Keeper *keeper)
{
    FolderWatch *watch = g_new0(FolderWatch, 1);

    watch->keeper = keeper;
    watch->pidfd = -1;
    watch->result = (Watch)WATCH_INIT;
    return watch;
}

static void
end_helper(FolderWatch *watch)
{
    int fd = watch->result.fd;

    loop_remove(&watch->keeper->loop, &watch->result);
    if (fd >= 0)
        close(fd);
    if (watch->pidfd < 0)
        return;
    (void)fork_reap(watch->pidfd);
    close(watch->pidfd);
    watch->pidfd = -1;
}

void
folder_watch_free(FolderWatch *watch)
{
    int fd = watch->result.fd;

    /* The helper dies with us. */
    loop_remove(&watch->keeper->loop, &watch->result);
    if (fd >= 0)
        close(fd);
    if (watch->pidfd >= 0)
        close(watch->pidfd);
    g_free(watch);
}

static bool
is_measured(const Box *box)
{
    return box->in_folder && box->state == BOX_RUNNING;
}

static Box *
find_next(const FolderWatch *watch)
{
    Box *next = NULL;

    for (Box *box = watch->keeper->boxes; box != NULL; box = box->next) {
        if (is_measured(box) && (next == NULL || box->measure_due_us < next->measure_due_us))
            next = box;
    }
    return next;
}

int64_t
folder_watch_due_us(const FolderWatch *watch)
{
    const Box *next = watch->pidfd < 0 ? find_next(watch) : NULL;

    return next != NULL ? next->measure_due_us : INT64_MAX;
}

static void
take_measure(FolderWatch *watch, Box *box, DiskShape used)
{
    const KeeperLimits *limits = &box->request.limits;
    int64_t now = keeper_mono_us();

    box->disk_used = used;
    box->measure_due_us = now + MAX((int64_t)LOOK_US, (now - watch->began_us) * REST_TIMES);
    if (used.bytes <= limits->disk_bytes && used.inodes <= limits->inodes)
        return;
    storage_stop_box(box, EDQUOT);
    /* Where nothing can be frozen it would go on. */
    if (!box->frozen)
        box_kill(box);
}

static void
on_result(void *ctx, uint32_t events)
{
    FolderWatch *watch = ctx;
    DiskShape used = {0};
    ssize_t n = read(watch->result.fd, &used, sizeof used);

    end_helper(watch);
    Box *box = box_find(watch->keeper, watch->box);

    if (box == NULL || !is_measured(box))
        return;
    if (n != sizeof used)
        log_warn("keeper", "the disk of a box was not measured", log_str("box", box->id));
    take_measure(watch, box, n == sizeof used ? used : box->disk_used);
}

_Noreturn static void
measure(const Box *box, int fd)
{
    const KeeperLimits *limits = &box->request.limits;
    int keep[] = {STDERR_FILENO, fd, box->keeper->state_fd};
    DiskShape most = {.bytes = limits->disk_bytes, .inodes = limits->inodes};
    char name[FOLDER_NAME_MAX];

    fork_detach(keep, G_N_ELEMENTS(keep));
    folder_name(box->id, name);
    DiskShape used = folder_measure(box->keeper->state_fd, name, most);

    _exit(write(fd, &used, sizeof used) == sizeof used ? 0 : 1);
}

void
folder_watch_look(FolderWatch *watch)
{
    Box *box = watch->pidfd < 0 ? find_next(watch) : NULL;
    int ends[2];

    if (box == NULL)
        return;
    watch->began_us = keeper_mono_us();
    box->measure_due_us = watch->began_us + LOOK_US;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    autofd writer = ends[1];
    pid_t pid = fork_held(0, -1, &watch->pidfd);

    if (pid == 0)
        measure(box, writer);
    watch->result = (Watch){.fd = -1, .func = on_result, .ctx = watch};
    if (pid > 0 && loop_add(&watch->keeper->loop, &watch->result, ends[0], EPOLLIN)) {
        memcpy(watch->box, box->id, sizeof watch->box);
        return;
    }
    close(ends[0]);
    end_helper(watch);
}
