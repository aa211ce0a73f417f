/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pid 1 of the virtual machine in which the suite "vm" runs.
 *
 * It mounts what a booted system has, loads the modules named in /modules/order, runs the commands
 * of /tests one after the other and turns the machine off.  The kernel's messages have the first
 * serial line to themselves; what happens here goes over the second one, a record a line:
 *
 *   begin NAME      o TEXT (a line of standard output)      e TEXT (of standard error)
 *                   O TEXT, E TEXT (a part of a line that goes on in the next record)
 *   end NAME exit N | end NAME signal N                     done
 *
 * A line of /tests is NAME, program and arguments, separated by tabs.  When something that every
 * test needs fails, pid 1 says so and ends, the kernel panics, and the host sees no "done".
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096
#define ARGS_MAX 32
#define REPORT_LINE "/dev/ttyS1"

typedef struct LineBuf {
    int fd;
    char tag;
    size_t len;
    char bytes[LINE_MAX_BYTES];
} LineBuf;

static const struct {
    const char *type;
    const char *path;
} mounts[] = {
    {"devtmpfs", "/dev"},   {"proc", "/proc"},     {"sysfs", "/sys"}, {"cgroup2", "/sys/fs/cgroup"},
    {"devpts", "/dev/pts"}, {"tmpfs", "/dev/shm"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"},
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vdprintf(STDERR_FILENO, fmt, ap);
    va_end(ap);
    dprintf(STDERR_FILENO, ": %s\n", strerror(errno));
    exit(1);
}

static void
write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, p, n);

        if (w < 0 && errno != EINTR)
            die("write to the host");
        if (w > 0) {
            p += w;
            n -= (size_t)w;
        }
    }
}

static void __attribute__((format(printf, 2, 3))) report(int line_fd, const char *fmt, ...)
{
    char text[LINE_MAX_BYTES];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        die("a record is too long");
    write_all(line_fd, text, (size_t)n);
}

/* The first root cannot be put aside by pivot_root, which boxes need: the same files as a mount
 * of their own take its place. */
static void
change_root(void)
{
    if (mkdir("/root", 0700) < 0 && errno != EEXIST)
        die("mkdir /root");
    if (mount("/", "/root", NULL, MS_BIND, NULL) < 0 || chdir("/root") < 0 ||
        mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
        die("change the root");
}

static void
mount_all(void)
{
    for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; i++) {
        if (mkdir(mounts[i].path, 0755) < 0 && errno != EEXIST)
            die("mkdir %s", mounts[i].path);
        if (mount(mounts[i].type, mounts[i].path, mounts[i].type, 0, NULL) < 0)
            die("mount %s", mounts[i].path);
    }
    if (chmod("/tmp", 01777) < 0)
        die("chmod /tmp");
}

static int
open_report_line(void)
{
    struct termios t;
    int fd = open(REPORT_LINE, O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 || tcgetattr(fd, &t) < 0)
        die(REPORT_LINE);
    cfmakeraw(&t);
    if (tcsetattr(fd, TCSANOW, &t) < 0)
        die(REPORT_LINE);
    return fd;
}

static void
loopback_up(void)
{
    struct ifreq req = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &req) < 0)
        die("loopback");
    req.ifr_flags |= IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &req) < 0)
        die("loopback up");
    close(fd);
}

static void
load_modules(void)
{
    char path[LINE_MAX_BYTES];
    FILE *order = fopen("/modules/order", "re");

    if (order == NULL)
        return;
    while (fgets(path, sizeof path, order) != NULL) {
        path[strcspn(path, "\n")] = '\0';
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST))
            die("load %s", path);
        close(fd);
    }
    fclose(order);
}

/* Passes whole lines on, and what is left of one when it is too long or the program has ended. */
static void
pass_lines(LineBuf *b, int line_fd, bool all)
{
    char *nl;

    while ((nl = memchr(b->bytes, '\n', b->len)) != NULL ||
           (b->len > 0 && (all || b->len == sizeof b->bytes))) {
        size_t n = nl != NULL ? (size_t)(nl - b->bytes) : b->len;
        size_t used = nl != NULL ? n + 1 : n;
        const char head[] = {nl != NULL || all ? b->tag : (char)toupper(b->tag), ' '};

        write_all(line_fd, head, sizeof head);
        write_all(line_fd, b->bytes, n);
        write_all(line_fd, "\n", 1);
        b->len -= used;
        memmove(b->bytes, b->bytes + used, b->len);
    }
}

/* False at the end of the stream. */
static bool
pump(LineBuf *b, int line_fd)
{
    ssize_t n = read(b->fd, b->bytes + b->len, sizeof b->bytes - b->len);

    if (n < 0 && errno == EINTR)
        return true;
    if (n > 0)
        b->len += (size_t)n;
    pass_lines(b, line_fd, n <= 0);
    return n > 0;
}

/* Reads both streams while the program runs.  What it left behind dies with it, so that the streams
 * end and the next test starts in a clean machine. */
static int
follow(pid_t pid, LineBuf *out, LineBuf *err, int line_fd)
{
    int status = 0, pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p[] = {{pidfd, POLLIN, 0}, {out->fd, POLLIN, 0}, {err->fd, POLLIN, 0}};

    if (pidfd < 0)
        die("pidfd_open");
    while (p[0].fd >= 0 || p[1].fd >= 0 || p[2].fd >= 0) {
        if (poll(p, 3, -1) < 0 && errno != EINTR)
            die("poll");
        if (p[0].revents != 0) {
            if (waitpid(pid, &status, 0) != pid)
                die("waitpid");
            (void)kill(-1, SIGKILL); /* ESRCH: nothing was left */
            while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
            close(pidfd);
            p[0].fd = -1;
        }
        if (p[1].revents != 0 && !pump(out, line_fd))
            p[1].fd = -1;
        if (p[2].revents != 0 && !pump(err, line_fd))
            p[2].fd = -1;
    }
    return status;
}

static void
run_test(char *line, int line_fd)
{
    static LineBuf out, err;
    char *argv[ARGS_MAX + 1], *name = strsep(&line, "\t");
    int argc = 0, o[2], e[2];

    while (line != NULL && argc < ARGS_MAX)
        argv[argc++] = strsep(&line, "\t");
    argv[argc] = NULL;
    if (argc == 0 || line != NULL || pipe2(o, O_CLOEXEC) < 0 || pipe2(e, O_CLOEXEC) < 0)
        die("cannot start '%s'", name);
    report(line_fd, "begin %s\n", name);
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        if (setsid() < 0 || dup2(o[1], STDOUT_FILENO) < 0 || dup2(e[1], STDERR_FILENO) < 0)
            _exit(126);
        execv(argv[0], argv);
        dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    close(o[1]);
    close(e[1]);
    out = (LineBuf){.fd = o[0], .tag = 'o'};
    err = (LineBuf){.fd = e[0], .tag = 'e'};
    int status = follow(pid, &out, &err, line_fd);
    close(o[0]);
    close(e[0]);
    report(line_fd, "end %s %s %d\n", name, WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int
main(void)
{
    char line[LINE_MAX_BYTES];

    change_root();
    mount_all();
    int line_fd = open_report_line();
    loopback_up();
    load_modules();
    setenv("PATH", "/bin", 1);
    setenv("HOME", "/tmp", 1);
    setenv("TMPDIR", "/tmp", 1);
    setenv("G_DEBUG", "fatal-criticals", 1);
    FILE *tests = fopen("/tests", "re");
    if (tests == NULL)
        die("/tests");
    while (fgets(line, sizeof line, tests) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        run_test(line, line_fd);
    }
    report(line_fd, "done\n");
    if (tcdrain(line_fd) < 0)
        die("drain the line to the host");
    reboot(RB_POWER_OFF);
    die("power off");
}
