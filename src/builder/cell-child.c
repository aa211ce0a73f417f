/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "builder/cell-private.h"

/* This program has one thread, so a child made by clone may allocate and format. */

static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};

static void
die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, g_strerror(errno));
    _exit(CELL_CODE_SETUP);
}

static void
must(bool ok, const char *what)
{
    if (!ok)
        die(what);
}

static bool
bind(const char *from, const char *to)
{
    struct stat st;

    if (stat(from, &st) < 0)
        return false;
    if (S_ISDIR(st.st_mode)) {
        if (mkdir(to, 0755) < 0 && errno != EEXIST)
            return false;
    } else {
        int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

        if (fd < 0)
            return false;
        close(fd);
    }
    return mount(from, to, NULL, MS_BIND, NULL) == 0;
}

static void
bind_all(const CellSpec *spec, const char *tmp)
{
    for (size_t i = 0; i < spec->n_binds; i++) {
        g_autofree char *to = g_build_filename(tmp, spec->binds[i].to, NULL);

        must(bind(spec->binds[i].from, to), spec->binds[i].to);
    }
}

static void
make_dev(const char *dev)
{
    must(mount("tmpfs", dev, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k") == 0, "mount /dev");
    for (size_t i = 0; i < G_N_ELEMENTS(devices); i++) {
        g_autofree char *from = g_build_filename("/dev", devices[i], NULL);
        g_autofree char *to = g_build_filename(dev, devices[i], NULL);

        must(bind(from, to), to);
    }
    static const char *const links[][2] = {{"/proc/self/fd", "fd"},
                                           {"/proc/self/fd/0", "stdin"},
                                           {"/proc/self/fd/1", "stdout"},
                                           {"/proc/self/fd/2", "stderr"}};
    for (size_t i = 0; i < G_N_ELEMENTS(links); i++) {
        g_autofree char *to = g_build_filename(dev, links[i][1], NULL);

        must(symlink(links[i][0], to) == 0, to);
    }
    g_autofree char *shm = g_build_filename(dev, "shm", NULL);
    must(mkdir(shm, 01777) == 0, "make /dev/shm");
}

/* The mounts above are locked here, so the root is bound once more before it becomes ours. */
static void
enter_root(const CellSpec *spec)
{
    g_autofree char *proc = g_build_filename(spec->root, "proc", NULL);
    g_autofree char *dev = g_build_filename(spec->root, "dev", NULL);
    g_autofree char *tmp = g_build_filename(spec->root, "tmp", NULL);

    must(mount(spec->root, spec->root, NULL, MS_BIND | MS_REC, NULL) == 0, "bind the root");
    must(mount("proc", proc, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0, "mount /proc");
    make_dev(dev);
    must(mount("tmpfs", tmp, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") == 0, "mount /tmp");
    bind_all(spec, tmp);
    if (spec->network) {
        g_autofree char *resolver = g_build_filename(spec->root, "etc/resolv.conf", NULL);

        must(bind("/etc/resolv.conf", resolver), "bind /etc/resolv.conf");
    }
    must(chdir(spec->root) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 &&
             chdir("/") == 0,
         "enter the root");
}

static void
enter_host_view(const CellSpec *spec)
{
    must(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0, "mount /proc");
    bind_all(spec, "/tmp");
    if (spec->inner != NULL) {
        g_autofree char *proc = g_build_filename(spec->inner, "proc", NULL);
        g_autofree char *dev = g_build_filename(spec->inner, "dev", NULL);

        must(mount("proc", proc, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0, "mount /proc inside");
        make_dev(dev);
    }
}

/* dpkg and npm call fsync for every file; the whole is synced once, at the end.  What builds
 * have no use for is refused. */
static void
confine(const CellSpec *spec)
{
    static const char *const quiet[] = {"fsync", "fdatasync", "sync", "syncfs", "sync_file_range"};
    static const char *const refused[] = {"add_key",         "keyctl",
                                          "request_key",     "bpf",
                                          "perf_event_open", "userfaultfd",
                                          "io_uring_setup",  "kexec_load",
                                          "init_module",     "finit_module",
                                          "delete_module",   "open_by_handle_at",
                                          "ptrace",          "process_vm_writev",
                                          "swapon",          "swapoff",
                                          "reboot"};
    static const char *const mounting[] = {"mount",   "umount2", "pivot_root",   "chroot",
                                           "unshare", "setns",   "open_tree",    "move_mount",
                                           "fsopen",  "fsmount", "mount_setattr"};
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

    must(filter != NULL, "make a filter");
    for (size_t i = 0; i < G_N_ELEMENTS(quiet); i++)
        (void)seccomp_rule_add(filter, SCMP_ACT_ERRNO(0), seccomp_syscall_resolve_name(quiet[i]), 0);
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++)
        (void)seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), seccomp_syscall_resolve_name(refused[i]), 0);
    for (size_t i = 0; !spec->mounts && i < G_N_ELEMENTS(mounting); i++)
        (void)seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), seccomp_syscall_resolve_name(mounting[i]), 0);
    errno = -seccomp_load(filter);
    must(errno == 0, "load the filter");
    seccomp_release(filter);
}

static void
take_streams(int output_fd)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output_fd, STDOUT_FILENO) < 0 ||
        dup2(output_fd, STDERR_FILENO) < 0 || close_range(STDERR_FILENO + 1, ~0u, 0) < 0)
        _exit(CELL_CODE_SETUP);
}

static void
become(const CellSpec *spec)
{
    struct rlimit none = {0, 0};

    must(setsid() >= 0, "make a session");
    must(setgroups(0, NULL) == 0 && setresgid(spec->gid, spec->gid, spec->gid) == 0 &&
             setresuid(spec->uid, spec->uid, spec->uid) == 0,
         "change the user");
    must(setrlimit(RLIMIT_CORE, &none) == 0, "forbid core dumps");
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "forbid new privileges");
    umask(022);
    confine(spec);
    must(spec->cwd == NULL || chdir(spec->cwd) == 0, "enter the working folder");
}

_Noreturn void
cell_child(const CellSpec *spec, int ready_fd, int output_fd)
{
    char byte;

    if (read(ready_fd, &byte, 1) != 1)
        _exit(CELL_CODE_SETUP);
    take_streams(output_fd);
    must(setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0, "become root of the cell");
    must(sethostname("build", strlen("build")) == 0, "set the name of the cell");
    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "keep mounts to the cell");
    if (spec->root != NULL)
        enter_root(spec);
    else
        enter_host_view(spec);
    become(spec);
    if (spec->argv == NULL)
        _exit(spec->call(spec->data));
    (void)execvpe(spec->argv[0], (char *const *)(guintptr)spec->argv, (char *const *)(guintptr)spec->env);
    fprintf(stderr, "%s: %s\n", spec->argv[0], g_strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}
