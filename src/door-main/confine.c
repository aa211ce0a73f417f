/* SPDX-License-Identifier: Apache-2.0 */
#include "door-main/confine.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/callfilter.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/landlock.h"
#include "base/log.h"

bool
confine_memory(GError **error)
{
    const struct rlimit none = {0, 0};

    if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_errno(error, "close the door's memory");
    return true;
}

/* ---- files ---- */

static const LandlockPath readable[] = {
    {"/etc/ld.so.cache", LANDLOCK_READ_FILE},
    {"/lib", LANDLOCK_RUN_TREE},
    {"/usr/lib", LANDLOCK_RUN_TREE},
    {"/usr/share/zoneinfo", LANDLOCK_READ_TREE},
    {NULL, 0},
};

static bool
confine_files(const char *folder, GError **error)
{
    int abi = landlock_abi();
    LandlockRules rules;

    if (abi < 1) {
        log_warn("door", "this kernel has no Landlock: files are guarded by the user's rights alone");
        return true;
    }
    if (!landlock_rules_open(abi, LANDLOCK_NET_BIND, LANDLOCK_SCOPE_SOCKETS | LANDLOCK_SCOPE_SIGNALS, &rules))
        return err_errno(error, "make the door's rules for files");
    autofd fd = rules.fd;

    if (!landlock_allow(&rules, folder, LANDLOCK_WRITE_TREE))
        return err_errno(error, "keep '%s' open to the door", folder);
    landlock_allow_each(&rules, landlock_network_paths);
    landlock_allow_each(&rules, readable);
    for (const char *const *name = (const char *const[]){"SSL_CERT_FILE", "SSL_CERT_DIR", NULL};
         *name != NULL; name++) {
        const char *path = g_getenv(*name);

        if (path != NULL)
            (void)landlock_allow(&rules, path, LANDLOCK_READ_TREE);
    }
    return landlock_enter(&rules) || err_errno(error, "take the rules for files");
}

/* ---- system calls ---- */

static const char *const allowed[] = {
    "accept4",
    "brk",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "close",
    "close_range",
    "connect",
    "dup",
    "dup2",
    "dup3",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "eventfd2",
    "exit",
    "exit_group",
    "faccessat",
    "faccessat2",
    "access",
    "fallocate",
    "fchmod",
    "fcntl",
    "fdatasync",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "futex",
    "getcwd",
    "getdents64",
    "getegid",
    "geteuid",
    "getgid",
    "getpeername",
    "getpid",
    "getppid",
    "getpriority",
    "getrandom",
    "getrlimit",
    "getrusage",
    "getsockname",
    "getsockopt",
    "gettid",
    "gettimeofday",
    "getuid",
    "ioctl",
    "listen",
    "lseek",
    "madvise",
    "membarrier",
    "mkdir",
    "mkdirat",
    "mlock",
    "mlock2",
    "mmap",
    "mprotect",
    "mremap",
    "munlock",
    "munmap",
    "nanosleep",
    "newfstatat",
    "stat",
    "lstat",
    "open",
    "openat",
    "pipe",
    "pipe2",
    "poll",
    "ppoll",
    "prctl",
    "pread64",
    "preadv",
    "prlimit64",
    "pwrite64",
    "pwritev",
    "read",
    "readlink",
    "readlinkat",
    "readv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "rename",
    "renameat",
    "renameat2",
    "restart_syscall",
    "rmdir",
    "rseq",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigtimedwait",
    "sched_getaffinity",
    "sched_yield",
    "select",
    "pselect6",
    "sendfile",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "set_robust_list",
    "setsockopt",
    "shutdown",
    "sigaltstack",
    "splice",
    "statfs",
    "statx",
    "sysinfo",
    "tgkill",
    "time",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    "umask",
    "uname",
    "unlink",
    "unlinkat",
    "write",
    "writev",
    "arch_prctl",
    "bind",
    NULL,
};

/* For these an answer would be help: whoever calls them is not the door. */
static const char *const deadly[] = {
    "execve", "execveat", "fork",   "vfork",     "ptrace", "process_vm_readv", "process_vm_writev",
    "mount",  "unshare",  "setns",  "keyctl",    "bpf",    "init_module",      "finit_module",
    "kill",   "tkill",    "setuid", "setresuid", NULL,
};

/* GLib, curl and c-ares use these families; a unix socket would reach other daemons. */
static const int families[] = {AF_INET, AF_INET6, AF_NETLINK};

static int
add_arguments(scmp_filter_ctx context)
{
    /* Threads, not processes; clone3, whose flags no filter sees, answers ENOSYS like all that
     * is not named, and the C library then uses clone. */
    int result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD | CLONE_NEWUSER, CLONE_THREAD));

    for (size_t i = 0; i < G_N_ELEMENTS(families) && result == 0; i++)
        result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                                  SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]));
    /* Nobody has the other end but whom we give it to. */
    if (result == 0)
        result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1,
                                  SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)AF_UNIX));
    return result;
}

static bool
confine_calls(GError **error)
{
    auto_callfilter context = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    int result = context == NULL ? -ENOMEM : 0;

    if (result == 0)
        result = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = callfilter_add_names(context, allowed, SCMP_ACT_ALLOW);
    if (result == 0)
        result = callfilter_add_names(context, deadly, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = add_arguments(context);
    if (result == 0)
        result = seccomp_load(context);
    return result == 0 ||
           err_set(error, ERR_UNAVAILABLE, "the door's filter of system calls: %s", g_strerror(-result));
}

bool
confine_process(const char *folder, GError **error)
{
    return confine_files(folder, error) && confine_calls(error);
}
