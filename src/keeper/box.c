/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a box.
 *
 *     CREATING -> RUNNING -> KILLING -> GONE
 *         |                     ^
 *         +---------------------+   it could not be made, or was killed before
 *
 * GONE is final: nothing of it is left.  One that could not be made goes through KILLING too,
 * because what there is of it is taken down by the same code. */
#include "keeper/box.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "keeper/keeper.h"

#define TO(state) (1u << (state))

static const struct {
    const char *name;
    unsigned next;
} states[BOX_STATE_MAX] = {
    [BOX_CREATING] = {"creating", TO(BOX_RUNNING) | TO(BOX_KILLING)},
    [BOX_RUNNING] = {"running", TO(BOX_KILLING)},
    [BOX_KILLING] = {"killing", TO(BOX_GONE)},
    [BOX_GONE] = {"gone", 0},
};

const char *
box_state_name(BoxState state)
{
    g_assert(state < BOX_STATE_MAX);
    return states[state].name;
}

bool
box_state_may_follow(BoxState from, BoxState to)
{
    g_assert(from < BOX_STATE_MAX && to < BOX_STATE_MAX);
    return (states[from].next & TO(to)) != 0;
}

void
box_set_state(Box *box, BoxState to)
{
    g_assert(box_state_may_follow(box->state, to));
    g_assert(to != BOX_GONE || box->holds == 0);
    log_debug("keeper", "state", log_str("box", box->id), log_str("from", box_state_name(box->state)),
              log_str("to", box_state_name(to)));
    box->state = to;
}

Box *
box_new(Keeper *keeper, const KeeperRequest *request)
{
    Box *box = g_new0(Box, 1);

    box->keeper = keeper;
    memcpy(box->id, request->box, KEEPER_ID_LEN);
    box->request = *request;
    box->slot = -1;
    box->entry.unified_fd = box->idmap_fd = -1;
    box->disk_mount_fd = box->disk_dir_fd = box->disk_image_fd = box->disk_device = -1;
    box->pidfd = box->channel_fd = box->sync_fd = box->door_fd = -1;
    box->handed[0] = box->handed[1] = -1;
    box->process_watch = box->sync_watch = box->attach_watch = (Watch)WATCH_INIT;
    box->next = keeper->boxes;
    keeper->boxes = box;
    keeper->n_boxes++;
    return box;
}

Box *
box_find(Keeper *keeper, const char *id)
{
    for (Box *box = keeper->boxes; box != NULL; box = box->next) {
        if (memcmp(box->id, id, KEEPER_ID_LEN) == 0)
            return box;
    }
    return NULL;
}

static void
close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void
box_close_handed(Box *box)
{
    cgroup_entry_clear(&box->entry);
    close_fd(&box->handed[0]);
    close_fd(&box->handed[1]);
}

void
box_free(Box *box)
{
    Box **at = &box->keeper->boxes;

    g_assert(box->state == BOX_GONE);
    while (*at != box)
        at = &(*at)->next;
    *at = box->next;
    box->keeper->n_boxes--;
    loop_remove(&box->keeper->loop, &box->sync_watch);
    loop_remove(&box->keeper->loop, &box->process_watch);
    box_close_handed(box);
    close_fd(&box->idmap_fd);
    close_fd(&box->sync_fd);
    close_fd(&box->channel_fd);
    close_fd(&box->door_fd);
    close_fd(&box->pidfd);
    g_free(box);
}
