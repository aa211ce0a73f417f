/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/landlock.h"
#include "keeper/child.h"

enum {
    FILES = 4096,
    SIGNALS = 1024,
    LOCKED = 8 << 20,
    STACK = 8 << 20,
    STACK_MAX = 64 << 20,
    NAME_TEXT_MAX = 64,
};

static const int kept_capabilities[] = {CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
                                        CAP_SETUID, CAP_SETGID,       CAP_KILL};

/* A second wall behind the system call filter. */
bool
child_forbid_namespaces(int user_fd)
{
    static const char *const kinds[] = {"user", "mnt", "net", "pid", "ipc", "uts", "cgroup", "time"};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char name[NAME_TEXT_MAX];

        snprintf(name, sizeof name, "max_%s_namespaces", kinds[i]);
        int fd = openat(user_fd, name, O_WRONLY | O_CLOEXEC);

        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0 || write(fd, "0", 1) != 1)
            return false;
        close(fd);
    }
    return true;
}

static bool
limit(int resource, rlim_t soft, rlim_t hard)
{
    struct rlimit old;

    if (getrlimit((__rlimit_resource_t)resource, &old) < 0)
        return false;
    /* A keeper without CAP_SYS_RESOURCE cannot give more than it has. */
    hard = hard < old.rlim_max ? hard : old.rlim_max;
    return setrlimit((__rlimit_resource_t)resource,
                     &(struct rlimit){.rlim_cur = soft < hard ? soft : hard, .rlim_max = hard}) == 0;
}

bool
child_limit(const ChildSpec *spec)
{
    const KeeperLimits *limits = &spec->request->limits;

    return limit(RLIMIT_NOFILE, FILES, FILES) && limit(RLIMIT_CORE, 0, 0) &&
           limit(RLIMIT_MEMLOCK, LOCKED, LOCKED) && limit(RLIMIT_MSGQUEUE, 0, 0) &&
           limit(RLIMIT_SIGPENDING, SIGNALS, SIGNALS) &&
           limit(RLIMIT_FSIZE, limits->disk_bytes, limits->disk_bytes) &&
           limit(RLIMIT_STACK, STACK, STACK_MAX) && limit(RLIMIT_RTPRIO, 0, 0) && limit(RLIMIT_NICE, 0, 0) &&
           limit(RLIMIT_NPROC, limits->pids, limits->pids);
}

/* What exec gives root is the bounding set: that is what counts.  The sets of this process are
 * reduced too, so that nothing more is held until then. */
bool
child_drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    uint64_t keep = 0;

    for (size_t i = 0; i < sizeof kept_capabilities / sizeof kept_capabilities[0]; i++)
        keep |= UINT64_C(1) << kept_capabilities[i];
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
        if ((keep & UINT64_C(1) << cap) == 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return false;
    }
    data[0].permitted = data[0].effective = (uint32_t)keep;
    data[1].permitted = data[1].effective = (uint32_t)(keep >> 32);
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 &&
           syscall(SYS_capset, &header, data) == 0;
}

/* No device node can be made, no mount changed, no signal and no abstract socket reaches out of
 * the box.  Reading and writing files is left to their owners: rules for them would cost every
 * open and give nothing that the mounts do not. */
bool
child_landlock(int abi)
{
    LandlockRuleset rules = {
        .fs = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_REFER,
        .scoped = abi >= LANDLOCK_ABI_SCOPES ? LANDLOCK_SCOPE_SOCKETS | LANDLOCK_SCOPE_SIGNALS : 0};
    struct landlock_path_beneath_attr root = {.allowed_access = LANDLOCK_ACCESS_FS_REFER};

    if (abi < LANDLOCK_ABI_REFER)
        return true;
    int fd = (int)syscall(SYS_landlock_create_ruleset, &rules,
                          abi >= LANDLOCK_ABI_SCOPES ? sizeof rules : sizeof rules.fs, 0);

    root.parent_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && root.parent_fd >= 0 &&
           syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &root, 0) == 0 &&
           syscall(SYS_landlock_restrict_self, fd, 0) == 0;
}

bool
child_filter(const FilterProgram *filter)
{
    struct sock_fprog program = {.len = (unsigned short)filter->n,
                                 .filter = (struct sock_filter *)(uintptr_t)filter->insns};

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}
