/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/pool.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "keeper/fork.h"
#include "keeper/idmap.h"
#include "keeper/keeper.h"

enum { REFILL_DELAY_US = 20 * 1000, REFILL_AGAIN_US = G_USEC_PER_SEC };

typedef struct Ready {
    struct Ready *next;
    int slot;
    char group[CGROUP_NAME_MAX + 1];
    CgroupEntry entry;
    int idmap_fd;
    DiskFds disk;
} Ready;

struct Pool {
    Keeper *keeper;
    Ready *ready;
    uint32_t n;
    KeeperLimits limits;
    uint32_t want;
    int64_t due_us;
};

Pool *
pool_new(Keeper *keeper)
{
    Pool *pool = g_new0(Pool, 1);

    pool->keeper = keeper;
    return pool;
}

static void
ready_free(Pool *pool, Ready *ready)
{
    Keeper *keeper = pool->keeper;

    cgroup_entry_clear(&ready->entry);
    if (ready->idmap_fd >= 0)
        close(ready->idmap_fd);
    if (ready->disk.mount >= 0)
        disks_drop(keeper->disks, ready->disk);
    /* Nobody was ever in it.  Should it stay nevertheless, it is found again as a stray. */
    if (ready->group[0] != '\0')
        (void)cgroup_remove(&keeper->groups, ready->group);
    if (ready->slot >= 0)
        ids_give_back(&keeper->ids, ready->slot);
    g_free(ready);
}

static Ready *
pop(Pool *pool)
{
    Ready *ready = pool->ready;

    pool->ready = ready->next;
    pool->n--;
    return ready;
}

void
pool_free(Pool *pool)
{
    while (pool->ready != NULL)
        ready_free(pool, pop(pool));
    g_free(pool);
}

void
pool_prepare(Pool *pool, const KeeperLimits *limits, uint32_t count)
{
    bool other = memcmp(limits, &pool->limits, sizeof *limits) != 0;
    DiskShape shape = {.bytes = limits->disk_bytes, .inodes = limits->inodes};

    pool->limits = *limits;
    pool->want = count;
    pool->due_us = 0;
    while (pool->ready != NULL && (other || pool->n > count))
        ready_free(pool, pop(pool));
    disks_prepare(pool->keeper->disks, shape, count - MIN(count, pool->n));
}

/* Without cgroups and id ranges of its own there is nothing that a disk in memory could wait for. */
static bool
can_prepare(const Pool *pool)
{
    return pool->keeper->privileged && pool->n < pool->want;
}

int64_t
pool_due_us(const Pool *pool)
{
    const Disks *disks = pool->keeper->disks;

    return can_prepare(pool) && storage_has_room(pool->keeper->storage) &&
                   (disks_ready(disks) > 0 || disks_lack(disks, pool->want - pool->n))
               ? pool->due_us
               : INT64_MAX;
}

static bool
fill(Pool *pool, Ready *ready)
{
    Keeper *keeper = pool->keeper;

    ready->slot = ids_take(&keeper->ids);
    if (ready->slot < 0) {
        errno = EUSERS;
        return false;
    }
    cgroup_name(ready->slot, ready->group);
    if (!cgroup_make(&keeper->groups, ready->group, &pool->limits) ||
        !cgroup_enter_prepare(&keeper->groups, ready->group, &ready->entry))
        return false;
    ready->idmap_fd = fork_raise_fd(
        idmap_make(keeper->config.template_base, ids_base_of(&keeper->ids, ready->slot)));
    return ready->idmap_fd >= 0 && disks_take_ready(keeper->disks, &ready->disk) &&
           idmap_apply(ready->disk.mount, ready->idmap_fd);
}

void
pool_refill(Pool *pool)
{
    Disks *disks = pool->keeper->disks;

    /* Those that boxes take directly, and the raw ones that become ready here, are replaced. */
    disks_want(disks, pool->want - MIN(pool->want, pool->n));
    if (disks_failed(disks))
        pool->due_us = keeper_mono_us() + REFILL_AGAIN_US;
    if (disks_ready(disks) == 0)
        return;
    Ready *ready = g_new0(Ready, 1);

    *ready = (Ready){.slot = -1, .entry = {.unified_fd = -1}, .idmap_fd = -1, .disk = DISK_FDS_NONE};
    if (!fill(pool, ready)) {
        log_warn("keeper", "cannot prepare a box", log_str("error", g_strerror(errno)));
        ready_free(pool, ready);
        pool->due_us = keeper_mono_us() + REFILL_AGAIN_US;
        return;
    }
    ready->next = pool->ready;
    pool->ready = ready;
    pool->n++;
    disks_want(disks, pool->want - pool->n);
}

bool
pool_take(Pool *pool, Box *box)
{
    const KeeperRequest *r = &box->request;

    pool->due_us = MAX(pool->due_us, keeper_mono_us() + REFILL_DELAY_US);
    if (pool->ready == NULL || (r->flags & KEEPER_KEEP_DISK) != 0 ||
        memcmp(&r->limits, &pool->limits, sizeof r->limits) != 0)
        return false;
    Ready *ready = pop(pool);

    box->slot = ready->slot;
    memcpy(box->group, ready->group, sizeof box->group);
    box->entry = ready->entry;
    box->idmap_fd = ready->idmap_fd;
    box->disk_mount_fd = ready->disk.mount;
    box->disk_image_fd = ready->disk.image;
    box->disk_device = ready->disk.device;
    box->holds |= HOLDS_SLOT | HOLDS_GROUP | HOLDS_DISK;
    g_free(ready);
    return true;
}

bool
pool_shrink(Pool *pool)
{
    if (pool->ready == NULL)
        return false;
    ready_free(pool, pop(pool));
    pool->due_us = keeper_mono_us() + REFILL_AGAIN_US;
    return true;
}

bool
pool_has_group(const Pool *pool, const char *group)
{
    for (const Ready *ready = pool->ready; ready != NULL; ready = ready->next) {
        if (strcmp(ready->group, group) == 0)
            return true;
    }
    return false;
}
