/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/attempt.h"

enum {
    FAMILY_VSOCK = 40,
    FAMILY_ALG = 38,
    NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET,
    OUTSIDE_PORT = 80,
    LOW_PORT = 80,
    FDS_OWN = 4, /* 0, 1, 2 and the folder that is being read */
    KCMP_FILE = 0,
    CAPABILITIES_ALLOWED = 0xfb, /* CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID */
};

/* For documentation only (RFC 5737): no host has it, and a packet to it would go nowhere. */
static const char outside_address[] = "192.0.2.1";

static const char *host_file = "";

void
attempts_set_host_file(const char *path)
{
    host_file = path;
}

static int
worked(long result)
{
    return result >= 0;
}

static int
can_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0)
        close(fd);
    return worked(fd);
}

static int
can_read(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, &byte, 1) : -1;

    if (n == 0)
        errno = ENODATA;
    if (fd >= 0)
        close(fd);
    return n > 0;
}

static int
can_make_socket(int family, int type, int protocol)
{
    int fd = socket(family, type | SOCK_CLOEXEC, protocol);

    if (fd >= 0)
        close(fd);
    return worked(fd);
}

static int
try_namespaces(void)
{
    static const int each[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWPID};

    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        if (worked(unshare(each[i])))
            return 1;
    }
    return worked(unshare(NAMESPACES));
}

static int
try_mount(void)
{
    return worked(mount("none", "/tmp", "tmpfs", 0, NULL)) || worked(umount2("/proc", MNT_DETACH)) ||
           worked(syscall(SYS_fsopen, "tmpfs", 0)) || worked(chroot("/tmp"));
}

static int
try_devices(void)
{
    static const dev_t disk = 0x700, memory = 0x101;
    int made = mknod("/tmp/.probe-disk", S_IFBLK | 0600, disk) == 0 ||
               mknod("/tmp/.probe-memory", S_IFCHR | 0600, memory) == 0;

    (void)unlink("/tmp/.probe-disk");
    (void)unlink("/tmp/.probe-memory");
    return made || can_open("/dev/mem", O_RDONLY) || can_open("/dev/kmsg", O_RDONLY) ||
           can_open("/dev/loop-control", O_RDWR) || can_open("/dev/kvm", O_RDWR);
}

static int
try_kernel_settings(void)
{
    return can_open("/proc/sys/kernel/core_pattern", O_WRONLY) || can_open("/proc/sysrq-trigger", O_WRONLY) ||
           can_open("/proc/sys/kernel/modprobe", O_WRONLY) ||
           can_open("/proc/sys/user/max_user_namespaces", O_WRONLY);
}

static int
try_kernel_memory(void)
{
    return can_read("/proc/kcore") || can_read("/proc/kallsyms") || can_read("/proc/kmsg") ||
           can_read("/proc/config.gz") || worked(syscall(SYS_syslog, 3, NULL, 0));
}

static int
try_kernel_surface(void)
{
    return worked(syscall(SYS_init_module, NULL, 0, "")) || worked(syscall(SYS_bpf, 0, NULL, 0)) ||
           worked(syscall(SYS_io_uring_setup, 1, NULL)) || worked(syscall(SYS_userfaultfd, 0)) ||
           worked(syscall(SYS_keyctl, 0, -3, 0)) ||
           worked(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0)) ||
           /* Of a filter that is not there, the arguments would be at fault. */
           errno != EPERM;
}

static int
try_init(void)
{
    return worked(syscall(SYS_ptrace, 16, 1, 0, 0)) || can_open("/proc/1/mem", O_RDWR) ||
           can_open("/proc/1/environ", O_RDONLY) || can_open("/proc/1/root/etc", O_RDONLY) ||
           can_open("/proc/1/fd/3", O_RDONLY) || worked(syscall(SYS_pidfd_getfd, 0, 0, 0)) ||
           worked(syscall(SYS_kcmp, 1, 1, KCMP_FILE, 0, 0));
}

static int
try_host_files(void)
{
    static const char *const ways[] = {"", "/proc/self/root", "/proc/1/root", "/proc/1/cwd", "/../../.."};
    char path[4096];

    for (size_t i = 0; host_file[0] != '\0' && i < sizeof ways / sizeof ways[0]; i++) {
        int n = snprintf(path, sizeof path, "%s%s", ways[i], host_file);

        if (n < (int)sizeof path && can_open(path, O_RDONLY))
            return 1;
    }
    return 0;
}

static int
try_sockets(void)
{
    return can_make_socket(AF_PACKET, SOCK_RAW, 0) || can_make_socket(FAMILY_VSOCK, SOCK_STREAM, 0) ||
           can_make_socket(FAMILY_ALG, SOCK_SEQPACKET, 0) ||
           can_make_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) || can_make_socket(AF_NETLINK, SOCK_RAW, 12);
}

static int
try_network(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(OUTSIDE_PORT)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    inet_pton(AF_INET, outside_address, &address.sin_addr);
    /* With a route the call would be under way. */
    int out = fd >= 0 &&
              (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS);
    int saved = errno;

    if (fd >= 0)
        close(fd);
    errno = saved;
    return out;
}

static int
try_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};

    if (syscall(SYS_capget, &head, data) == 0 &&
        ((data[0].permitted & ~(unsigned)CAPABILITIES_ALLOWED) != 0 || data[1].permitted != 0))
        return 1;
    return worked(syscall(SYS_capset, &head, all)) || (getuid() != 0 && worked(setuid(0)));
}

static int
try_open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    if (dir != NULL)
        closedir(dir);
    errno = 0;
    return n > FDS_OWN;
}

/* The child is killed where calls of another architecture are caught. */
static int
try_other_calls(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
#ifdef __x86_64__
        long result;
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
        _exit(0);
#else
        raise(SIGSYS);
#endif
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 0;
    errno = 0;
    return WIFEXITED(status);
}

static int
try_groups(void)
{
    return can_open("/sys/fs/cgroup/memory.max", O_WRONLY) ||
           can_open("/sys/fs/cgroup/cgroup.procs", O_WRONLY) ||
           can_open("/sys/kernel/uevent_helper", O_WRONLY);
}

static int
try_terminal(void)
{
    return worked(ioctl(STDIN_FILENO, TIOCSTI, "x")) || errno != EPERM;
}

const Attempt attempts[] = {
    {"namespaces", "make namespaces of its own", try_namespaces},
    {"mount", "mount file systems or change its root", try_mount},
    {"devices", "reach disks or memory as devices", try_devices},
    {"kernel-settings", "change settings of the host's kernel", try_kernel_settings},
    {"kernel-memory", "read the kernel's memory or log", try_kernel_memory},
    {"kernel-surface", "load modules, programs or keys into the kernel", try_kernel_surface},
    {"init", "look into the first process of its box", try_init},
    {"host-files", "see a file of the host", try_host_files},
    {"sockets", "use sockets that no network namespace holds", try_sockets},
    {"network", "send packets past its door", try_network},
    {"capabilities", "become more than it is", try_capabilities},
    {"open-files", "use files that the host left open", try_open_files},
    {"other-calls", "go round the filter by calls of another architecture", try_other_calls},
    {"groups", "lift its own limits", try_groups},
    {"terminal", "type into the terminal of another", try_terminal},
    {NULL},
};
