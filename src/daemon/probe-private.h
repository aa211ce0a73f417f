/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <sys/types.h>

#include "daemon/probe.h"

typedef struct ProbeContext {
    const char *root; /* in front of every path that is read: "", or a folder of a test */
    const char *home;
    uid_t uid;
    bool real_root; /* root of the machine, not of a user namespace */
    char *user;     /* its name */
} ProbeContext;

void probe_context_init(ProbeContext *ctx, const char *root, const char *home);
void probe_context_clear(ProbeContext *ctx);

typedef struct Probe {
    const char *name;
    ProbeNeed need;
    bool in_child; /* changes the process for good */
    void (*run)(const ProbeContext *ctx, const struct Probe *probe, ProbeResult *r);
    const char *arg; /* what it is about: a program, a sysctl */
    const char *extra;
    gint64 number;
} Probe;

extern const Probe probes[];
extern const size_t n_probes;

void probe_set(ProbeResult *r, ProbeState state, const char *fmt, ...) G_GNUC_PRINTF(3, 4);
/* A command; "sudo" is put in front of it unless we are root. */
void probe_fix(const ProbeContext *ctx, ProbeResult *r, const char *fmt, ...) G_GNUC_PRINTF(3, 4);
/* Something to do that is not a command. */
void probe_fix_text(ProbeResult *r, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* The text of a small file without the white space at its end; NULL if it cannot be read. */
char *probe_read(const ProbeContext *ctx, const char *path);
/* A file that holds one number; `missing` if it is not there. */
gint64 probe_read_number(const ProbeContext *ctx, const char *path, gint64 missing);

typedef void ProbeFunc(const ProbeContext *ctx, const Probe *probe, ProbeResult *r);

/* probe-kernel.c */
ProbeFunc probe_kernel, probe_seccomp, probe_seccomp_notify, probe_no_new_privs, probe_landlock, probe_kvm,
    probe_loop;
/* probe-userns.c */
ProbeFunc probe_userns, probe_max_userns, probe_userns_clone, probe_apparmor, probe_sub_ids,
    probe_template_ids, probe_overlay;
/* probe-cgroup.c */
ProbeFunc probe_cgroup, probe_boxes;
/* probe-host.c */
ProbeFunc probe_open_files, probe_inotify, probe_data_folder, probe_disk, probe_program, probe_clock,
    probe_sysctl, probe_sysctl_off, probe_swap, probe_smt, probe_user, probe_git_groups;
