/* SPDX-License-Identifier: Apache-2.0 */
/* The probes that read files, on machines made of a few files. */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "daemon/probe-private.h"

typedef struct Machine {
    const char *path; /* NULL ends the list */
    const char *text;
} Machine;

static char *
build_machine(const Machine *files)
{
    char *root = g_dir_make_tmp("coop-probe-XXXXXX", NULL);

    for (const Machine *f = files; f->path != NULL; f++) {
        g_autofree char *path = g_strconcat(root, f->path, NULL);
        g_autofree char *folder = g_path_get_dirname(path);

        g_assert_cmpint(g_mkdir_with_parents(folder, 0755), ==, 0);
        g_assert_true(g_file_set_contents(path, f->text, -1, NULL));
    }
    return root;
}

static void
remove_machine(char *root)
{
    const char *const rm[] = {"rm", "-rf", root, NULL};

    g_assert_true(g_spawn_sync(NULL, (char **)(guintptr)rm, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL,
                               NULL, NULL));
    g_free(root);
}

typedef struct Case {
    const char *probe;
    uid_t uid;
    Machine files[9];
    ProbeState state;
    const char *detail;
    const char *fix; /* a part of it; NULL: there is none */
} Case;

static const Probe *
find_probe(const char *name)
{
    for (size_t i = 0; i < n_probes; i++) {
        if (strcmp(probes[i].name, name) == 0)
            return &probes[i];
    }
    g_assert_not_reached();
}

static void
check_case(const Case *c)
{
    char *root = build_machine(c->files);
    const Probe *probe = find_probe(c->probe);
    ProbeContext ctx;
    ProbeResult r = {0};

    probe_context_init(&ctx, root, "/nonexistent");
    ctx.uid = c->uid;
    ctx.real_root = c->uid == 0;
    g_free(ctx.user);
    ctx.user = g_strdup("ada");
    probe->run(&ctx, probe, &r);
    g_test_message("%s: %s", c->probe, r.detail);
    g_assert_cmpstr(probe_state_name(r.state), ==, probe_state_name(c->state));
    g_assert_cmpstr(r.detail, ==, c->detail);
    g_assert_true((r.fix != NULL) == (c->fix != NULL));
    if (c->fix != NULL && strstr(r.fix, c->fix) == NULL)
        g_error("'%s' is not in '%s'", c->fix, r.fix);
    g_free(r.detail);
    g_free(r.fix);
    probe_context_clear(&ctx);
    remove_machine(root);
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNTS                                                                                            \
    "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"                                                      \
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"                            \
    "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                                      \
    "34 31 0:31 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
#define V1_SELF "4:pids:/a\n3:memory:/a/b\n2:cpu,cpuacct:/\n1:name=systemd:/\n"

static const Case cgroup_cases[] = {
    {"cgroups",
     0,
     {{"/proc/self/cgroup", "0::/system.slice/coop.service\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/system.slice/coop.service/cgroup.controllers", "cpuset cpu io memory pids\n"},
      {"/sys/fs/cgroup/system.slice/coop.service/cgroup.procs", ""}},
     PROBE_OK,
     "v2 with memory, cpu and pids",
     NULL},
    {"cgroups",
     1000,
     {{"/proc/self/cgroup", "0::/user.slice/x\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/user.slice/x/cgroup.controllers", "memory pids\n"},
      {"/sys/fs/cgroup/user.slice/x/cgroup.procs", ""}},
     PROBE_DEGRADED,
     "v2, but no limits of cpu for user ada",
     "Delegate=cpu cpuset io memory pids"},
    /* Another's group: we may not put a process there. */
    {"cgroups",
     1000,
     {{"/proc/self/cgroup", "0::/user.slice/x\n"},
      {"/proc/self/mountinfo", V2_MOUNT},
      {"/sys/fs/cgroup/user.slice/x/cgroup.controllers", "cpu memory pids\n"}},
     PROBE_DEGRADED,
     "v2, but no limits of memory, cpu, pids for user ada",
     "Delegate="},
    /* A container sees its own group as the root of the mount. */
    {"cgroups",
     0,
     {{"/proc/self/cgroup", "0::/docker/1234/inner\n"},
      {"/proc/self/mountinfo", "30 23 0:26 /docker/1234 /sys/fs/cgroup rw - cgroup2 cgroup rw\n"},
      {"/sys/fs/cgroup/inner/cgroup.controllers", "cpu memory pids\n"},
      {"/sys/fs/cgroup/inner/cgroup.procs", ""}},
     PROBE_OK,
     "v2 with memory, cpu and pids",
     NULL},
    {"cgroups",
     0,
     {{"/proc/self/cgroup", V1_SELF},
      {"/proc/self/mountinfo", V1_MOUNTS},
      {"/sys/fs/cgroup/cpu,cpuacct/cgroup.procs", ""},
      {"/sys/fs/cgroup/memory/a/b/cgroup.procs", ""},
      {"/sys/fs/cgroup/pids/a/cgroup.procs", ""}},
     PROBE_OK,
     "v1 with memory, cpu and pids",
     NULL},
    {"cgroups",
     0,
     {{"/proc/self/cgroup", V1_SELF "0::/\n"},
      {"/proc/self/mountinfo", V1_MOUNTS "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/cgroup.procs", ""},
      {"/sys/fs/cgroup/pids/a/cgroup.procs", ""}},
     PROBE_DEGRADED,
     "v1 and v2 (hybrid), but no limits of memory for user ada",
     "Delegate=yes"},
    {"cgroups",
     1000,
     {{"/proc/self/cgroup", V1_SELF}, {"/proc/self/mountinfo", V1_MOUNTS}},
     PROBE_DEGRADED,
     "v1, but no limits of memory, cpu, pids for user ada",
     "systemd.unified_cgroup_hierarchy=1"},
    {"cgroups",
     0,
     {{"/proc/self/cgroup", "0::/\n"}, {"/proc/self/mountinfo", "\nnonsense\n - \n1 2 3 - cgroup2\n"}},
     PROBE_DEGRADED,
     "no cgroups are mounted: boxes have no limits",
     "mount -t cgroup2 none /sys/fs/cgroup"},
};

static const Case userns_cases[] = {
    {"max-user-namespaces",
     0,
     {{"/proc/sys/user/max_user_namespaces", "96349\n"}},
     PROBE_OK,
     "96349 for each user",
     NULL},
    {"max-user-namespaces",
     0,
     {{"/proc/sys/user/max_user_namespaces", "10\n"}},
     PROBE_DEGRADED,
     "10 for each user",
     "sysctl -w user.max_user_namespaces="},
    {"max-user-namespaces",
     1000,
     {{"/proc/sys/user/max_user_namespaces", "0\n"}},
     PROBE_MISSING,
     "0 for each user",
     "sudo sysctl -w user.max_user_namespaces="},
    {"max-user-namespaces",
     1000,
     {{NULL}},
     PROBE_MISSING,
     "this kernel has no user namespaces",
     "CONFIG_USER_NS"},
    {"userns-clone", 1000, {{NULL}}, PROBE_OK, "user namespaces are open to all users", NULL},
    {"userns-clone",
     1000,
     {{"/proc/sys/kernel/unprivileged_userns_clone", "1"}},
     PROBE_OK,
     "user namespaces are open to all users",
     NULL},
    {"userns-clone",
     1000,
     {{"/proc/sys/kernel/unprivileged_userns_clone", "0"}},
     PROBE_MISSING,
     "user namespaces are for root only",
     "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
    {"userns-clone",
     0,
     {{"/proc/sys/kernel/unprivileged_userns_clone", "0"}},
     PROBE_OK,
     "user namespaces are for root only",
     NULL},
    {"apparmor-userns", 1000, {{NULL}}, PROBE_OK, "AppArmor does not restrict user namespaces", NULL},
    {"apparmor-userns",
     1000,
     {{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"},
      {"/proc/self/attr/apparmor/current", "unconfined\n"}},
     PROBE_MISSING,
     "AppArmor restricts user namespaces to programs with a profile",
     "| sudo tee /etc/apparmor.d/coop && sudo apparmor_parser -r /etc/apparmor.d/coop"},
    {"apparmor-userns",
     1000,
     {{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"},
      {"/proc/self/attr/apparmor/current", "coop (unconfined)\n"}},
     PROBE_OK,
     "AppArmor restricts user namespaces, but not for this program",
     NULL},
    {"apparmor-userns",
     0,
     {{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"}},
     PROBE_OK,
     "AppArmor restricts user namespaces, but not for this program",
     NULL},
    {"sub-ids",
     0,
     {{"/proc/self/uid_map", "         0          0 4294967295\n"},
      {"/etc/subuid", "ada:100000:65536\ncoop:165536:65536\n"},
      {"/etc/subgid", "ada:100000:65536\ncoop:165536:65536\n"}},
     PROBE_OK,
     "65536 ids for user coop",
     NULL},
    {"sub-ids",
     0,
     {{"/proc/self/uid_map", "         0          0 4294967295\n"},
      {"/etc/subuid", "ada:100000:65536\ncoop:165536:65536\n"},
      {"/etc/subgid", "ada:100000:65536\n"}},
     PROBE_MISSING,
     "0 ids for user coop",
     "usermod --add-subuids 231072-296607 --add-subgids 231072-296607 coop"},
    {"sub-ids",
     0,
     {{"/proc/self/uid_map", "0 1000 1\n"}},
     PROBE_MISSING,
     "root with 1 ids",
     "map at least 131072 ids"},
};

static const Case host_cases[] = {
    {"inotify",
     1000,
     {{"/proc/sys/fs/inotify/max_user_instances", "128"}, {"/proc/sys/fs/inotify/max_user_watches", "65536"}},
     PROBE_OK,
     "128 instances, 65536 watches",
     NULL},
    {"inotify",
     1000,
     {{"/proc/sys/fs/inotify/max_user_instances", "128"}, {"/proc/sys/fs/inotify/max_user_watches", "8192"}},
     PROBE_DEGRADED,
     "128 instances, 8192 watches",
     "sudo sysctl -w fs.inotify.max_user_instances="},
    {"kernel.io_uring_disabled",
     0,
     {{"/proc/sys/kernel/io_uring_disabled", "2"}},
     PROBE_OK,
     "2; with 2 a frequent source of kernel flaws is closed",
     NULL},
    {"kernel.io_uring_disabled",
     0,
     {{"/proc/sys/kernel/io_uring_disabled", "1"}},
     PROBE_DEGRADED,
     "1; with 2 a frequent source of kernel flaws is closed",
     "sysctl -w kernel.io_uring_disabled=2"},
    {"kernel.io_uring_disabled",
     0,
     {{NULL}},
     PROBE_OK,
     "not in this kernel, or not for this user to see",
     NULL},
    {"dev.tty.legacy_tiocsti",
     0,
     {{"/proc/sys/dev/tty/legacy_tiocsti", "1"}},
     PROBE_DEGRADED,
     "1; with 0 programs cannot type into their terminal",
     "sysctl -w dev.tty.legacy_tiocsti=0"},
    {"dev.tty.legacy_tiocsti",
     0,
     {{"/proc/sys/dev/tty/legacy_tiocsti", "0"}},
     PROBE_OK,
     "0; with 0 programs cannot type into their terminal",
     NULL},
    {"git-groups", 0, {{NULL}}, PROBE_OK, "git can be put into groups of its own", NULL},
    {"git-groups",
     0,
     {{"/proc/sys/kernel/yama/ptrace_scope", "2"}},
     PROBE_OK,
     "git can be put into groups of its own",
     NULL},
    {"git-groups",
     0,
     {{"/proc/sys/kernel/yama/ptrace_scope", "3"}},
     PROBE_DEGRADED,
     "with kernel.yama.ptrace_scope=3 git gets no group of its own",
     "start the machine anew"},
    {"swap", 0, {{"/proc/swaps", "Filename Type Size\n"}}, PROBE_OK, "none", NULL},
    {"swap",
     0,
     {{"/proc/swaps", "Filename Type Size\n/dev/sda2 partition 1\n"}},
     PROBE_DEGRADED,
     "secrets may reach the disk unless it is encrypted",
     "swapoff --all"},
    {"smt",
     0,
     {{"/sys/devices/system/cpu/smt/active", "1"}},
     PROBE_DEGRADED,
     "two boxes may share a processor and watch each other's timing",
     "smt/control"},
    {"smt", 0, {{NULL}}, PROBE_OK, "processors are not shared by two threads", NULL},
};

static void
test_cgroups(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cgroup_cases); i++)
        check_case(&cgroup_cases[i]);
}

static void
test_userns(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(userns_cases); i++)
        check_case(&userns_cases[i]);
}

static void
test_host(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(host_cases); i++)
        check_case(&host_cases[i]);
}

/* What counts for the exit code of the doctor. */
static void
test_all_needed(void)
{
    static const struct {
        ProbeNeed need;
        ProbeState state;
        bool want;
    } cases[] = {
        {PROBE_NEEDED, PROBE_OK, true},       {PROBE_NEEDED, PROBE_DEGRADED, true},
        {PROBE_NEEDED, PROBE_MISSING, false}, {PROBE_WANTED, PROBE_MISSING, true},
        {PROBE_ADVICE, PROBE_MISSING, true},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        ProbeResult good = {.need = PROBE_NEEDED}, r = {.need = cases[i].need, .state = cases[i].state};
        g_autoptr(GPtrArray) results = g_ptr_array_new();

        g_ptr_array_add(results, &good);
        g_ptr_array_add(results, &r);
        g_assert_true(probe_all_needed(results) == cases[i].want);
    }
}

/* A program that cannot answer the question must not hang the run or pass for good. */
static void
on_results(const GPtrArray *results, void *data)
{
    guint *silent = data;

    for (guint i = 0; i < results->len; i++) {
        const ProbeResult *r = results->pdata[i];

        g_assert_nonnull(r->detail);
        g_assert_true((r->state == PROBE_OK) == (r->fix == NULL));
        if (find_probe(r->name)->in_child) {
            g_assert_cmpint(r->state, ==, PROBE_MISSING);
            (*silent)++;
        }
    }
}

static void
test_silent_children(void)
{
    static const char *const programs[] = {"/bin/true", "/bin/false", "/bin/echo", "/nonexistent",
                                           "/usr/bin/yes"}; /* the last one never ends */

    for (size_t i = 0; i < G_N_ELEMENTS(programs); i++) {
        guint silent = 0;
        ProbeRun *run = probe_run_new(
            &(ProbeSpec){.program = programs[i], .home = "/nonexistent", .child_ms = 100}, on_results,
            &silent);

        while (silent == 0)
            g_main_context_iteration(NULL, TRUE);
        g_assert_cmpuint(silent, ==, 5);
        probe_run_free(run);
    }
    g_autoptr(ProbeRun) dropped = probe_run_new(&(ProbeSpec){.program = "/bin/echo", .home = "/nonexistent"},
                                                on_results, NULL);
    g_assert_nonnull(dropped);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/probe/cgroups", test_cgroups);
    g_test_add_func("/probe/userns", test_userns);
    g_test_add_func("/probe/host", test_host);
    g_test_add_func("/probe/all-needed", test_all_needed);
    g_test_add_func("/probe/silent-children", test_silent_children);
    return g_test_run();
}
