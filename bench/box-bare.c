/* SPDX-License-Identifier: Apache-2.0 */
/* The peer of a box: one program that makes the system calls a box needs, one after the other,
 * with nothing around them: no server, no records, no second process that asks.
 *
 *     box-bare ROOT ID_BASE RUNS GAP_MS COMMAND...
 *
 * prints the microseconds of each run from the first call to the first byte of output of
 * COMMAND, which pid 1 of the new namespaces starts as uid 1000.  Prepared ahead, as for a cold
 * box: the groups with their limits, the disk image, attached and mounted, its id map, and the
 * programs of the filter. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/loop.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cgroup-find.h"
#include "keeper/filter.h"

enum {
    IDS = 65536,
    DOOR_PORT = 8080,
    DISK_MIB = 10240,
    TEXT = 256,
    GROUPS = CGROUP_KINDS,
    MASKS = 32,
    LINE = 64,
    US = 1000000,
    NS_PER_US = 1000,
    OUT_FD = 10,
    INIT_FD = 11,
};

static const char *const masks[MASKS] = {"kcore",      "keys",       "timer_list", "kallsyms",
                                         "kmsg",       "interrupts", "cmdline",    "modules",
                                         "config.gz",  "diskstats",  "iomem",      "ioports",
                                         "partitions", "swaps",      "slabinfo",   "vmallocinfo"};
static const int dev_kinds[] = {3, 5, 7, 8, 9};

typedef struct Prepared {
    int root;          /* of the template, as a path fd */
    int unified;       /* folder of the unified group; -1: none */
    int tasks[GROUPS]; /* of the others */
    int n_tasks;
    char groups[GROUPS][TEXT];
    int n_groups;
    int disk, userns;
    char image[TEXT], stage[LINE];
    FilterProgram filter;
    unsigned base, template_base;
} Prepared;

static void
must(long result, const char *what)
{
    if (result < 0) {
        perror(what);
        _exit(1);
    }
}

static double
now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * US + (double)t.tv_nsec / NS_PER_US;
}

static void
put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    must(fd, path);
    must(write(fd, text, strlen(text)), path);
    close(fd);
}

/* ---- prepared ahead ---- */

static void
make_group(Prepared *p, CgroupKind kind, const char *dir)
{
    char *path = p->groups[p->n_groups];
    char file[2 * TEXT];

    snprintf(path, TEXT, "%s/box-bare-%d", dir, getpid());
    if (mkdir(path, 0755) < 0)
        return; /* mounted together with one that is made */
    p->n_groups++;
    if (kind == CGROUP_UNIFIED) {
        p->unified = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return;
    }
    if (kind == CGROUP_MEMORY) {
        snprintf(file, sizeof file, "%s/memory.limit_in_bytes", path);
        put(file, "4294967296");
    } else if (kind == CGROUP_PIDS) {
        snprintf(file, sizeof file, "%s/pids.max", path);
        put(file, "1024");
    }
    snprintf(file, sizeof file, "%s/tasks", path);
    p->tasks[p->n_tasks++] = open(file, O_WRONLY | O_CLOEXEC);
}

static void
make_groups(Prepared *p)
{
    char *cgroup = NULL, *mounts = NULL;
    CgroupPlace place = {0};

    g_file_get_contents("/proc/self/cgroup", &cgroup, NULL, NULL);
    g_file_get_contents("/proc/self/mountinfo", &mounts, NULL, NULL);
    cgroup_find(cgroup, mounts, &place);
    p->n_groups = p->n_tasks = 0;
    p->unified = -1;
    for (CgroupKind kind = 0; kind < CGROUP_KINDS; kind++) {
        if (place.dir[kind] != NULL)
            make_group(p, kind, place.dir[kind]);
    }
    cgroup_place_clear(&place);
    g_free(cgroup);
    g_free(mounts);
}

static void
run_program(const char *const *argv)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        dup2(null, 1);
        dup2(null, 2);
        execvp(argv[0], (char **)(uintptr_t)argv);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    must(status == 0 ? 0 : -1, argv[0]);
}

/* Others attach too: the free one may be theirs by then. */
static int
attach(const struct loop_config *config, char ret_device[static LINE])
{
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

    for (;;) {
        snprintf(ret_device, LINE, "/dev/loop%d", ioctl(control, LOOP_CTL_GET_FREE));
        int loop = open(ret_device, O_RDWR | O_CLOEXEC);

        if (ioctl(loop, LOOP_CONFIGURE, config) == 0) {
            close(control);
            return loop;
        }
        must(errno == EBUSY ? 0 : -1, ret_device);
        close(loop);
    }
}

static void
make_disk(Prepared *p)
{
    char device[LINE], owner[LINE];
    struct loop_config config = {.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO};

    snprintf(owner, sizeof owner, "root_owner=%u:%u,nodiscard,lazy_itable_init=1", p->template_base,
             p->template_base);
    int image = open(p->image, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(ftruncate(image, (off_t)DISK_MIB << 20), "image");
    const char *const mkfs[] = {"mke2fs",       "-q", "-F",  "-t",     "ext4", "-O",
                                "^has_journal", "-E", owner, p->image, NULL};
    run_program(mkfs);
    config.fd = (unsigned)image;
    int loop = attach(&config, device);
    int context = fsopen("ext4", FSOPEN_CLOEXEC);
    must(fsconfig(context, FSCONFIG_SET_STRING, "source", device, 0), "source");
    must(fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0), "ext4");
    p->disk = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    must(p->disk, "fsmount");
    must(mkdirat(p->disk, "upper", 0755), "upper");
    must(mkdirat(p->disk, "work", 0700), "work");
    must(fchownat(p->disk, "upper", p->template_base, p->template_base, 0), "upper");
    must(fchownat(p->disk, "work", p->template_base, p->template_base, 0), "work");
    close(image);
    close(loop);
    close(context);
    unlink(p->image);
}

static void
write_map(pid_t pid, unsigned inside, unsigned outside)
{
    char map[LINE], path[LINE];
    static const char *const files[] = {"uid_map", "gid_map"};

    snprintf(map, sizeof map, "%u %u %d\n", inside, outside, IDS);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
        put(path, map);
    }
}

static int
make_userns(const Prepared *p)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    char path[LINE];
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);

    if (pid == 0) {
        for (;;)
            pause();
    }
    write_map(pid, p->template_base, p->base);
    snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    must(fd, path);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return fd;
}

static int
map_mount(int fd, int userns, unsigned attrs)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP | attrs, .userns_fd = (uint64_t)userns};

    must(mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof attr), "idmap");
    return fd;
}

static void
prepare(Prepared *p)
{
    make_groups(p);
    make_disk(p);
    p->userns = make_userns(p);
    map_mount(p->disk, p->userns, 0);
}

/* ---- the child ---- */

static int
fresh(const char *type, const char *key, const char *value, unsigned attrs)
{
    int context = fsopen(type, FSOPEN_CLOEXEC);

    if (key != NULL)
        must(fsconfig(context, FSCONFIG_SET_STRING, key, value, 0), key);
    must(fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0), type);
    int fd = fsmount(context, FSMOUNT_CLOEXEC, attrs);

    must(fd, type);
    close(context);
    return fd;
}

static void
onto(int mount_fd, int root, const char *name)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_BENEATH};

    (void)mkdirat(root, name, 0755);
    int target = (int)syscall(SYS_openat2, root, name, &how, sizeof how);

    must(move_mount(mount_fd, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH), name);
    close(target);
}

static void
write_in(int dir, const char *name, const char *text)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    must(fd, name);
    must(write(fd, text, strlen(text)), name);
    close(fd);
}

static int
build_root(const Prepared *p, int disk, int layer)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    unsigned plain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private");
    must(move_mount(disk, "", AT_FDCWD, "disk", MOVE_MOUNT_F_EMPTY_PATH), "disk");
    must(move_mount(layer, "", AT_FDCWD, "l00", MOVE_MOUNT_F_EMPTY_PATH), "layer");
    must(mount("overlay", "root", "overlay", MS_NOSUID | MS_NODEV,
               "lowerdir=l00,upperdir=disk/upper,workdir=disk/work,userxattr,index=off"),
         "overlay");
    int root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int proc = fresh("proc", NULL, NULL, plain);
    onto(proc, root, "proc");
    int sys = fresh("tmpfs", "size", "64k", plain);
    must(mkdirat(sys, "fs", 0755), "sys/fs");
    must(mkdirat(sys, "fs/cgroup", 0755), "sys/fs/cgroup");
    write_in(sys, "fs/cgroup/cpu.max", "200000 100000\n");
    write_in(sys, "fs/cgroup/memory.max", "4294967296\n");
    must(mount_setattr(sys, "", AT_EMPTY_PATH, &attr, sizeof attr), "sys");
    onto(sys, root, "sys");
    int dev = open_tree(AT_FDCWD, "dev", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    onto(dev, root, "dev");
    onto(fresh("devpts", "max", "64", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC), dev, "pts");
    onto(fresh("tmpfs", "size", "64m", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV), dev, "shm");
    (void)mkdirat(root, "etc", 0755);
    write_in(root, "etc/hostname", "box\n");
    write_in(root, "etc/hosts", "127.0.0.1 localhost\n");
    write_in(root, "etc/resolv.conf", "nameserver 127.0.0.1\n");
    write_in(root, "etc/machine-id", "00000000000000000000000000000000\n");
    for (size_t i = 0; i < MASKS && masks[i] != NULL; i++) {
        char path[LINE];

        snprintf(path, sizeof path, "root/proc/%s", masks[i]);
        (void)mount("empty", path, NULL, MS_BIND, NULL); /* some kernels lack some */
    }
    int tree = open_tree(proc, "sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    must(mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr), "proc/sys");
    must(move_mount(tree, "", proc, "sys", MOVE_MOUNT_F_EMPTY_PATH), "proc/sys");
    return root;
}

static void
enter_root(int root)
{
    static const char *const kinds[] = {"user", "mnt", "net", "pid", "ipc", "uts", "cgroup", "time"};
    char path[LINE];

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i]);
        put(path, "0");
    }
    must(fchdir(root), "root");
    must(syscall(SYS_pivot_root, ".", "."), "pivot_root");
    must(umount2(".", MNT_DETACH), "umount");
    must(chdir("/"), "/");
    must(sethostname("box", 3), "hostname");
}

static void
confine(const Prepared *p)
{
    static const int limits[] = {RLIMIT_CORE,   RLIMIT_MSGQUEUE, RLIMIT_RTPRIO,  RLIMIT_NICE,
                                 RLIMIT_NOFILE, RLIMIT_NPROC,    RLIMIT_MEMLOCK, RLIMIT_SIGPENDING,
                                 RLIMIT_FSIZE,  RLIMIT_STACK};
    uint64_t keep = 0xfb;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{(uint32_t)keep, (uint32_t)keep, 0}, {0}};
    struct {
        uint64_t fs, net, scoped;
    } rules = {LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_REFER, 0, 0};
    struct landlock_path_beneath_attr below = {.allowed_access = LANDLOCK_ACCESS_FS_REFER};

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct rlimit limit;

        getrlimit((__rlimit_resource_t)limits[i], &limit);
        setrlimit((__rlimit_resource_t)limits[i], &limit);
    }
    syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
        if ((keep & UINT64_C(1) << cap) == 0)
            must(prctl(PR_CAPBSET_DROP, cap, 0, 0, 0), "bounding set");
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    must(syscall(SYS_capset, &head, data), "capset");
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules.fs, 0);
    below.parent_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ruleset >= 0) {
        must(syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &below, 0), "landlock");
        must(syscall(SYS_landlock_restrict_self, ruleset, 0), "landlock");
    }
    must(close_range(INIT_FD + 1, ~0u, CLOSE_RANGE_UNSHARE), "close_range");
    struct sock_fprog program = {(unsigned short)p->filter.n,
                                 (struct sock_filter *)(uintptr_t)p->filter.insns};

    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "seccomp");
}

_Noreturn static void
be_child(const Prepared *p, int sync, int out, int self, char **command)
{
    char *argv[TEXT] = {(char *)(uintptr_t) "box-bare", (char *)(uintptr_t) "--init"};
    char control[CMSG_SPACE(2 * sizeof(int))];
    int fds[2];
    char byte;
    struct iovec io = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};

    setsid();
    for (int i = 0; i < p->n_tasks; i++)
        must(write(p->tasks[i], "0", 1), "tasks");
    must(unshare(CLONE_NEWCGROUP), "cgroup");
    must(chdir(p->stage), "stage");
    must(recvmsg(sync, &message, MSG_CMSG_CLOEXEC) == 1 ? 0 : -1, "mounts");
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fds);
    must(setgroups(0, NULL), "setgroups");
    must(setresgid(0, 0, 0), "setresgid");
    must(setresuid(0, 0, 0), "setresuid");
    must(prctl(PR_SET_PDEATHSIG, SIGKILL), "pdeathsig");
    enter_root(build_root(p, fds[0], fds[1]));
    must(dup2(out, OUT_FD), "dup");
    must(dup3(self, INIT_FD, O_CLOEXEC), "dup");
    confine(p);
    for (int i = 0; command[i] != NULL && i < TEXT - 2; i++)
        argv[i + 1] = command[i];
    syscall(SYS_execveat, INIT_FD, "", argv, (char *[]){NULL}, AT_EMPTY_PATH);
    must(-1, "execveat");
    _exit(1);
}

/* ---- one run ---- */

static void
open_network(int pidfd, int home)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(DOOR_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    must(setns(pidfd, CLONE_NEWNET), "setns");
    int raise = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    must(ioctl(raise, SIOCSIFFLAGS, &request), "lo");
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(bind(door, (struct sockaddr *)&address, sizeof address), "door");
    must(listen(door, TEXT), "door");
    must(setns(home, CLONE_NEWNET), "setns");
    close(raise);
    close(door);
}

static void
send_mounts(const Prepared *p, int sync)
{
    char control[CMSG_SPACE(2 * sizeof(int))] = {0};
    char byte = 0;
    struct iovec io = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int tree = open_tree(p->root, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    must(tree, "open_tree");
    map_mount(tree, p->userns, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    int fds[2] = {p->disk, tree};
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(head), fds, sizeof fds);
    must(sendmsg(sync, &message, 0), "sendmsg");
    close(tree);
}

static double
run_once(Prepared *p, int self, int home, char **command)
{
    double start = now_us();
    int sync[2], out[2], pidfd = -1;
    char byte;

    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sync), "socketpair");
    must(pipe2(out, O_CLOEXEC), "pipe");
    struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                       CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD |
                                       (p->unified >= 0 ? CLONE_INTO_CGROUP : 0),
                              .pidfd = (uint64_t)(uintptr_t)&pidfd,
                              .exit_signal = SIGCHLD,
                              .cgroup = p->unified >= 0 ? (uint64_t)p->unified : 0};
    must(seteuid(p->base), "seteuid");
    (void)setfsuid(0);
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);

    if (pid == 0)
        be_child(p, sync[1], out[1], self, command);
    must(pid, "clone3");
    must(seteuid(0), "seteuid");
    close(sync[1]);
    close(out[1]);
    write_map(pid, 0, p->base);
    open_network(pidfd, home);
    send_mounts(p, sync[0]);
    must(read(out[0], &byte, 1) == 1 ? 0 : -1, "the command's output");
    double took = now_us() - start;

    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(pidfd);
    close(sync[0]);
    close(out[0]);
    return took;
}

static void
clean(Prepared *p)
{
    close(p->disk);
    close(p->userns);
    close(p->unified);
    for (int i = 0; i < p->n_tasks; i++)
        close(p->tasks[i]);
    for (int i = 0; i < p->n_groups; i++) {
        while (rmdir(p->groups[i]) < 0 && errno == EBUSY)
            sched_yield();
    }
}

static void
make_stage(Prepared *p)
{
    static const char *const dirs[] = {"disk", "l00", "root", "dev", "dev/pts", "dev/shm"};
    char path[2 * TEXT];

    must(mkdtemp(p->stage) == NULL ? -1 : 0, "stage");
    must(chmod(p->stage, 0755), "stage");
    must(mount("none", p->stage, "tmpfs", 0, "mode=0755"), "stage");
    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", p->stage, dirs[i]);
        must(mkdir(path, 0755), path);
    }
    snprintf(path, sizeof path, "%s/empty", p->stage);
    must(open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0444), path);
    for (size_t i = 0; i < sizeof dev_kinds / sizeof dev_kinds[0]; i++) {
        snprintf(path, sizeof path, "%s/dev/%d", p->stage, dev_kinds[i]);
        must(mknod(path, S_IFCHR | 0666, (dev_t)(1 << 8 | dev_kinds[i])), path);
    }
}

/* Static, because the box has its own libraries; beside this program. */
static int
open_init(void)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *path = g_strconcat(self, "-init", NULL);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    must(fd, path);
    return fd;
}

int
main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: box-bare ROOT ID_BASE RUNS GAP_MS COMMAND...\n");
        return 2;
    }
    static Prepared p = {.stage = "/tmp/box-bare-XXXXXX"};
    struct stat st;
    int runs = (int)g_ascii_strtoll(argv[3], NULL, 10), gap = (int)g_ascii_strtoll(argv[4], NULL, 10);

    must(unshare(CLONE_NEWNS), "mount namespace");
    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private");
    p.root = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
    must(fstat(p.root, &st), argv[1]);
    p.base = (unsigned)strtoul(argv[2], NULL, 10);
    p.template_base = st.st_uid;
    make_stage(&p);
    snprintf(p.image, sizeof p.image, "%s.image", p.stage);
    must(filter_build(SCMP_ARCH_NATIVE, &p.filter, NULL) ? 0 : -1, "filter");
    int self = open_init(), home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

    for (int i = 0; i < runs; i++) {
        prepare(&p);
        (void)poll(NULL, 0, gap);
        printf("%.1f\n", run_once(&p, self, home, argv + 5));
        clean(&p);
    }
    must(umount2(p.stage, MNT_DETACH), "stage");
    must(rmdir(p.stage), "stage");
    return 0;
}
