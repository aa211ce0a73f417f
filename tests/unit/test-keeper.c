/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cgroup-find.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "keeper/box.h"
#include "keeper/ceiling.h"
#include "keeper/disk.h"
#include "keeper/fork.h"
#include "keeper/ids.h"
#include "keeper/ipc.h"
#include "keeper/records.h"
#include "keeper/userns.h"

enum { NOBODY = 65534, SKIP_CODE = 77 };

static void
test_ids_bounds(void)
{
    static const struct {
        guint32 base, n;
        bool shared, good;
    } cases[] = {
        {0, 1, false, false},
        {0, 1, true, false},
        {1, 1, true, true},
        {1, 4096, true, true},
        {65536, 1, false, true},
        {0x70000000, 4096, false, true},
        {0x70000000, 0, false, false},
        {0xffff0000, 1, false, false},
        {0xfffe0000, 1, false, true},
        {0xfffe0000, 2, false, false},
        {0x70000000, G_MAXUINT32, false, false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        IdTable ids = {0};

        g_test_message("%u ranges from %u", cases[i].n, cases[i].base);
        g_assert_cmpint(ids_init(&ids, cases[i].base, cases[i].n, cases[i].shared, &error), ==,
                        cases[i].good);
        g_assert_true(cases[i].good || err_kind(error) == ERR_INVALID);
        ids_clear(&ids);
    }
}

static void
test_ids_slots(void)
{
    IdTable ids;

    g_assert_true(ids_init(&ids, 65536, 3, false, NULL));
    g_assert_cmpint(ids_take(&ids), ==, 0);
    g_assert_cmpint(ids_take(&ids), ==, 1);
    g_assert_cmpuint(ids_base_of(&ids, 1), ==, 65536 * 2);
    ids_give_back(&ids, 0);
    /* What was just given back comes last. */
    g_assert_cmpint(ids_take(&ids), ==, 2);
    g_assert_cmpint(ids_take(&ids), ==, 0);
    g_assert_cmpint(ids_take(&ids), ==, -1);
    g_assert_cmpuint(ids.n_used, ==, 3);
    ids_clear(&ids);
    g_assert_true(ids_init(&ids, 1, 2, true, NULL));
    g_assert_cmpint(ids_take(&ids), ==, 0);
    g_assert_cmpint(ids_take(&ids), ==, 1);
    g_assert_cmpuint(ids_base_of(&ids, 0), ==, 1);
    g_assert_cmpuint(ids_base_of(&ids, 1), ==, 1);
    ids_clear(&ids);
}

#define UNIFIED_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define HYBRID_MOUNTS                                                                                        \
    "31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"                                          \
    "32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n"                  \
    "33 24 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                                      \
    "34 24 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"                                          \
    "35 24 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"

static const struct {
    const char *name, *cgroup, *mountinfo;
    CgroupKind kind;
    const char *dir;
} places[] = {
    {"unified, at the root", "0::/\n", UNIFIED_MOUNT, CGROUP_UNIFIED, "/sys/fs/cgroup"},
    {"unified, in a service", "0::/system.slice/coop.service\n", UNIFIED_MOUNT, CGROUP_UNIFIED,
     "/sys/fs/cgroup/system.slice/coop.service"},
    {"unified has no version 1", "0::/\n", UNIFIED_MOUNT, CGROUP_MEMORY, NULL},
    {"hybrid, unified", "4:memory:/m/x\n0::/u\n", HYBRID_MOUNTS, CGROUP_UNIFIED, "/sys/fs/cgroup/unified/u"},
    {"hybrid, memory", "4:memory:/m/x\n0::/u\n", HYBRID_MOUNTS, CGROUP_MEMORY, "/sys/fs/cgroup/memory/m/x"},
    {"mounted together, first", "2:cpu,cpuacct:/c\n", HYBRID_MOUNTS, CGROUP_CPU,
     "/sys/fs/cgroup/cpu,cpuacct/c"},
    {"mounted together, second", "2:cpu,cpuacct:/c\n", HYBRID_MOUNTS, CGROUP_CPUACCT,
     "/sys/fs/cgroup/cpu,cpuacct/c"},
    {"no cpuset in place of cpu", "3:cpuset:/c\n", HYBRID_MOUNTS, CGROUP_CPU, NULL},
    {"a named hierarchy is none", "9:name=systemd:/s\n", HYBRID_MOUNTS, CGROUP_UNIFIED, NULL},
    {"not mounted", "5:devices:/\n", HYBRID_MOUNTS, CGROUP_DEVICES, NULL},
    {"not in /proc/self/cgroup", "0::/\n", HYBRID_MOUNTS, CGROUP_PIDS, NULL},
    {"outside of the namespace", "0::/../other\n", UNIFIED_MOUNT, CGROUP_UNIFIED, NULL},
    {"a mount of a part", "0::/a/b\n", "30 23 0:26 /a /cg rw - cgroup2 c rw\n", CGROUP_UNIFIED, "/cg/b"},
    {"a mount of this part", "0::/a\n", "30 23 0:26 /a /cg rw - cgroup2 c rw\n", CGROUP_UNIFIED, "/cg"},
    {"a mount of another part", "0::/ab\n", "30 23 0:26 /a /cg rw - cgroup2 c rw\n", CGROUP_UNIFIED, NULL},
    {"a colon in the path", "0::/a:b\n", UNIFIED_MOUNT, CGROUP_UNIFIED, "/sys/fs/cgroup/a:b"},
    {"a space in the mount point", "0::/a\n", "30 23 0:26 / /c\\040g rw - cgroup2 c rw\n", CGROUP_UNIFIED,
     "/c g/a"},
    {"broken lines", "0:\n:::\nx\n", "30\n - \n1 2 3 4 5 6\n", CGROUP_UNIFIED, NULL},
    {"empty", "", "", CGROUP_UNIFIED, NULL},
};

static void
test_cgroup_find(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        g_auto(CgroupPlace) place = {0};

        g_test_message("%s", places[i].name);
        cgroup_find(places[i].cgroup, places[i].mountinfo, &place);
        g_assert_cmpstr(place.dir[places[i].kind], ==, places[i].dir);
    }
}

static void
test_mapped_ids(void)
{
    const char *map = "         0       1001          1\n         1     100000      65536\n";

    g_assert_true(userns_has_ids(map, 1, 65536));
    g_assert_false(userns_has_ids(map, 1, 65537));
    g_assert_false(userns_has_ids(map, 2, 65536));
    g_assert_true(userns_has_ids("0 0 4294967295", 1, 65536));
    g_assert_false(userns_has_ids("", 0, 1));
    uint32_t inside = 0;

    g_assert_true(userns_inside_of("0 1001 1\n1 165536 65536\n", 165540, &inside));
    g_assert_cmpuint(inside, ==, 5);
    g_assert_true(userns_inside_of("0 1001 1\n1 165536 65536\n", 1001, &inside));
    g_assert_cmpuint(inside, ==, 0);
    g_assert_false(userns_inside_of("0 1001 1\n1 165536 65536\n", 165536 + 65536, &inside));
    g_assert_false(userns_inside_of("", 0, &inside));
}

static void
test_states(void)
{
    static const struct {
        BoxState from, to;
    } allowed[] = {{BOX_CREATING, BOX_RUNNING},
                   {BOX_CREATING, BOX_KILLING},
                   {BOX_RUNNING, BOX_KILLING},
                   {BOX_KILLING, BOX_GONE}};

    for (BoxState from = 0; from < BOX_STATE_MAX; from++) {
        for (BoxState to = 0; to < BOX_STATE_MAX; to++) {
            bool wanted = false;

            for (size_t i = 0; i < G_N_ELEMENTS(allowed); i++)
                wanted |= allowed[i].from == from && allowed[i].to == to;
            g_assert_cmpint(box_state_may_follow(from, to), ==, wanted);
        }
        g_assert_nonnull(box_state_name(from));
    }
}

static void
test_ceiling(void)
{
    static const struct {
        const char *meminfo, *pid_max, *threads_max;
        uint64_t memory_mib, pids;
    } cases[] = {
        {"MemTotal:       16777216 kB\nMemFree: 1 kB\n", "32768\n", "126000\n", 14745, 32768 - 3276},
        {"MemTotal:        1048576 kB\n", "4194304\n", "8192\n", 1024 - 256, 8192 - 1024},
        /* Too small for a floor: half of it. */
        {"MemTotal:         262144 kB\n", "1000\n", NULL, 128, 500},
        {NULL, NULL, NULL, 0, 0},
        {"nothing", "", "", 0, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Ceiling found = ceiling_of(cases[i].meminfo, cases[i].pid_max, cases[i].threads_max);

        g_assert_cmpuint(found.memory_bytes >> 20, ==, cases[i].memory_mib);
        g_assert_cmpuint(found.pids, ==, cases[i].pids);
    }
    Ceiling given = ceiling_of_host((Ceiling){.memory_bytes = 7, .pids = 9});

    g_assert_cmpuint(given.memory_bytes, ==, 7);
    g_assert_cmpuint(given.pids, ==, 9);
    given = ceiling_of_host((Ceiling){0});
    g_assert_cmpuint(given.memory_bytes, >, 0);
    g_assert_cmpuint(given.pids, >, 0);
}

static void
test_records(void)
{
    g_autofree char *dir = g_dir_make_tmp("coop-record-XXXXXX", NULL);
    g_autofree char *file = g_strconcat(dir, "/records", NULL);
    autofd dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    BoxRecord record = {.version = BOX_RECORD_VERSION, .id_base = 9, .born_us = 11};
    BoxRecord back = {0};
    autofd fd = records_open(dir_fd, 4, NULL);

    memcpy(record.id, "abcdefghijklmnopqrst", sizeof record.id);
    g_assert_cmpint(fd, >=, 0);
    g_assert_true(records_set(fd, 3, &record));
    g_assert_true(records_get(fd, 3, &back));
    g_assert_cmpmem(&back, sizeof back, &record, sizeof record);
    g_assert_false(records_get(fd, 2, &back));
    g_assert_false(records_get(fd, 4, &back));
    autofd again = records_open(dir_fd, 8, NULL);

    /* Another start with more slots finds what was there. */
    g_assert_true(records_get(again, 3, &back));
    g_assert_false(records_get(again, 7, &back));
    g_assert_true(records_wipe(again, 3));
    g_assert_false(records_get(fd, 3, &back));
    g_assert_cmpint(g_unlink(file), ==, 0);
    /* A link in its place is not followed. */
    g_assert_cmpint(symlinkat("/dev/null", dir_fd, "records"), ==, 0);
    g_assert_cmpint(records_open(dir_fd, 4, NULL), <, 0);
    g_assert_cmpint(g_unlink(file), ==, 0);
    g_assert_cmpint(g_rmdir(dir), ==, 0);
}

/* The kernel finds late that a folder is no cgroup: it has given out a pidfd by then. */
static void
test_fork_fails_late(void)
{
    autofd no_cgroup = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int pidfd = -1;

    g_assert_cmpint(no_cgroup, >=, 0);
    g_assert_cmpint(fork_held(0, no_cgroup, &pidfd), <, 0);
    g_assert_cmpint(pidfd, ==, -1);
}

static void
test_ipc_not_ours(void)
{
    static const char *const names[] = {"shmall", "msgmni", "sem"};
    g_autofree char *dir = g_dir_make_tmp("coop-ipc-XXXXXX", NULL);
    g_autofree char *kernel = g_strconcat(dir, "/sys/kernel", NULL);
    autofd dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    g_assert_cmpint(g_mkdir_with_parents(kernel, 0755), ==, 0);
    g_assert_cmpint(g_chmod(dir, 0755), ==, 0);
    autofd kernel_fd = open(kernel, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    g_assert_cmpint(ipc_bound(-1, 1 << 20), ==, IPC_FAILED);
    g_assert_cmpint(ipc_bound(dir_fd, 1 << 20), ==, IPC_FAILED);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        close(openat(kernel_fd, names[i], O_WRONLY | O_CREAT | O_CLOEXEC, i == 1 ? 0444 : 0666));
    g_assert_cmpint(fchmodat(kernel_fd, "shmall", 0666, 0), ==, 0);
    /* Root is allowed everything, so files are opened as somebody else. */
    int was = setfsuid(geteuid() == 0 ? NOBODY : geteuid());

    g_assert_cmpint(ipc_bound(dir_fd, 1 << 20), ==, IPC_NOT_OURS);
    (void)setfsuid((uid_t)was);
    g_assert_cmpint(fchmodat(kernel_fd, "msgmni", 0666, 0), ==, 0);
    g_assert_cmpint(ipc_bound(dir_fd, 1 << 20), ==, IPC_BOUND);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        g_assert_cmpint(unlinkat(kernel_fd, names[i], 0), ==, 0);
    g_assert_cmpint(unlinkat(dir_fd, "sys/kernel", AT_REMOVEDIR), ==, 0);
    g_assert_cmpint(unlinkat(dir_fd, "sys", AT_REMOVEDIR), ==, 0);
    g_assert_cmpint(g_rmdir(dir), ==, 0);
}

static void
set_processes(rlim_t n)
{
    struct rlimit limit;

    g_assert_cmpint(getrlimit(RLIMIT_NPROC, &limit), ==, 0);
    limit.rlim_cur = MIN(n, limit.rlim_max);
    g_assert_cmpint(setrlimit(RLIMIT_NPROC, &limit), ==, 0);
}

static void
no_done(void *ctx, DiskJobKind kind, const char *box, int error, DiskFds fds)
{
    g_assert_not_reached(); /* these are of no box */
}

/* Root may have any number of processes. */
static void
be_somebody(void)
{
    if (geteuid() == 0)
        (void)!setresuid(NOBODY, NOBODY, NOBODY);
}

/* By the clock, however often it was tried. */
static void
check_given_up(Loop *loop, Disks *disks)
{
    gint64 begun_us = clock_mono_us();

    disks_want(disks, 1);
    for (int i = 0; i < 100; i++)
        disks_retry(disks);
    g_assert_true(disks_busy(disks));
    while (disks_busy(disks)) {
        g_assert_cmpint(disks_due_us(disks), <, INT64_MAX);
        g_assert_true(loop_turn(loop, (int)(MAX(0, disks_due_us(disks) - clock_mono_us()) / 1000) + 1));
        disks_retry(disks);
    }
    g_assert_cmpint(clock_mono_us() - begun_us, >=, 2 * G_USEC_PER_SEC);
    g_assert_true(disks_failed(disks));
    g_assert_cmpint(disks_due_us(disks), ==, INT64_MAX);
}

/* In a process of its own, for its limits. */
_Noreturn static void
run_out_of_processes(int state_fd)
{
    Loop loop;
    DevicesSpec devices_spec = {.loop = &loop, .state_fd = state_fd, .instance = "1"};
    int pidfd;

    g_assert_true(loop_init(&loop));
    Devices *devices = devices_new(&devices_spec, NULL);
    Disks *disks = disks_new(
        &(DisksSpec){.loop = &loop, .devices = devices, .state_fd = state_fd, .on_done = no_done});

    g_assert_cmpint(disks_due_us(disks), ==, INT64_MAX);
    be_somebody();
    set_processes(0);
    if (fork_held(0, -1, &pidfd) >= 0)
        _exit(SKIP_CODE);
    check_given_up(&loop, disks);
    /* What is to end is not. */
    disks_sweep(disks);
    for (int i = 0; i < 100; i++)
        disks_retry(disks);
    g_assert_true(disks_busy(disks));
    set_processes(RLIM_INFINITY);
    disks_retry(disks);
    while (disks_busy(disks))
        g_assert_true(loop_turn(&loop, -1));
    g_assert_cmpint(faccessat(state_fd, "folders/left", F_OK, 0), <, 0);
    _exit(0);
}

static void
test_disks_without_a_process(void)
{
    g_autofree char *dir = g_dir_make_tmp("coop-disks-XXXXXX", NULL);
    autofd dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status;

    g_assert_cmpint(mkdirat(dir_fd, "folders", 0755), ==, 0);
    g_assert_cmpint(mkdirat(dir_fd, "folders/left", 0755), ==, 0);
    if (geteuid() == 0) {
        g_assert_cmpint(fchown(dir_fd, NOBODY, NOBODY), ==, 0);
        g_assert_cmpint(fchownat(dir_fd, "folders", NOBODY, NOBODY, 0), ==, 0);
        g_assert_cmpint(fchownat(dir_fd, "folders/left", NOBODY, NOBODY, 0), ==, 0);
    }
    pid_t pid = fork();

    if (pid == 0)
        run_out_of_processes(dir_fd);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    (void)unlinkat(dir_fd, "folders/left", AT_REMOVEDIR);
    (void)unlinkat(dir_fd, "folders", AT_REMOVEDIR);
    (void)unlinkat(dir_fd, "devices", 0);
    g_assert_cmpint(g_rmdir(dir), ==, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP_CODE)
        g_test_skip("this user may have any number of processes");
    else
        g_assert_cmpint(status, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/keeper/ids/bounds", test_ids_bounds);
    g_test_add_func("/keeper/ids/slots", test_ids_slots);
    g_test_add_func("/keeper/cgroup-find", test_cgroup_find);
    g_test_add_func("/keeper/mapped-ids", test_mapped_ids);
    g_test_add_func("/keeper/states", test_states);
    g_test_add_func("/keeper/records", test_records);
    g_test_add_func("/keeper/ceiling", test_ceiling);
    g_test_add_func("/keeper/fork-fails-late", test_fork_fails_late);
    g_test_add_func("/keeper/ipc-not-ours", test_ipc_not_ours);
    g_test_add_func("/keeper/disks-without-a-process", test_disks_without_a_process);
    return g_test_run();
}
