/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/probe-private.h"

enum {
    OPEN_FILES_GOOD = 65536,
    OPEN_FILES_FEW = 4096,
    INOTIFY_INSTANCES_GOOD = 128,
    INOTIFY_WATCHES_GOOD = 65536,
    DISK_GOOD_MIB = 10 * 1024,
    DISK_LEAST_MIB = 512,
    DISK_INODES_GOOD = 100000,
    TRACING_OFF = 3, /* for root too, until the machine is started anew */
};

void
probe_open_files(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    struct rlimit limit = {0};

    (void)getrlimit(RLIMIT_NOFILE, &limit); /* cannot fail with a valid pointer */
    bool good = limit.rlim_max >= OPEN_FILES_GOOD;
    probe_set(r, good ? PROBE_OK : PROBE_DEGRADED, "%" G_GUINT64_FORMAT " for a process%s",
              (guint64)limit.rlim_max, limit.rlim_max < OPEN_FILES_FEW ? ": too few for many clients" : "");
    if (!good)
        probe_fix_text(
            r, "echo '* hard nofile 1048576' | %stee /etc/security/limits.d/coop.conf, then log in again",
            ctx->real_root ? "" : "sudo ");
}

void
probe_inotify(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    gint64 instances = probe_read_number(ctx, "/proc/sys/fs/inotify/max_user_instances", 0);
    gint64 watches = probe_read_number(ctx, "/proc/sys/fs/inotify/max_user_watches", 0);
    bool good = instances >= INOTIFY_INSTANCES_GOOD && watches >= INOTIFY_WATCHES_GOOD;

    probe_set(r, good ? PROBE_OK : PROBE_DEGRADED,
              "%" G_GINT64_FORMAT " instances, %" G_GINT64_FORMAT " watches", instances, watches);
    if (!good)
        probe_fix(ctx, r, "sysctl -w fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288");
}

/* The data folder, or the nearest folder above it that exists. */
static char *
existing_folder(const char *path)
{
    char *folder = g_strdup(path);

    while (access(folder, F_OK) < 0 && strcmp(folder, "/") != 0) {
        char *parent = g_path_get_dirname(folder);

        g_free(folder);
        folder = parent;
    }
    return folder;
}

void
probe_data_folder(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    g_autofree char *folder = existing_folder(ctx->home);
    bool exists = strcmp(folder, ctx->home) == 0;
    struct stat st;

    if (stat(folder, &st) < 0 || !S_ISDIR(st.st_mode)) {
        probe_set(r, PROBE_MISSING, "%s is not a folder", folder);
        probe_fix_text(r, "choose another data folder with COOP_HOME or --home");
    } else if (access(folder, W_OK | X_OK) < 0) {
        probe_set(r, PROBE_MISSING, "%s cannot be written: %s", folder, g_strerror(errno));
        probe_fix(ctx, r, "install -d -m 0700 -o %s '%s'", ctx->user, ctx->home);
    } else if (exists && (st.st_mode & 077) != 0) {
        probe_set(r, PROBE_DEGRADED, "%s is open to others (mode %04o)", folder, st.st_mode & 07777);
        probe_fix_text(r, "chmod 0700 '%s'", ctx->home);
    } else {
        probe_set(r, PROBE_OK, "%s%s", ctx->home, exists ? "" : " will be made");
    }
}

void
probe_disk(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    g_autofree char *folder = existing_folder(ctx->home);
    struct statvfs fs;

    if (statvfs(folder, &fs) < 0) {
        probe_set(r, PROBE_MISSING, "%s: %s", folder, g_strerror(errno));
        probe_fix_text(r, "choose another data folder with COOP_HOME or --home");
        return;
    }
    guint64 mib = (guint64)fs.f_bavail * fs.f_frsize >> 20;
    /* Some file systems (btrfs) make inodes as they go and report none. */
    bool inodes = fs.f_files == 0 || fs.f_favail >= DISK_INODES_GOOD;
    probe_set(r,
              mib < DISK_LEAST_MIB             ? PROBE_MISSING
              : mib < DISK_GOOD_MIB || !inodes ? PROBE_DEGRADED
                                               : PROBE_OK,
              "%" G_GUINT64_FORMAT " MiB free at %s%s", mib, folder, inodes ? "" : ", but few inodes");
    if (r->state != PROBE_OK)
        probe_fix_text(r, "free some space at %s, or choose another data folder with COOP_HOME or --home",
                       folder);
}

/* Ordinary users have no sbin folders in their PATH; mkfs is there. */
static char *
find_program(const char *name)
{
    static const char *const folders[] = {"/usr/local/sbin", "/usr/sbin", "/sbin"};
    char *path = g_find_program_in_path(name);

    for (size_t i = 0; path == NULL && i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *candidate = g_build_filename(folders[i], name, NULL);

        if (access(candidate, X_OK) == 0)
            path = g_steal_pointer(&candidate);
    }
    return path;
}

void
probe_program(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    g_autofree char *path = find_program(probe->arg);

    if (path != NULL) {
        probe_set(r, PROBE_OK, "%s", path);
        return;
    }
    probe_set(r, probe->need == PROBE_NEEDED ? PROBE_MISSING : PROBE_DEGRADED, "%s is not installed",
              probe->arg);
    probe_fix(ctx, r, "apt-get install %s", probe->extra);
}

/* A clock from before this program was built cannot be right. */
void
probe_clock(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    gint64 now_s = clock_wall_us() / G_USEC_PER_SEC;
    char text[CLOCK_ISO_LEN + 1];
    struct stat self;

    clock_format_iso(now_s * G_USEC_PER_SEC, text);
    bool good = stat("/proc/self/exe", &self) < 0 || now_s + 24 * 3600 >= self.st_mtim.tv_sec;
    probe_set(r, good ? PROBE_OK : PROBE_DEGRADED, "%s%s", text,
              good ? "" : " is before this program was built");
    if (!good)
        probe_fix(ctx, r, "timedatectl set-ntp true");
}

static void
set_sysctl(const ProbeContext *ctx, const Probe *probe, gint64 value, bool good, ProbeResult *r)
{
    probe_set(r, good ? PROBE_OK : PROBE_DEGRADED, "%" G_GINT64_FORMAT "; with %" G_GINT64_FORMAT " %s",
              value, probe->number, probe->extra);
    if (!good)
        probe_fix(ctx, r, "sysctl -w %s=%" G_GINT64_FORMAT, probe->name, probe->number);
}

/* What is not there cannot be set; some of them root alone may read. */
static bool
read_sysctl(const ProbeContext *ctx, const Probe *probe, gint64 *ret_value, ProbeResult *r)
{
    g_autofree char *path = g_strconcat("/proc/sys/", probe->arg, NULL);

    *ret_value = probe_read_number(ctx, path, -1);
    if (*ret_value < 0)
        probe_set(r, PROBE_OK, "not in this kernel, or not for this user to see");
    return *ret_value >= 0;
}

void
probe_sysctl(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    gint64 value;

    if (read_sysctl(ctx, probe, &value, r))
        set_sysctl(ctx, probe, value, value >= probe->number, r);
}

void
probe_sysctl_off(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    gint64 value;

    if (read_sysctl(ctx, probe, &value, r))
        set_sysctl(ctx, probe, value, value == 0, r);
}

/* The keeper has to be the tracer of what it puts into a group. */
void
probe_git_groups(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    if (probe_read_number(ctx, "/proc/sys/kernel/yama/ptrace_scope", 0) < TRACING_OFF) {
        probe_set(r, PROBE_OK, "git can be put into groups of its own");
        return;
    }
    probe_set(r, PROBE_DEGRADED, "with kernel.yama.ptrace_scope=%d git gets no group of its own",
              TRACING_OFF);
    probe_fix_text(r, "set kernel.yama.ptrace_scope=2 in /etc/sysctl.d and start the machine anew");
}

void
probe_swap(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    g_autofree char *swaps = probe_read(ctx, "/proc/swaps");

    /* The first line is the heading. */
    if (swaps == NULL || strchr(swaps, '\n') == NULL) {
        probe_set(r, PROBE_OK, "none");
        return;
    }
    probe_set(r, PROBE_DEGRADED, "secrets may reach the disk unless it is encrypted");
    probe_fix(ctx, r, "swapoff --all");
}

void
probe_smt(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    if (probe_read_number(ctx, "/sys/devices/system/cpu/smt/active", 0) == 0) {
        probe_set(r, PROBE_OK, "processors are not shared by two threads");
        return;
    }
    probe_set(r, PROBE_DEGRADED, "two boxes may share a processor and watch each other's timing");
    probe_fix(ctx, r, "sh -c 'echo off >/sys/devices/system/cpu/smt/control'");
}

/* As root each program has a user of its own; otherwise everything is one user's. */
void
probe_user(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    if (ctx->uid != 0) {
        probe_set(r, PROBE_OK, "the door runs as user %s, like the rest", ctx->user);
    } else if (getpwnam(probe->arg) != NULL) {
        probe_set(r, PROBE_OK, "the door runs as user %s", probe->arg);
    } else {
        probe_set(r, PROBE_DEGRADED, "there is no user %s: the door runs as the server's", probe->arg);
        probe_fix(ctx, r, "useradd --system --user-group --no-create-home --shell /usr/sbin/nologin %s",
                  probe->arg);
    }
}
