/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/filter-table.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* clang-format off */
/* What is in neither list does not exist inside: clone3 (its flags lie behind a pointer, where
 * no filter can look), io_uring, the mount API, and whatever a later kernel brings. */
const char *const filter_allowed[] = {
    "accept", "accept4", "access", "alarm", "arch_prctl", "bind", "brk", "capget", "capset", "chdir",
    "chmod", "chown", "clock_getres", "clock_gettime", "clock_nanosleep", "clone", "close", "close_range",
    "connect", "copy_file_range", "creat", "dup", "dup2", "dup3", "epoll_create", "epoll_create1",
    "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "execve", "execveat",
    "exit", "exit_group", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod",
    "fchmodat", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock", "fork",
    "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futex", "futex_waitv",
    "futimesat", "get_mempolicy", "get_robust_list", "getcpu", "getcwd", "getdents", "getdents64",
    "getegid", "geteuid", "getgid", "getgroups", "getitimer", "getpeername", "getpgid", "getpgrp", "getpid",
    "getppid", "getpriority", "getrandom", "getresgid", "getresuid", "getrlimit", "getrusage", "getsid",
    "getsockname", "getsockopt", "gettid", "gettimeofday", "getuid", "getxattr", "inotify_add_watch",
    "inotify_init", "inotify_init1", "inotify_rm_watch", "io_cancel", "io_destroy", "io_getevents",
    "io_pgetevents", "io_setup", "io_submit", "ioctl", "ioprio_get", "ioprio_set", "kill",
    "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "lchown", "lgetxattr", "link",
    "linkat", "listen", "listxattr", "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lstat", "madvise",
    "membarrier", "memfd_create", "mincore", "mkdir", "mkdirat", "mknod", "mknodat", "mlock", "mlock2",
    "mlockall", "mmap", "mprotect", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive",
    "mq_timedsend", "mq_unlink", "mremap", "msgctl", "msgget", "msgrcv", "msgsnd", "msync", "munlock",
    "munlockall", "munmap", "nanosleep", "newfstatat", "open", "openat", "openat2", "pause", "personality", "pidfd_open",
    "pidfd_send_signal", "pipe", "pipe2", "pkey_alloc", "pkey_free", "pkey_mprotect", "poll", "ppoll",
    "prctl", "pread64", "preadv", "preadv2", "prlimit64", "pselect6", "pwrite64", "pwritev", "pwritev2",
    "read", "readahead", "readlink", "readlinkat", "readv", "recvfrom", "recvmmsg", "recvmsg",
    "removexattr", "rename", "renameat", "renameat2", "restart_syscall", "rmdir", "rseq", "rt_sigaction",
    "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend",
    "rt_sigtimedwait", "rt_tgsigqueueinfo", "sched_get_priority_max", "sched_get_priority_min",
    "sched_getaffinity", "sched_getattr", "sched_getparam", "sched_getscheduler", "sched_rr_get_interval",
    "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield", "seccomp",
    "select", "semctl", "semget", "semop", "semtimedop", "sendfile", "sendmmsg", "sendmsg", "sendto",
    "set_robust_list", "set_tid_address", "setfsgid", "setfsuid", "setgid", "setgroups", "setitimer",
    "setpgid", "setpriority", "setregid", "setresgid", "setresuid", "setreuid", "setrlimit", "setsid",
    "setsockopt", "setuid", "setxattr", "shmat", "shmctl", "shmdt", "shmget", "shutdown", "sigaltstack",
    "signalfd", "signalfd4", "socket", "socketpair", "splice", "stat", "statfs", "statx", "symlink",
    "symlinkat", "sync", "sync_file_range", "syncfs", "sysinfo", "tee", "tgkill", "time", "timer_create",
    "timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create",
    "timerfd_gettime", "timerfd_settime", "times", "tkill", "truncate", "umask", "uname", "unlink",
    "unlinkat", "utime", "utimensat", "utimes", "vfork", "wait4", "waitid", "write", "writev", NULL,
};

const char *const filter_refused[] = {
    /* namespaces and mounts */
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot",
    /* power over the kernel */
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon",
    "swapoff", "acct", "quotactl", "nfsservctl", "lookup_dcookie", "uselib", "sysfs", "ustat", "_sysctl",
    "iopl", "ioperm", "modify_ldt", "vhangup", "syslog", "settimeofday", "clock_settime", "adjtimex",
    "clock_adjtime", "sethostname", "setdomainname", "create_module", "get_kernel_syms", "query_module",
    /* parts of the kernel that ordinary programs do without and exploits begin with */
    "bpf", "perf_event_open", "userfaultfd", "fanotify_init", "fanotify_mark", "add_key", "request_key",
    "keyctl", "memfd_secret", "vmsplice", "remap_file_pages", "migrate_pages", "move_pages", "mbind",
    "set_mempolicy", "process_madvise", "process_mrelease",
    /* reach into other processes, or to files by other ways than their path */
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "open_by_handle_at",
    "name_to_handle_at", NULL,
};
/* clang-format on */

/* The kernel looks at the low 32 bits of an int argument; a comparison of all 64 would be
 * passed by setting a bit above.  Where larger values are refused the upper half does no harm. */
#define LOW 0xffffffff
#define IS(arg, value)                                                                                       \
    {                                                                                                        \
        arg, SCMP_CMP_MASKED_EQ, LOW, value                                                                  \
    }
#define BITS(arg, mask, value)                                                                               \
    {                                                                                                        \
        arg, SCMP_CMP_MASKED_EQ, mask, value                                                                 \
    }
#define RULE1(name, err, a) {.call = name, .error = err, .n = 1, .compare = {a}},
#define RULE2(name, err, a, b) {.call = name, .error = err, .n = 2, .compare = {a, b}},

#define NO_CLONE(flag) RULE1("clone", EPERM, BITS(0, flag, flag))
#define NO_FAMILY(family) RULE1("socket", EAFNOSUPPORT, IS(0, family))
/* Of the types a family has only STREAM (1) and DGRAM (2) are open: neither bit 2 nor bit 3,
 * not both low bits and not none. */
#define ONLY_STREAM_DGRAM(family)                                                                            \
    RULE2("socket", EPERM, IS(0, family), BITS(1, 8, 8))                                                     \
    RULE2("socket", EPERM, IS(0, family), BITS(1, 4, 4))                                                     \
    RULE2("socket", EPERM, IS(0, family), BITS(1, 3, 3))                                                     \
    RULE2("socket", EPERM, IS(0, family), BITS(1, 15, 0))
#define NO_IOCTL(request) RULE1("ioctl", EPERM, IS(1, request))
#define NO_PRCTL(option) RULE1("prctl", EPERM, IS(0, option))

enum {
    TIOCLINUX_REQUEST = 0x541c,
    SOL_TCP_LEVEL = 6,
    TCP_ULP_OPTION = 31, /* kernel TLS, espintcp */
    SOL_ALG_LEVEL = 279,
    SOL_IP_LEVEL = 0,
    SOL_IPV6_LEVEL = 41,
    XTABLES_OPTION = 64, /* and above; on IPv6 only 64 and 65, the traffic class is 67 */
    FUTEX_OP_MASK = 0x7f,
    FUTEX_OP_WAIT_REQUEUE_PI = 11,
    FUTEX_OP_CMP_REQUEUE_PI = 12,
    LOOP_IOCTLS = 0x4c00,
    DM_IOCTLS = 0xfd00,
    PR_SET_PTRACER_OPTION = 0x59616d61,
    PR_SCHED_CORE_OPTION = 62,
    FAMILY_LAST = AF_NETLINK,
};

/* clang-format off */
const FilterRule filter_rules[] = {
    NO_CLONE(CLONE_NEWTIME) NO_CLONE(CLONE_NEWNS) NO_CLONE(CLONE_NEWCGROUP) NO_CLONE(CLONE_NEWUTS)
    NO_CLONE(CLONE_NEWIPC) NO_CLONE(CLONE_NEWUSER) NO_CLONE(CLONE_NEWPID) NO_CLONE(CLONE_NEWNET)

    /* Unix, IPv4, IPv6, and the routing protocol of netlink, which `ip` and getifaddrs() use. */
    NO_FAMILY(0) NO_FAMILY(3) NO_FAMILY(4) NO_FAMILY(5) NO_FAMILY(6) NO_FAMILY(7) NO_FAMILY(8) NO_FAMILY(9)
    NO_FAMILY(11) NO_FAMILY(12) NO_FAMILY(13) NO_FAMILY(14) NO_FAMILY(15)
    RULE1("socket", EAFNOSUPPORT, SCMP_A0(SCMP_CMP_GT, FAMILY_LAST))
    ONLY_STREAM_DGRAM(AF_INET) ONLY_STREAM_DGRAM(AF_INET6)
    RULE2("socket", EAFNOSUPPORT, IS(0, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, 0))
    RULE1("socketpair", EAFNOSUPPORT, SCMP_A0(SCMP_CMP_NE, AF_UNIX))

    RULE2("setsockopt", EPERM, IS(1, SOL_TCP_LEVEL), IS(2, TCP_ULP_OPTION))
    RULE1("setsockopt", EPERM, IS(1, SOL_ALG_LEVEL))
    RULE2("setsockopt", EPERM, IS(1, SOL_IP_LEVEL), SCMP_A2(SCMP_CMP_GE, XTABLES_OPTION))
    RULE2("setsockopt", EPERM, IS(1, SOL_IPV6_LEVEL), IS(2, XTABLES_OPTION))
    RULE2("setsockopt", EPERM, IS(1, SOL_IPV6_LEVEL), IS(2, XTABLES_OPTION + 1))

    /* A byte put into a terminal's input; other line disciplines; flags and project ids of files;
     * frozen file systems; loop and device-mapper. */
    NO_IOCTL(TIOCSTI) NO_IOCTL(TIOCLINUX_REQUEST) NO_IOCTL(TIOCSETD)
    NO_IOCTL(FS_IOC_FSSETXATTR) NO_IOCTL(FS_IOC_SETFLAGS) NO_IOCTL(FS_IOC32_SETFLAGS)
    NO_IOCTL(FIFREEZE) NO_IOCTL(FITHAW)
    RULE1("ioctl", EPERM, BITS(1, 0xffffff00, LOOP_IOCTLS))
    RULE1("ioctl", EPERM, BITS(1, 0xff00, DM_IOCTLS))

    RULE1("futex", ENOSYS, BITS(1, FUTEX_OP_MASK, FUTEX_OP_WAIT_REQUEUE_PI))
    RULE1("futex", ENOSYS, BITS(1, FUTEX_OP_MASK, FUTEX_OP_CMP_REQUEUE_PI))

    NO_PRCTL(PR_SET_MM) NO_PRCTL(PR_SET_PTRACER_OPTION) NO_PRCTL(PR_SCHED_CORE_OPTION)

    RULE1("mknod", EPERM, BITS(1, S_IFMT, S_IFCHR)) RULE1("mknod", EPERM, BITS(1, S_IFMT, S_IFBLK))
    RULE1("mknodat", EPERM, BITS(2, S_IFMT, S_IFCHR)) RULE1("mknodat", EPERM, BITS(2, S_IFMT, S_IFBLK))
    {0},
};
/* clang-format on */
