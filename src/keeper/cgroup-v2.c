/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/cgroup.h"

enum { CPU_PERIOD_US = 100000, MILLI = 1000, TEXT_MAX = 64, LIST_MAX = 512 };

static const CgroupKind controllers[] = {CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS};

static bool
file_has_word(int dir_fd, const char *file, const char *word)
{
    char text[LIST_MAX + 1];
    autofd fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, LIST_MAX) : -1;

    if (n < 0)
        return false;
    text[n] = '\0';
    g_auto(GStrv) words = g_strsplit_set(text, " \n", -1);

    return g_strv_contains((const char *const *)words, word);
}

/* A group with processes of its own cannot hand controllers on, the root group excepted: the
 * keeper steps aside into a leaf.  Where others are in the group too, it stays as it is. */
static bool
step_aside(int parent_fd)
{
    if (mkdirat(parent_fd, "coop-keeper", 0755) < 0 && errno != EEXIST)
        return false;
    return cgroup_write(parent_fd, "coop-keeper", "cgroup.procs", "0");
}

static bool
hand_on(int dir_fd, const char *controller)
{
    char text[TEXT_MAX];

    snprintf(text, sizeof text, "+%s", controller);
    return cgroup_write(dir_fd, ".", "cgroup.subtree_control", text);
}

#define INSN(c, d, s, o, i) ((struct bpf_insn){.code = c, .dst_reg = d, .src_reg = s, .off = o, .imm = i})
#define LOAD(dst, offset) INSN(BPF_LDX | BPF_MEM | BPF_W, dst, BPF_REG_1, offset, 0)
#define SKIP_UNLESS(reg, value, n) INSN(BPF_JMP | BPF_JNE | BPF_K, reg, 0, n, value)
#define RETURN(value)                                                                                        \
    INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, value), INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define ALLOW(major, minor) SKIP_UNLESS(BPF_REG_3, major, 3), SKIP_UNLESS(BPF_REG_4, minor, 2), RETURN(1)

/* The list of cgroup-v1.c as a program.  One on our group holds for all boxes in it. */
static bool
close_devices(int group_fd)
{
    const struct bpf_insn program[] = {
        LOAD(BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, access_type)),
        LOAD(BPF_REG_3, offsetof(struct bpf_cgroup_dev_ctx, major)),
        LOAD(BPF_REG_4, offsetof(struct bpf_cgroup_dev_ctx, minor)),
        /* Device nodes can be made for no device; blocks are never opened. */
        INSN(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_2, 0, 0, (BPF_DEVCG_ACC_MKNOD << 16) | 0xffff),
        SKIP_UNLESS(BPF_REG_2, BPF_DEVCG_DEV_CHAR, 31),
        ALLOW(1, 3),
        ALLOW(1, 5),
        ALLOW(1, 7),
        ALLOW(1, 8),
        ALLOW(1, 9),
        ALLOW(5, 0),
        ALLOW(5, 2),
        SKIP_UNLESS(BPF_REG_3, 136, 2),
        RETURN(1),
        RETURN(0),
    };
    union bpf_attr load = {.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
                           .insns = (uintptr_t)program,
                           .insn_cnt = sizeof program / sizeof program[0],
                           .license = (uintptr_t) "Apache-2.0"};
    autofd fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load);
    union bpf_attr attach = {.target_fd = (uint32_t)group_fd,
                             .attach_bpf_fd = (uint32_t)fd,
                             .attach_type = BPF_CGROUP_DEVICE,
                             .attach_flags = BPF_F_ALLOW_MULTI};

    return fd >= 0 && syscall(SYS_bpf, BPF_PROG_ATTACH, &attach, sizeof attach) == 0;
}

bool
cgroup_v2_open(Cgroups *groups, const char *parent_dir)
{
    int ours = groups->fd[CGROUP_UNIFIED];
    autofd parent = open(parent_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (parent < 0)
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(controllers); i++) {
        const char *name = cgroup_kind_name(controllers[i]);

        if (!file_has_word(parent, "cgroup.controllers", name))
            continue;
        if (!hand_on(parent, name) && errno == EBUSY && step_aside(parent))
            (void)hand_on(parent, name);
        if (hand_on(ours, name))
            groups->unified |= 1u << controllers[i];
    }
    (void)hand_on(parent, "hugetlb");
    groups->devices_closed = close_devices(ours);
    return true;
}

/* Pages that the host set aside are not for boxes. */
static void
close_huge_pages(int group_fd)
{
    int fd = openat(group_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (g_str_has_prefix(entry->d_name, "hugetlb.") && g_str_has_suffix(entry->d_name, ".max"))
            (void)cgroup_write(fd, ".", entry->d_name, "0");
    }
    closedir(dir);
}

void
cgroup_v2_cap(const Cgroups *groups, const Ceiling *ceiling)
{
    int fd = groups->fd[CGROUP_UNIFIED];

    if ((groups->unified & 1u << CGROUP_MEMORY) != 0 && ceiling->memory_bytes > 0)
        (void)cgroup_write_number(fd, ".", "memory.max", ceiling->memory_bytes);
    if ((groups->unified & 1u << CGROUP_PIDS) != 0 && ceiling->pids > 0)
        (void)cgroup_write_number(fd, ".", "pids.max", ceiling->pids);
    /* Boxes and held processes are the last level, and there are only so many. */
    (void)cgroup_write(fd, ".", "cgroup.max.depth", "1");
    (void)cgroup_write_number(fd, ".", "cgroup.max.descendants",
                              KEEPER_BOXES_MAX + KEEPER_POOL_MAX + KEEPER_HOLDS_MAX);
    close_huge_pages(fd);
}

bool
cgroup_v2_limit(const Cgroups *groups, const char *name, const KeeperLimits *limits)
{
    int fd = groups->fd[CGROUP_UNIFIED];
    char text[TEXT_MAX];

    if ((groups->unified & 1u << CGROUP_MEMORY) != 0) {
        if (!cgroup_write_number(fd, name, "memory.max", limits->memory_bytes))
            return false;
        /* Absent without swap. */
        (void)cgroup_write(fd, name, "memory.swap.max", "0");
        (void)cgroup_write(fd, name, "memory.zswap.max", "0");
    }
    snprintf(text, sizeof text, "%u %d", limits->cpu_milli * (CPU_PERIOD_US / MILLI), CPU_PERIOD_US);
    if ((groups->unified & 1u << CGROUP_CPU) != 0 && !cgroup_write(fd, name, "cpu.max", text))
        return false;
    return (groups->unified & 1u << CGROUP_PIDS) == 0 ||
           cgroup_write_number(fd, name, "pids.max", limits->pids);
}

void
cgroup_v2_use(const Cgroups *groups, const char *name, CgroupUse *use)
{
    int fd = groups->fd[CGROUP_UNIFIED];

    use->cpu_us = cgroup_read_number(fd, name, "cpu.stat", "usage_usec");
    if ((groups->unified & 1u << CGROUP_MEMORY) != 0) {
        use->memory_bytes = cgroup_read_number(fd, name, "memory.current", NULL);
        use->memory_peak_bytes = cgroup_read_number(fd, name, "memory.peak", NULL);
    }
    if ((groups->unified & 1u << CGROUP_PIDS) != 0)
        use->pids = (uint32_t)cgroup_read_number(fd, name, "pids.current", NULL);
}
