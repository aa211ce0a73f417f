/* SPDX-License-Identifier: Apache-2.0 */
#include "git-main/confine.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/landlock.h"
#include "git-main/calls.h"

enum {
    CPU_S = 3600,
    FILES = 1024,
    PROCESSES = 4096, /* of the user, whose other programs count too */
};
#define FILE_BYTES ((rlim_t)64 << 30)

#define DATA_BYTES ((rlim_t)4 << 30)

static const char *const programs[] = {"/usr/bin/git", "/usr/local/bin/git", NULL};

/* The programs of git's own folder are all that it runs. */
static const LandlockPath all_programs[] = {
    {"/usr/lib/git-core", LANDLOCK_RUN_TREE},
    {"/usr/libexec/git-core", LANDLOCK_RUN_TREE},
    {"/usr/local/libexec/git-core", LANDLOCK_RUN_TREE},
    {NULL, 0},
};

/* With the network: what speaks it, and git itself. */
static const LandlockPath net_programs[] = {
    {"/usr/lib/git-core/git", LANDLOCK_RUN_FILE},
    {"/usr/lib/git-core/git-remote-http", LANDLOCK_RUN_FILE},
    {"/usr/lib/git-core/git-remote-https", LANDLOCK_RUN_FILE},
    {"/usr/libexec/git-core/git", LANDLOCK_RUN_FILE},
    {"/usr/libexec/git-core/git-remote-http", LANDLOCK_RUN_FILE},
    {"/usr/libexec/git-core/git-remote-https", LANDLOCK_RUN_FILE},
    {"/usr/local/libexec/git-core/git", LANDLOCK_RUN_FILE},
    {"/usr/local/libexec/git-core/git-remote-http", LANDLOCK_RUN_FILE},
    {"/usr/local/libexec/git-core/git-remote-https", LANDLOCK_RUN_FILE},
    {NULL, 0},
};

/* What git reads besides the repository. */
static const LandlockPath system_paths[] = {
    {"/usr/bin/git", LANDLOCK_RUN_TREE},
    {"/usr/local/bin/git", LANDLOCK_RUN_TREE},
    {"/usr/share/git-core", LANDLOCK_READ_TREE},
    {"/lib", LANDLOCK_READ_TREE},
    {"/lib64", LANDLOCK_READ_TREE},
    {"/usr/lib", LANDLOCK_READ_TREE},
    {"/usr/lib64", LANDLOCK_READ_TREE},
    {"/usr/local/lib", LANDLOCK_READ_TREE},
    {"/etc/ld.so.cache", LANDLOCK_READ_FILE},
    {"/etc/ld.so.preload", LANDLOCK_READ_FILE},
    {"/usr/share/zoneinfo", LANDLOCK_READ_TREE},
    {"/dev/urandom", LANDLOCK_READ_FILE},
    {"/dev/null", LANDLOCK_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE},
    {NULL, 0},
};

const char *
confine_git(void)
{
    for (size_t i = 0; programs[i] != NULL; i++) {
        if (access(programs[i], X_OK) == 0)
            return programs[i];
    }
    return programs[0];
}

static bool
limit(__rlimit_resource_t resource, rlim_t most)
{
    struct rlimit old;

    if (getrlimit(resource, &old) < 0)
        return false;
    most = most < old.rlim_max ? most : old.rlim_max;
    return setrlimit(resource, &(struct rlimit){most, most}) == 0;
}

static bool
confine_limits(const ConfineSpec *spec)
{
    rlim_t file = spec->file_max > 0 ? (rlim_t)spec->file_max : FILE_BYTES;

    return limit(RLIMIT_CORE, 0) && limit(RLIMIT_CPU, CPU_S) && limit(RLIMIT_NOFILE, FILES) &&
           limit(RLIMIT_NPROC, PROCESSES) && limit(RLIMIT_FSIZE, file) && limit(RLIMIT_DATA, DATA_BYTES) &&
           limit(RLIMIT_MEMLOCK, 0);
}

/* The loader that the kernel starts git with: ours, since both are of this system. */
static int
find_loader(struct dl_phdr_info *info, size_t size, void *ret_path)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_INTERP)
            *(const char **)ret_path = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    return 1; /* the program itself comes first */
}

static bool
allow_loader(const LandlockRules *rules)
{
    const char *path = NULL;

    (void)dl_iterate_phdr(find_loader, &path);
    return path == NULL || landlock_allow(rules, path, LANDLOCK_RUN_TREE);
}

/* A place for files of the moment, also where nothing else may be written. */
static bool
allow_scratch(const LandlockRules *rules)
{
    return (mkdir("tmp", 0700) == 0 || errno == EEXIST) &&
           landlock_allow(rules, "tmp", LANDLOCK_WRITE_TREE | LANDLOCK_ACCESS_FS_REFER);
}

static bool
confine_files(const ConfineSpec *spec, int abi)
{
    uint64_t net = spec->net ? LANDLOCK_NET_BIND : LANDLOCK_NET_BIND | LANDLOCK_NET_CONNECT;
    LandlockRules rules;

    if (!landlock_rules_open(abi, net, LANDLOCK_SCOPE_SOCKETS | LANDLOCK_SCOPE_SIGNALS, &rules))
        return false;
    landlock_allow_each(&rules, system_paths);
    landlock_allow_each(&rules, spec->net ? net_programs : all_programs);
    if (spec->net)
        landlock_allow_each(&rules, landlock_network_paths);
    bool done = allow_loader(&rules) &&
                landlock_allow(&rules, ".",
                               spec->write ? LANDLOCK_WRITE_TREE | LANDLOCK_ACCESS_FS_REFER
                                           : LANDLOCK_READ_TREE) &&
                (!spec->scratch || allow_scratch(&rules)) &&
                (spec->hooks == NULL || landlock_allow(&rules, spec->hooks, LANDLOCK_RUN_TREE)) &&
                landlock_enter(&rules);

    close(rules.fd);
    return done;
}

bool
confine(const ConfineSpec *spec, const char **ret_doing)
{
    int abi = landlock_abi();

    *ret_doing = "take limits";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || !confine_limits(spec))
        return false;
    *ret_doing = "take rules for files";
    if (abi >= LANDLOCK_ABI_REFER && !confine_files(spec, abi))
        return false;
    *ret_doing = "take a filter of system calls";
    return calls_enter(spec->net, abi >= LANDLOCK_ABI_SCOPES);
}
