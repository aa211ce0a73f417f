/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/kvm.h>
#include <linux/landlock.h>
#include <linux/loop.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/probe-private.h"

enum { KERNEL_MAJOR = 5, KERNEL_MINOR = 10, KVM_API = 12 };

void
probe_kernel(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    struct utsname u;
    int major = 0, minor = 0;

    (void)uname(&u); /* cannot fail with a valid pointer */
    int n = sscanf(u.release, "%d.%d", &major, &minor);
    bool good = n == 2 && (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR));
    probe_set(r, good ? PROBE_OK : PROBE_MISSING, "Linux %s", u.release);
    if (!good)
        probe_fix_text(r, "boot a kernel of version %d.%d or later", KERNEL_MAJOR, KERNEL_MINOR);
}

/* A filter that lets everything pass shows that filters can be installed.  The listener's
 * fd, 0 without one, or -1. */
static int
install_filter(unsigned flags)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = 1, .filter = &allow};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

void
probe_seccomp(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    unsigned action = SECCOMP_RET_KILL_PROCESS;

    if (install_filter(0) < 0) {
        probe_set(r, PROBE_MISSING, "installing a filter: %s", g_strerror(errno));
        probe_fix_text(r, "boot a kernel with CONFIG_SECCOMP_FILTER");
        return;
    }
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0) {
        probe_set(r, PROBE_MISSING, "a filter cannot kill a process: %s", g_strerror(errno));
        probe_fix_text(r, "boot a kernel of version 4.14 or later");
        return;
    }
    probe_set(r, PROBE_OK, "installed a filter");
}

void
probe_seccomp_notify(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    autofd listener = install_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER);

    if (listener >= 0) {
        probe_set(r, PROBE_OK, "a filter can ask another process");
        return;
    }
    probe_set(r, PROBE_DEGRADED, "a filter cannot ask another process: %s", g_strerror(errno));
    probe_fix_text(r, "boot a kernel of version 5.0 or later; inside a container that has such a filter "
                      "itself (EBUSY), run coop on the host");
}

void
probe_no_new_privs(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
        probe_set(r, PROBE_OK, "set-user-id programs can be made harmless");
        return;
    }
    probe_set(r, PROBE_MISSING, "no_new_privs cannot be set: %s", g_strerror(errno));
    probe_fix_text(r, "boot a kernel of version 3.5 or later");
}

void
probe_landlock(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (abi > 0) {
        probe_set(r, PROBE_OK, "ABI %d", abi);
        return;
    }
    bool off = errno == EOPNOTSUPP;
    probe_set(r, PROBE_DEGRADED, "%s", off ? "built in but not switched on" : "not in this kernel");
    if (off)
        probe_fix_text(r, "add landlock to the lsm= list of the kernel's command line and boot again");
    else
        probe_fix_text(r, "boot a kernel of version 5.13 or later with CONFIG_SECURITY_LANDLOCK");
}

void
probe_kvm(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    autofd kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

    if (kvm < 0 && errno == EACCES) {
        probe_set(r, PROBE_DEGRADED, "user %s may not open /dev/kvm: microVMs are emulated, and slow",
                  ctx->user);
        probe_fix(ctx, r, "usermod --append --groups kvm %s", ctx->user);
        return;
    }
    autofd vm = kvm >= 0 && ioctl(kvm, KVM_GET_API_VERSION, 0) == KVM_API ? ioctl(kvm, KVM_CREATE_VM, 0) : -1;
    if (vm >= 0) {
        probe_set(r, PROBE_OK, "made a virtual machine");
        return;
    }
    probe_set(r, PROBE_DEGRADED, "no virtual machine: %s; microVMs are emulated, and slow",
              g_strerror(errno));
    probe_fix_text(r, "switch virtualisation on in the firmware, or nested virtualisation in the hypervisor");
}

void
probe_loop(const ProbeContext *ctx, const Probe *probe, ProbeResult *r)
{
    autofd control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

    if (control >= 0 && ioctl(control, LOOP_CTL_GET_FREE) >= 0) {
        probe_set(r, PROBE_OK, "exact disk limits");
        return;
    }
    probe_set(r, PROBE_DEGRADED, "no loop devices (%s): disk limits are not exact", g_strerror(errno));
    if (errno == ENOENT || errno == ENODEV)
        probe_fix(ctx, r, "modprobe loop");
    else
        probe_fix_text(r, "start coop as root: its keeper needs root for loop devices");
}
