/* SPDX-License-Identifier: Apache-2.0 */
/* Runs inside a box and tries what a box must not be able to do.  Without an argument it prints
 * a line "name errno" for each attempt, 0 where it worked; with one it is a bomb, which prints
 * how far it got. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DOOR_PORT = 8080,
    CHUNK = 1 << 20,
    VSOCK = 40,
    ALG = 38,
    XDP = 44,
    SIGNAL_BASE = 128,
    MANY_USERS = 2000,
    THREADS = 3,
};

static void
say(const char *name, long result)
{
    printf("%s %d\n", name, result < 0 ? errno : 0);
}
#define TRY(name, call) (errno = 0, say(name, (long)(call)))

static long
try_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd;
}

static long
read_some(const char *path)
{
    char buffer[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, buffer, sizeof buffer) : -1;

    if (fd >= 0)
        close(fd);
    if (n == 0)
        errno = ENODATA;
    return n > 0 ? 0 : -1;
}

static long
bind_port(unsigned port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result = bind(fd, (struct sockaddr *)&address, sizeof address);
    int saved = errno;

    close(fd);
    errno = saved;
    return result;
}

static long
connect_out(const char *host)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(80)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, host, &address.sin_addr);
    int result = connect(fd, (struct sockaddr *)&address, sizeof address);
    int saved = errno;

    close(fd);
    errno = saved;
    return result;
}

static long
set_option(int level, int option)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result = setsockopt(fd, level, option, "tls", 3);
    int saved = errno;

    close(fd);
    errno = saved;
    return result;
}

/* The exit status of a child that makes a call of another architecture. */
static void
try_int80(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
#ifdef __x86_64__
        long result;
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
#endif
        _exit(0);
    }
    waitpid(pid, &status, 0);
    printf("int80 %d\n", WIFSIGNALED(status) ? SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status));
}

static void
probe_namespaces(void)
{
    TRY("unshare-user", unshare(CLONE_NEWUSER));
    TRY("unshare-mount", unshare(CLONE_NEWNS));
    TRY("clone-user", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    TRY("clone-net", syscall(SYS_clone, CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0));
    TRY("clone3", syscall(SYS_clone3, NULL, 0));
    TRY("setns", setns(0, 0));
    TRY("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
    TRY("umount", umount2("/proc", MNT_DETACH));
    TRY("pivot_root", syscall(SYS_pivot_root, ".", "."));
    TRY("chroot", chroot("/tmp"));
    TRY("fsopen", fsopen("tmpfs", 0));
    TRY("open_tree", open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE));
    TRY("max-user-namespaces", try_open("/proc/sys/user/max_user_namespaces", O_WRONLY));
}

static void
probe_kernel(void)
{
    TRY("core_pattern", try_open("/proc/sys/kernel/core_pattern", O_WRONLY));
    TRY("sysrq", try_open("/proc/sysrq-trigger", O_WRONLY));
    TRY("kcore", read_some("/proc/kcore"));
    TRY("kallsyms", read_some("/proc/kallsyms"));
    TRY("cmdline", read_some("/proc/cmdline"));
    TRY("kmsg", read_some("/proc/kmsg"));
    TRY("bpf", syscall(SYS_bpf, 0, NULL, 0));
    TRY("perf", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
    TRY("io_uring", syscall(SYS_io_uring_setup, 1, NULL));
    TRY("userfaultfd", syscall(SYS_userfaultfd, 0));
    TRY("fanotify", syscall(SYS_fanotify_init, 0, 0));
    TRY("keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, -3, 0));
    TRY("add_key", syscall(SYS_add_key, "user", "a", "b", 1, -3));
    TRY("vmsplice", syscall(SYS_vmsplice, 1, NULL, 0, 0));
    TRY("module", syscall(SYS_init_module, NULL, 0, ""));
    TRY("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
    TRY("swapon", syscall(SYS_swapon, "/tmp", 0));
    TRY("syslog", syscall(SYS_syslog, 3, NULL, 0));
    TRY("sethostname", sethostname("x", 1));
    TRY("personality", syscall(SYS_personality, 0x40000));
#ifdef __x86_64__
    TRY("iopl", syscall(SYS_iopl, 3));
    TRY("modify_ldt", syscall(SYS_modify_ldt, 0, NULL, 0));
    TRY("x32", syscall(0x40000000 | SYS_getpid));
#endif
    try_int80();
    TRY("tiocsti", ioctl(0, TIOCSTI, "x"));
    TRY("unknown", syscall(9999));
}

static void
probe_reach(void)
{
    static char handle[128];

    TRY("ptrace", syscall(SYS_ptrace, 16, 1, 0, 0));
    TRY("process_vm_readv", syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0));
    TRY("pidfd_getfd", syscall(SYS_pidfd_getfd, 0, 0, 0));
    TRY("kcmp", syscall(SYS_kcmp, 1, 1, 0, 0, 0));
    TRY("handle", syscall(SYS_open_by_handle_at, AT_FDCWD, handle, 0));
    TRY("init-mem", try_open("/proc/1/mem", O_RDONLY));
    TRY("init-environ", try_open("/proc/1/environ", O_RDONLY));
    TRY("init-fd", try_open("/proc/1/fd/3", O_RDONLY));
    TRY("init-root", try_open("/proc/1/root/etc", O_RDONLY));
    TRY("init-kill", kill(1, SIGKILL));
    TRY("parent-dirs", try_open("/../../../../proc/1/environ", O_RDONLY));
    TRY("mknod", mknod("/tmp/disk", S_IFBLK | 0600, 0x700));
    TRY("mknod-null", mknod("/tmp/null", S_IFCHR | 0600, 0x103));
    TRY("sys-write", try_open("/sys/x", O_WRONLY | O_CREAT));
    TRY("dev-write", try_open("/dev/x", O_WRONLY | O_CREAT));
    TRY("dev-null", try_open("/dev/null", O_WRONLY));
    TRY("urandom", read_some("/dev/urandom"));
    TRY("ptmx", try_open("/dev/ptmx", O_RDWR));
}

static void
probe_network(void)
{
    TRY("unix", socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    TRY("inet6", socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    TRY("netlink", socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0));
    TRY("netfilter", socket(AF_NETLINK, SOCK_RAW, 12));
    TRY("packet", socket(AF_PACKET, SOCK_RAW, 0));
    TRY("vsock", socket(VSOCK, SOCK_STREAM, 0));
    TRY("alg", socket(ALG, SOCK_SEQPACKET, 0));
    TRY("xdp", socket(XDP, SOCK_RAW, 0));
    TRY("raw", socket(AF_INET, SOCK_RAW, 1));
    TRY("inet-pair", socketpair(AF_INET, SOCK_STREAM, 0, (int[2]){0}));
    TRY("tcp-ulp", set_option(IPPROTO_TCP, 31));
    TRY("xtables", set_option(IPPROTO_IP, 64));
    TRY("port-80", bind_port(80));
    TRY("port-9000", bind_port(9000));
    TRY("door-port", bind_port(DOOR_PORT));
    TRY("out-private", connect_out("10.0.0.1"));
    TRY("out-metadata", connect_out("169.254.169.254"));
    TRY("loopback", connect_out("127.0.0.1"));
}

static void
probe_self(void)
{
    struct rlimit limit;
    DIR *dir = opendir("/proc/self/fd");
    int fds = 0;

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        fds += entry->d_name[0] != '.';
    printf("fds %d\n", fds);
    printf("uid %d\n", (int)getuid());
    printf("groups %d\n", getgroups(0, NULL));
    getrlimit(RLIMIT_CORE, &limit);
    printf("core %llu\n", (unsigned long long)limit.rlim_max);
    getrlimit(RLIMIT_NOFILE, &limit);
    printf("files %llu\n", (unsigned long long)limit.rlim_max);
    printf("nnp %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

static int
bomb_fork(void)
{
    static pid_t pids[MANY_USERS];
    int n = 0;

    for (pid_t pid; n < MANY_USERS && (pid = fork()) >= 0; n++) {
        if (pid == 0) {
            /* Limits per user are no help against root, who has many. */
            if (getuid() == 0 && setuid((uid_t)(MANY_USERS + n)) < 0)
                _exit(1);
            raise(SIGSTOP);
            _exit(0);
        }
        pids[n] = pid;
        waitpid(pid, NULL, WUNTRACED);
    }
    printf("%d %d\n", n, errno);
    for (int i = 0; i < n; i++)
        kill(pids[i], SIGKILL);
    return 0;
}

static int
bomb_memory(void)
{
    for (int n = 0; n < 4096; n++) {
        char *chunk = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (chunk == MAP_FAILED)
            break;
        memset(chunk, n, CHUNK);
    }
    return 0;
}

static int
bomb_disk(void)
{
    static char block[CHUNK];
    long long n = 0;

    for (int file = 0; file < 64; file++) {
        char name[32];

        snprintf(name, sizeof name, "/tmp/fill%d", file);
        int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ssize_t written = 0;

        for (int i = 0; fd >= 0 && i < 16 && (written = write(fd, block, sizeof block)) > 0; i++)
            n += written;
        if (fd < 0 || written <= 0)
            break;
        close(fd);
    }
    printf("%lld %d\n", n, errno);
    return 0;
}

static int
bomb_inodes(void)
{
    int n = 0;

    for (;; n++) {
        char name[32];

        snprintf(name, sizeof name, "/tmp/inode%d", n);
        if (mkdir(name, 0700) < 0)
            break;
    }
    printf("%d %d\n", n, errno);
    return 0;
}

static void *
sleep_on(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static int
run_threads(void)
{
    pthread_t thread;

    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&thread, NULL, sleep_on, NULL) != 0)
            return 1;
    }
    return sleep_on(NULL) != NULL;
}

/* Each is its own number. */
static int
print_lines(long n)
{
    for (long i = 0; i < n; i++)
        printf("%09ld\n", i);
    return 5;
}

/* A folder is away every other moment, for whoever is on the way through it. */
static int
churn(const char *path)
{
    char away[256];

    snprintf(away, sizeof away, "%s.away", path);
    for (;;) {
        if (rename(path, away) < 0 && errno != ENOENT)
            return errno;
        if (rename(away, path) < 0 && errno != ENOENT && errno != EEXIST && errno != ENOTEMPTY)
            return errno;
    }
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "threads") == 0)
        return run_threads();
    if (argc == 2 && strcmp(argv[1], "fork") == 0)
        return bomb_fork();
    if (argc == 2 && strcmp(argv[1], "memory") == 0)
        return bomb_memory();
    if (argc == 2 && strcmp(argv[1], "disk") == 0)
        return bomb_disk();
    if (argc == 2 && strcmp(argv[1], "inodes") == 0)
        return bomb_inodes();
    if (argc == 2 && strcmp(argv[1], "pause") == 0)
        return pause();
    if (argc == 3 && strcmp(argv[1], "churn") == 0)
        return churn(argv[2]);
    if (argc == 4 && strcmp(argv[1], "rename") == 0)
        return rename(argv[2], argv[3]) < 0 ? errno : 0;
    if (argc == 3 && strcmp(argv[1], "unmount") == 0)
        return umount2(argv[2], 0) < 0 ? errno : 0;
    if (argc == 3 && strcmp(argv[1], "lines") == 0)
        return print_lines(strtol(argv[2], NULL, 10));
    if (argc == 3 && strcmp(argv[1], "cat") == 0) {
        char buffer[4096];
        int fd = open(argv[2], O_RDONLY | O_CLOEXEC);

        for (ssize_t n; fd >= 0 && (n = read(fd, buffer, sizeof buffer)) > 0;)
            (void)!write(1, buffer, (size_t)n);
        return fd < 0 ? errno : 0;
    }
    if (argc == 3 && strcmp(argv[1], "stat") == 0) {
        struct stat st;

        if (lstat(argv[2], &st) < 0)
            return errno;
        printf("%u %u\n", st.st_uid, st.st_gid);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "mode") == 0) {
        struct stat st;

        if (lstat(argv[2], &st) < 0)
            return errno;
        printf("%o\n", st.st_mode);
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "write") == 0) {
        int fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        return fd < 0 || write(fd, argv[3], strlen(argv[3])) < 0 ? errno : 0;
    }
    probe_self();
    probe_namespaces();
    probe_kernel();
    probe_reach();
    probe_network();
    return 0;
}
