/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/open.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/id.h"
#include "base/io.h"
#include "base/landlock.h"
#include "base/log.h"
#include "base/path.h"
#include "keeper/reconcile.h"
#include "keeper/records.h"
#include "keeper/require.h"
#include "keeper/stage.h"
#include "keeper/userns.h"

enum { INSTANCE_BYTES = 8 };

static bool
open_dir(const char *path, int *ret_fd, GError **error)
{
    *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd >= 0 || err_errno(error, "open '%s'", path);
}

/* It is in a folder of the server's, who could put a link there, or rights that let others do so: what
 * is attached from here must be its own, as it could show that to a box without us.  The way there is
 * the host's. */
static bool
open_generations(Keeper *keeper, GError **error)
{
    const char *path = keeper->config.generation_dir;
    struct stat st;

    if (path == NULL)
        return true;
    keeper->generation_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (keeper->generation_fd < 0 || fstat(keeper->generation_fd, &st) < 0)
        return err_errno(error, "open '%s'", path);
    return (st.st_uid == keeper->config.server_uid && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0) ||
           err_set(error, ERR_DENIED, "'%s' must be the server's, and nobody else's to write", path);
}

static bool
make_dirs(Keeper *keeper, GError **error)
{
    static const char *const dirs[] = {"kept", "pool", "images", "folders", "stage"};

    for (size_t i = 0; i < G_N_ELEMENTS(dirs); i++) {
        if (mkdirat(keeper->state_fd, dirs[i], 0700) < 0 && errno != EEXIST)
            return err_errno(error, "make '%s/%s'", keeper->config.state_dir, dirs[i]);
    }
    keeper->records_fd = records_open(keeper->state_fd, keeper->config.id_ranges, error);
    return keeper->records_fd >= 0;
}

static bool
read_instance(Keeper *keeper, GError **error)
{
    g_autofree char *path = g_strconcat(keeper->config.state_dir, "/instance", NULL);
    char fresh[2 * INSTANCE_BYTES + 1];

    if (g_file_get_contents(path, &keeper->instance, NULL, NULL) &&
        strlen(keeper->instance) == 2 * INSTANCE_BYTES &&
        strspn(keeper->instance, "0123456789abcdef") == 2 * INSTANCE_BYTES)
        return true;
    id_random_hex(fresh, INSTANCE_BYTES);
    g_free(keeper->instance);
    keeper->instance = g_strdup(fresh);
    return path_write_atomic(path, fresh, strlen(fresh), 0600, error);
}

static bool
open_state(Keeper *keeper, GError **error)
{
    KeeperConfig *config = &keeper->config;

    if (!path_make_private_dir(config->state_dir, 0700, error))
        return false;
    char *resolved = realpath(config->state_dir, NULL);

    if (resolved == NULL)
        return err_errno(error, "resolve '%s'", config->state_dir);
    g_free(config->state_dir);
    config->state_dir = g_strdup(resolved);
    free(resolved);
    if (!open_dir(config->state_dir, &keeper->state_fd, error))
        return false;
    keeper->lock_fd = openat(keeper->state_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (keeper->lock_fd < 0)
        return err_errno(error, "open '%s/lock'", config->state_dir);
    /* A lock of this process alone: one that goes with the fd would live on in a child that was
     * forked the moment before a kill -9. */
    if (fcntl(keeper->lock_fd, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}) < 0)
        return err_set(error, ERR_CONFLICT, "another keeper uses '%s'", config->state_dir);
    keeper->stage_dir = g_strconcat(config->state_dir, "/stage", NULL);
    return make_dirs(keeper, error) && read_instance(keeper, error) &&
           open_dir(config->template_dir, &keeper->template_fd, error) && open_generations(keeper, error);
}

/* A sealed copy, so that no box ever runs from, or can reach, a file of the host. */
static bool
load_init(Keeper *keeper, GError **error)
{
    const char *path = keeper->config.init_path;
    g_autofree char *bytes = NULL;
    gsize n;

    if (!g_file_get_contents(path, &bytes, &n, error))
        return false;
    autofd fd = memfd_create("coop-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || !io_write_all(fd, bytes, n) || fchmod(fd, 0555) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return err_errno(error, "copy '%s' into memory", path);
    /* What is open for writing cannot be executed. */
    g_autofree char *self = g_strdup_printf("/proc/self/fd/%d", fd);

    keeper->init_fd = open(self, O_RDONLY | O_CLOEXEC);
    return keeper->init_fd >= 0 || err_errno(error, "open the copy of '%s'", path);
}

/* It was given as an id of the host. */
static bool
translate_base(KeeperConfig *config, GError **error)
{
    g_autofree char *map = NULL;

    if (config->template_base == 0)
        return true;
    return g_file_get_contents("/proc/self/uid_map", &map, NULL, error) &&
           (userns_inside_of(map, config->template_base, &config->template_base) ||
            err_set(error, ERR_INVALID, "the ids from %u on are not lent to this user",
                    config->template_base));
}

static bool
enter_namespaces(Keeper *keeper, GError **error)
{
    if (geteuid() != 0) {
        if (!userns_enter(error) || !translate_base(&keeper->config, error))
            return false;
        /* The server is the same user, who is root here. */
        keeper->config.server_uid = 0;
    }
    keeper->privileged = userns_is_host();
    /* Before any folder is opened: mounts can be copied only from our own namespace.  What is
     * mounted on the host later is still seen here; nothing goes back. */
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_errno(error, "make a mount namespace");
    /* From a network that is not ours there would be no way back out of a box's. */
    if (!keeper->privileged && unshare(CLONE_NEWNET | CLONE_NEWIPC) < 0)
        return err_errno(error, "make namespaces for network and IPC");
    keeper->netns_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    keeper->ipcns_fd = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
    return (keeper->netns_fd >= 0 && keeper->ipcns_fd >= 0) || err_errno(error, "open our own namespaces");
}

static bool
take_ids(Keeper *keeper, GError **error)
{
    g_autofree char *map = NULL;

    if (keeper->privileged)
        return ids_init(&keeper->ids, keeper->config.id_base, keeper->config.id_ranges, false, error);
    /* Layers are used as they are, so their ids are the boxes'.  0 is the user who started us:
     * boxes do not get that one. */
    uint32_t base = keeper->config.template_base != 0 ? keeper->config.template_base : 1;

    if (!g_file_get_contents("/proc/self/uid_map", &map, NULL, error))
        return false;
    if (!userns_has_ids(map, base, ID_RANGE))
        return err_set(error, ERR_UNAVAILABLE, "our user namespace has no %d ids from %u on", ID_RANGE, base);
    return ids_init(&keeper->ids, base, keeper->config.id_ranges, true, error);
}

static bool
open_groups(Keeper *keeper, GError **error)
{
    g_autofree char *cgroup_text = NULL;
    g_autofree char *mountinfo_text = NULL;
    g_autofree char *name = g_strconcat("coop-", keeper->instance, NULL);
    g_auto(CgroupPlace) place = {0};

    if (!g_file_get_contents("/proc/self/cgroup", &cgroup_text, NULL, error) ||
        !g_file_get_contents("/proc/self/mountinfo", &mountinfo_text, NULL, error))
        return false;
    cgroup_find(cgroup_text, mountinfo_text, &place);
    if (keeper->config.in_leaf && place.dir[CGROUP_UNIFIED] != NULL) {
        char *parent = g_path_get_dirname(place.dir[CGROUP_UNIFIED]);

        g_free(place.dir[CGROUP_UNIFIED]);
        place.dir[CGROUP_UNIFIED] = parent;
    }
    if (!reconcile_start(keeper, &place, error) || !cgroups_open(&keeper->groups, &place, name, error))
        return false;
    keeper->config.ceiling = ceiling_of_host(keeper->config.ceiling);
    cgroups_cap(&keeper->groups, &keeper->config.ceiling);
    return true;
}

static void
on_disk_done(void *ctx, DiskJobKind kind, const char *id, int error, DiskFds fds)
{
    Keeper *keeper = ctx;
    Box *box = box_find(keeper, id);

    /* A box waits for its jobs. */
    g_assert(box != NULL);
    if (kind == DISK_JOB_MAKE) {
        box_create_on_disk(box, error, fds);
        return;
    }
    if (error != 0)
        log_warn("keeper", "the disk of a box", log_str("box", id), log_str("error", g_strerror(error)));
    box->holds &= ~(unsigned)HOLDS_DISK_JOB;
    box_clean(box);
}

static bool
open_devices(Keeper *keeper, GError **error)
{
    DevicesSpec spec = {.loop = &keeper->loop,
                        .state_fd = keeper->state_fd,
                        .instance = keeper->instance,
                        .idle_us = MAX(keeper->config.device_idle, 1) * G_USEC_PER_SEC};

    keeper->devices = devices_new(&spec, error);
    return keeper->devices != NULL;
}

static void
open_disks(Keeper *keeper)
{
    DisksSpec spec = {.loop = &keeper->loop,
                      .devices = keeper->devices,
                      .state_fd = keeper->state_fd,
                      .in_memory = !keeper->privileged,
                      .memory_max = keeper->config.user_disk_memory,
                      .owner = keeper->privileged ? keeper->config.template_base
                                                  : ids_base_of(&keeper->ids, 0),
                      .on_done = on_disk_done,
                      .ctx = keeper};

    keeper->disks = disks_new(&spec);
    disks_sweep(keeper->disks);
    keeper->pool = pool_new(keeper);
    keeper->storage = storage_new(keeper);
    keeper->folders = folder_watch_new(keeper);
    keeper->holds = holds_new(keeper);
    keeper->degraded = cgroups_missing(&keeper->groups);
    if (!keeper->privileged)
        keeper->degraded |= DEGRADED_IDS | DEGRADED_DISK;
    keeper->landlock_abi = landlock_abi();
    if (keeper->landlock_abi < LANDLOCK_ABI_REFER)
        keeper->degraded |= DEGRADED_LANDLOCK;
}

static void
raise_file_limit(void)
{
    struct rlimit files;

    /* As many boxes as the limit allows; a low one shows when it is reached. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* What we were started with is not what boxes are started with. */
static void
heed_signals(void)
{
    for (int signal = 1; signal < NSIG; signal++) {
        struct sigaction action;

        /* Some numbers have no settable action. */
        if (sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN) {
            action.sa_handler = SIG_DFL;
            (void)sigaction(signal, &action, NULL);
        }
    }
}

bool
keeper_open(Keeper *keeper, GError **error)
{
    heed_signals();
    raise_file_limit();
    umask(077);
    if (!enter_namespaces(keeper, error) || !require_kernel(&keeper->namespaces, error) ||
        !open_state(keeper, error) || !take_ids(keeper, error) || !open_groups(keeper, error) ||
        !load_init(keeper, error) || !stage_make(keeper->stage_dir, error) ||
        !filter_build(SCMP_ARCH_NATIVE, &keeper->filter, error))
        return false;
    keeper->n_masks = find_masks(keeper->masks);
    if (!loop_init(&keeper->loop))
        return err_errno(error, "make the event loop");
    if (!open_devices(keeper, error))
        return false;
    open_disks(keeper);
    keeper->server = server_new(keeper, error);
    return keeper->server != NULL;
}
