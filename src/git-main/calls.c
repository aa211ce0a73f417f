/* SPDX-License-Identifier: Apache-2.0 */
#include "git-main/calls.h"

#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/callfilter.h"

/* clang-format off */
static const char *const allowed[] = {
    "access", "alarm", "arch_prctl", "brk", "chdir", "chmod", "clock_getres", "clock_gettime", "clock_nanosleep",
    "close", "close_range", "copy_file_range", "creat", "dup", "dup2", "dup3", "epoll_create1", "epoll_ctl",
    "epoll_pwait", "epoll_wait", "eventfd2", "execve", "exit", "exit_group", "faccessat", "faccessat2",
    "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat", "fcntl", "fdatasync", "flock", "fork", "fstat",
    "fstatfs", "fsync", "ftruncate", "futex", "get_robust_list", "getcwd", "getdents", "getdents64", "getegid",
    "geteuid", "getgid", "getgroups", "getitimer", "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getrandom",
    "getrlimit", "getrusage", "getsid", "gettid", "gettimeofday", "getuid", "link", "linkat", "lseek", "lstat",
    "madvise", "membarrier", "mincore", "mkdir", "mkdirat", "mmap", "mprotect", "mremap", "msync", "munmap",
    "nanosleep", "newfstatat", "open", "openat", "pause", "pipe", "pipe2", "poll", "ppoll", "pread64",
    "preadv", "prlimit64", "pselect6", "pwrite64", "pwritev", "read", "readlink", "readlinkat", "readv", "rename",
    "renameat", "renameat2", "restart_syscall", "rmdir", "rseq", "rt_sigaction", "rt_sigpending",
    "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "sched_getaffinity", "sched_yield",
    "select", "sendfile", "set_robust_list", "set_tid_address", "setitimer", "sigaltstack", "splice", "stat", "statfs",
    "statx", "sync_file_range", "sysinfo", "tgkill", "time", "times", "truncate",
    "umask", "uname", "unlink", "unlinkat", "utime", "utimensat", "utimes", "vfork", "wait4", "waitid", "write",
    "writev", NULL,
};

static const char *const network[] = {
    "bind", "connect", "getpeername", "getsockname", "getsockopt", "recvfrom", "recvmmsg", "recvmsg", "sendmmsg",
    "sendmsg", "sendto", "setsockopt", "shutdown", "socketpair", NULL,
};
/* clang-format on */

static const char *const signals[] = {"kill", NULL};

/* A unix socket would reach other daemons. */
static const int families[] = {AF_INET, AF_INET6, AF_NETLINK};

/* What terminals and pipes are asked. */
static const unsigned long requests[] = {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO};

#define NAMESPACES                                                                                           \
    (CLONE_NEWTIME | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |           \
     CLONE_NEWPID | CLONE_NEWNET)
#define LOW 0xffffffff /* the kernel looks at this half of an int only */

static int
add_arguments(scmp_filter_ctx context, bool net)
{
    /* clone3, whose flags no filter sees, answers ENOSYS like all that is not named, and the C
     * library then uses clone. */
    int result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACES, 0));

    if (result == 0)
        result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, LOW, PR_SET_NAME));
    for (size_t i = 0; i < sizeof requests / sizeof requests[0] && result == 0; i++)
        result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                                  SCMP_A1(SCMP_CMP_MASKED_EQ, LOW, requests[i]));
    for (size_t i = 0; net && i < sizeof families / sizeof families[0] && result == 0; i++)
        result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, LOW, (scmp_datum_t)families[i]));
    return result;
}

bool
calls_enter(bool net, bool scoped)
{
    auto_callfilter context = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    int result = context == NULL ? -ENOMEM : 0;

    if (result == 0)
        result = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = callfilter_add_names(context, allowed, SCMP_ACT_ALLOW);
    if (result == 0 && net)
        result = callfilter_add_names(context, network, SCMP_ACT_ALLOW);
    if (result == 0 && scoped)
        result = callfilter_add_names(context, signals, SCMP_ACT_ALLOW);
    if (result == 0)
        result = add_arguments(context, net);
    if (result == 0)
        result = seccomp_load(context);
    errno = -result;
    return result == 0;
}
