/* SPDX-License-Identifier: Apache-2.0 */
#include "door-main/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
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

enum { ABI_REFER = 2, ABI_TRUNCATE = 3, ABI_NET = 4, ABI_SCOPES = 6 };

/* Newer than the headers of the oldest distribution. */
#define ACCESS_FS_TRUNCATE (1ULL << 14)
#define ACCESS_NET_BIND_TCP (1ULL << 0)
#define SCOPE_ABSTRACT_UNIX (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)

/* The kernel's own structure as far as the newest kernel has it; older ones take its start. */
typedef struct Ruleset {
    uint64_t fs, net, scoped;
} Ruleset;

#define READ_FILE LANDLOCK_ACCESS_FS_READ_FILE
#define READ_TREE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define LOAD_TREE (READ_TREE | LANDLOCK_ACCESS_FS_EXECUTE)
#define WRITE_TREE                                                                                           \
    (READ_TREE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |                            \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR)

static const struct {
    const char *path;
    uint64_t access;
} readable[] = {
    /* certificates */
    {"/etc/ssl", READ_TREE},
    {"/etc/pki", READ_TREE},
    {"/etc/ca-certificates", READ_TREE},
    {"/usr/share/ca-certificates", READ_TREE},
    {"/usr/local/share/ca-certificates", READ_TREE},
    {"/usr/lib/ssl", READ_TREE},
    /* names: the files, and what the C library loads for them */
    {"/etc/resolv.conf", READ_FILE},
    {"/run/systemd/resolve", READ_TREE},
    {"/etc/nsswitch.conf", READ_FILE},
    {"/etc/hosts", READ_FILE},
    {"/etc/host.conf", READ_FILE},
    {"/etc/gai.conf", READ_FILE},
    {"/etc/services", READ_FILE},
    {"/etc/ld.so.cache", READ_FILE},
    {"/lib", LOAD_TREE},
    {"/usr/lib", LOAD_TREE},
    {"/usr/share/zoneinfo", READ_TREE},
};

static bool
allow_path(int rules, const char *path, uint64_t access, uint64_t handled)
{
    autofd fd = open(path, O_PATH | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return false;
    if (!S_ISDIR(st.st_mode))
        access &= LANDLOCK_ACCESS_FS_READ_FILE;
    struct landlock_path_beneath_attr beneath = {.allowed_access = access & handled, .parent_fd = fd};

    return syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0;
}

static size_t
size_for(int abi)
{
    return abi >= ABI_SCOPES ? sizeof(Ruleset) : abi >= ABI_NET ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

static bool
confine_files(const char *folder, GError **error)
{
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    Ruleset all = {.fs = LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1,
                   .net = ACCESS_NET_BIND_TCP,
                   .scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL};

    if (abi < 1) {
        log_warn("door", "this kernel has no Landlock: files are guarded by the user's rights alone");
        return true;
    }
    if (abi >= ABI_REFER)
        all.fs |= LANDLOCK_ACCESS_FS_REFER;
    if (abi >= ABI_TRUNCATE)
        all.fs |= ACCESS_FS_TRUNCATE;
    autofd rules = (int)syscall(SYS_landlock_create_ruleset, &all, size_for(abi), 0);

    if (rules < 0)
        return err_errno(error, "make the door's rules for files");
    if (!allow_path(rules, folder, WRITE_TREE | ACCESS_FS_TRUNCATE, all.fs))
        return err_errno(error, "keep '%s' open to the door", folder);
    for (size_t i = 0; i < G_N_ELEMENTS(readable); i++)
        (void)allow_path(rules, readable[i].path, readable[i].access,
                         all.fs); /* not there: nothing to read */
    for (const char *const *name = (const char *const[]){"SSL_CERT_FILE", "SSL_CERT_DIR", NULL};
         *name != NULL; name++) {
        const char *path = g_getenv(*name);

        if (path != NULL)
            (void)allow_path(rules, path, READ_TREE, all.fs);
    }
    return syscall(SYS_landlock_restrict_self, rules, 0) == 0 || err_errno(error, "take the rules for files");
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
};

/* For these an answer would be help: whoever calls them is not the door. */
static const char *const deadly[] = {
    "execve", "execveat", "fork",   "vfork",     "ptrace", "process_vm_readv", "process_vm_writev",
    "mount",  "unshare",  "setns",  "keyctl",    "bpf",    "init_module",      "finit_module",
    "kill",   "tkill",    "setuid", "setresuid",
};

/* GLib, curl and c-ares use these families; a unix socket would reach other daemons. */
static const int families[] = {AF_INET, AF_INET6, AF_NETLINK};

static void
context_free(scmp_filter_ctx *context)
{
    if (*context != NULL)
        seccomp_release(*context);
}
#define auto_context __attribute__((cleanup(context_free))) scmp_filter_ctx

static int
add_names(scmp_filter_ctx context, const char *const *names, size_t n, uint32_t action)
{
    int result = 0;

    for (size_t i = 0; i < n && result == 0; i++) {
        int call = seccomp_syscall_resolve_name(names[i]);

        /* A call that only another architecture has is no rule here. */
        result = call == __NR_SCMP_ERROR ? -EINVAL : seccomp_rule_add(context, action, call, 0);
    }
    return result;
}

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
    /* GLib and libsodium make pairs for themselves; nobody else has the other end. */
    if (result == 0)
        result = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 0);
    return result;
}

static bool
confine_calls(GError **error)
{
    auto_context context = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    int result = context == NULL ? -ENOMEM : 0;

    if (result == 0)
        result = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = add_names(context, allowed, G_N_ELEMENTS(allowed), SCMP_ACT_ALLOW);
    if (result == 0)
        result = add_names(context, deadly, G_N_ELEMENTS(deadly), SCMP_ACT_KILL_PROCESS);
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
