/* SPDX-License-Identifier: Apache-2.0 */
/* User namespaces, what distributions do to restrict them, and overlays inside them. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/subids.h"
#include "daemon/probe-private.h"

#define MAX_USERNS "/proc/sys/user/max_user_namespaces"
#define USERNS_CLONE "/proc/sys/kernel/unprivileged_userns_clone"
#define SERVER_USER "coop" /* as whom root runs the server */
#define APPARMOR_USERNS "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

enum {
    USERNS_FEW = 1000,   /* a box takes one, and the limit holds for all users of the machine */
    SUB_IDS_BOX = 65536, /* ids of one box */
};

static bool write_file(const char *path, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

static bool
write_file(const char *path, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    autofd fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && io_write_all(fd, text, strlen(text));
}

/* A new user and mount namespace with ourselves as its root; NULL, or the step that failed
 * with errno set.  Only in a child: there is no way back. */
static const char *
enter_userns(void)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();

    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return "making a user namespace";
    /* The kernel wants this before a group map by someone without privilege. */
    if (!write_file("/proc/self/setgroups", "deny") || !write_file("/proc/self/uid_map", "0 %u 1", uid) ||
        !write_file("/proc/self/gid_map", "0 %u 1", gid))
        return "mapping ids into a user namespace";
    /* Where AppArmor restricts them, the namespace is made but has no power. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return "using a user namespace";
    return NULL;
}

static void
fix_apparmor(const ProbeContext *ctx, ProbeResult *r)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    const char *sudo = ctx->real_root ? "" : "sudo ";

    probe_fix_text(r,
                   "printf 'abi <abi/4.0>,\\nprofile coop \"%s\" flags=(unconfined) {\\n  userns,\\n}\\n' | "
                   "%stee /etc/apparmor.d/coop && %sapparmor_parser -r /etc/apparmor.d/coop",
                   self != NULL ? self : "/usr/bin/coop", sudo, sudo);
}

static void
fix_userns(const ProbeContext *ctx, ProbeResult *r)
{
    if (probe_read_number(ctx, MAX_USERNS, 1) == 0)
        probe_fix(ctx, r, "sysctl -w user.max_user_namespaces=100000");
    else if (ctx->uid != 0 && probe_read_number(ctx, USERNS_CLONE, 1) == 0)
        probe_fix(ctx, r, "sysctl -w kernel.unprivileged_userns_clone=1");
    else if (ctx->uid != 0 && probe_read_number(ctx, APPARMOR_USERNS, 0) != 0)
        fix_apparmor(ctx, r);
    else
        probe_fix_text(r, "run coop outside of containers and chroots that forbid user namespaces "
                          "(Docker: --security-opt seccomp=unconfined)");
}

void
probe_userns(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    const char *failed = enter_userns();

    if (failed == NULL) {
        probe_set(r, PROBE_OK, "made one as uid %u", ctx->uid);
        return;
    }
    probe_set(r, PROBE_MISSING, "%s: %s", failed, g_strerror(errno));
    fix_userns(ctx, r);
}

void
probe_max_userns(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    gint64 max = probe_read_number(ctx, MAX_USERNS, -1);

    if (max < 0) {
        probe_set(r, PROBE_MISSING, "this kernel has no user namespaces");
        probe_fix_text(r, "boot a kernel with CONFIG_USER_NS");
        return;
    }
    probe_set(r,
              max == 0           ? PROBE_MISSING
              : max < USERNS_FEW ? PROBE_DEGRADED
                                 : PROBE_OK,
              "%" G_GINT64_FORMAT " for each user", max);
    if (max < USERNS_FEW)
        probe_fix(ctx, r, "sysctl -w user.max_user_namespaces=100000");
}

void
probe_userns_clone(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    bool open = probe_read_number(ctx, USERNS_CLONE, 1) != 0;

    probe_set(r, open || ctx->uid == 0 ? PROBE_OK : PROBE_MISSING, "%s",
              open ? "user namespaces are open to all users" : "user namespaces are for root only");
    if (r->state != PROBE_OK)
        probe_fix(ctx, r, "sysctl -w kernel.unprivileged_userns_clone=1");
}

void
probe_apparmor(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    g_autofree char *profile = probe_read(ctx, "/proc/self/attr/apparmor/current");

    if (probe_read_number(ctx, APPARMOR_USERNS, 0) == 0) {
        probe_set(r, PROBE_OK, "AppArmor does not restrict user namespaces");
        return;
    }
    if (ctx->uid == 0 || (profile != NULL && strcmp(profile, "unconfined") != 0)) {
        probe_set(r, PROBE_OK, "AppArmor restricts user namespaces, but not for this program");
        return;
    }
    probe_set(r, PROBE_MISSING, "AppArmor restricts user namespaces to programs with a profile");
    fix_apparmor(ctx, r);
}

/* Ids in the lines "NAME:START:COUNT" of /etc/subuid or /etc/subgid, by name or number. */
static guint64
count_sub_ids(const char *text, const char *user, const char *number)
{
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
    guint64 most = 0;

    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) parts = g_strsplit(*line, ":", 4);
        guint64 count;

        if (g_strv_length(parts) == 3 && (strcmp(parts[0], user) == 0 || strcmp(parts[0], number) == 0) &&
            g_ascii_string_to_unsigned(parts[2], 10, 0, G_MAXUINT32, &count, NULL))
            most = MAX(most, count);
    }
    return most;
}

/* Either the set-user-id bit or file capabilities let it write maps for us. */
static bool
is_privileged_program(const char *name)
{
    g_autofree char *path = g_find_program_in_path(name);
    struct stat st;

    return path != NULL && stat(path, &st) == 0 &&
           ((st.st_mode & S_ISUID) != 0 || getxattr(path, "security.capability", NULL, 0) > 0);
}

/* Root of a user namespace has what it was given. */
static guint64
count_mapped_ids(const ProbeContext *ctx)
{
    g_autofree char *map = probe_read(ctx, "/proc/self/uid_map");
    g_auto(GStrv) lines = g_strsplit(map != NULL ? map : "", "\n", -1);
    guint64 sum = 0;

    for (char **line = lines; *line != NULL; line++) {
        guint inside, outside, count;

        if (sscanf(*line, "%u %u %u", &inside, &outside, &count) == 3)
            sum += count;
    }
    return sum;
}

/* Templates are built with them, and boxes of an ordinary user have them. */
static void
check_lent_ids(const ProbeContext *ctx, const char *user, const char *number, ProbeResult *r)
{
    g_autofree char *users = probe_read(ctx, "/etc/subuid");
    g_autofree char *groups = probe_read(ctx, "/etc/subgid");
    guint64 ids = MIN(count_sub_ids(users, user, number), count_sub_ids(groups, user, number));

    probe_set(r, ids >= SUB_IDS_BOX ? PROBE_OK : PROBE_MISSING, "%" G_GUINT64_FORMAT " ids for user %s", ids,
              user);
    if (r->state == PROBE_OK)
        return;
    g_autofree char *fix = subids_dup_fix(users, groups, user);
    probe_fix(ctx, r, "%s", fix);
}

void
probe_sub_ids(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    g_autofree char *number = g_strdup_printf("%u", ctx->uid);
    guint64 ids = ctx->uid == 0 ? count_mapped_ids(ctx) : 0;

    if (ctx->uid == 0 && ids < 2 * SUB_IDS_BOX) {
        probe_set(r, PROBE_MISSING, "root with %" G_GUINT64_FORMAT " ids", ids);
        probe_fix_text(r, "map at least %d ids into this user namespace", 2 * SUB_IDS_BOX);
    } else if (ctx->uid == 0 && !ctx->real_root) {
        probe_set(r, PROBE_OK, "root with %" G_GUINT64_FORMAT " ids", ids);
    } else if (ctx->uid != 0 &&
               (!is_privileged_program("newuidmap") || !is_privileged_program("newgidmap"))) {
        probe_set(r, PROBE_MISSING, "newuidmap and newgidmap are not installed");
        probe_fix(ctx, r, "apt-get install uidmap");
    } else {
        check_lent_ids(ctx, ctx->uid == 0 ? SERVER_USER : ctx->user, number, r);
    }
}

/* Templates are built by the server's user, also where root starts it. */
void
probe_template_ids(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    const char *user = ctx->uid == 0 ? probe->arg : ctx->user;
    uid_t uid = ctx->uid == 0 ? (uid_t)-1 : ctx->uid;
    g_autofree char *users = probe_read(ctx, "/etc/subuid");
    g_autofree char *groups = probe_read(ctx, "/etc/subgid");
    guint32 first = 0;
    guint32 first_group = 0;

    if (!is_privileged_program("newuidmap") || !is_privileged_program("newgidmap")) {
        probe_set(r, PROBE_MISSING, "newuidmap and newgidmap are not installed");
        probe_fix(ctx, r, "apt-get install uidmap");
    } else if (users != NULL && groups != NULL && subids_find(users, user, uid, SUB_IDS_BOX, &first) &&
               subids_find(groups, user, uid, SUB_IDS_BOX, &first_group) && first == first_group) {
        probe_set(r, PROBE_OK, "user %s builds with the ids from %u on", user, first);
    } else {
        probe_set(r, PROBE_MISSING, "user %s has no ids of its own to build templates with", user);
        probe_fix(ctx, r, "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s", user);
    }
}

static const char *
mount_overlay(void)
{
    static const char *const folders[] = {"/tmp/lower", "/tmp/upper", "/tmp/work", "/tmp/merged"};

    if (mount("none", "/tmp", "tmpfs", 0, "size=1m") < 0)
        return "mounting a tmpfs";
    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        if (mkdir(folders[i], 0755) < 0)
            return "making a folder";
    }
    /* userxattr: trusted.* attributes cannot be written from inside. */
    if (mount("none", "/tmp/merged", "overlay", 0,
              "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work,userxattr") < 0)
        return "mounting an overlay";
    autofd fd = open("/tmp/merged/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    return fd >= 0 && access("/tmp/upper/file", F_OK) == 0 ? NULL : "writing through an overlay";
}

void
probe_overlay(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    const char *failed = enter_userns();
    bool entered = failed == NULL;

    if (entered)
        failed = mount_overlay();
    if (failed == NULL) {
        probe_set(r, PROBE_OK, "mounted one in a user namespace");
        return;
    }
    probe_set(r, PROBE_MISSING, "%s: %s", failed, g_strerror(errno));
    if (!entered)
        fix_userns(ctx, r);
    else if (errno == ENODEV)
        probe_fix(ctx, r, "modprobe overlay");
    else
        probe_fix_text(r, "boot a kernel of version 5.11 or later");
}
