/* SPDX-License-Identifier: Apache-2.0 */
#include "base/landlock.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const LandlockPath landlock_network_paths[] = {
    /* certificates */
    {"/etc/ssl", LANDLOCK_READ_TREE},
    {"/etc/pki", LANDLOCK_READ_TREE},
    {"/etc/ca-certificates", LANDLOCK_READ_TREE},
    {"/usr/share/ca-certificates", LANDLOCK_READ_TREE},
    {"/usr/local/share/ca-certificates", LANDLOCK_READ_TREE},
    {"/usr/lib/ssl", LANDLOCK_READ_TREE},
    /* names: the files, and what the C library loads for them */
    {"/etc/resolv.conf", LANDLOCK_READ_FILE},
    {"/run/systemd/resolve", LANDLOCK_READ_TREE},
    {"/etc/nsswitch.conf", LANDLOCK_READ_FILE},
    {"/etc/hosts", LANDLOCK_READ_FILE},
    {"/etc/host.conf", LANDLOCK_READ_FILE},
    {"/etc/gai.conf", LANDLOCK_READ_FILE},
    {"/etc/services", LANDLOCK_READ_FILE},
    {NULL, 0},
};

int
landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi > 0 ? (int)abi : 0;
}

static size_t
size_for(int abi)
{
    return abi >= LANDLOCK_ABI_SCOPES ? sizeof(LandlockRuleset)
           : abi >= LANDLOCK_ABI_NET  ? offsetof(LandlockRuleset, scoped)
                                      : offsetof(LandlockRuleset, net);
}

bool
landlock_rules_open(int abi, uint64_t net, uint64_t scoped, LandlockRules *ret_rules)
{
    LandlockRuleset all = {.fs = LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1, .net = net, .scoped = scoped};

    if (abi >= LANDLOCK_ABI_REFER)
        all.fs |= LANDLOCK_ACCESS_FS_REFER;
    if (abi >= LANDLOCK_ABI_TRUNCATE)
        all.fs |= LANDLOCK_FS_TRUNCATE;
    ret_rules->handled = all.fs;
    ret_rules->fd = (int)syscall(SYS_landlock_create_ruleset, &all, size_for(abi), 0);
    return ret_rules->fd >= 0;
}

bool
landlock_allow(const LandlockRules *rules, const char *path, uint64_t access)
{
    const uint64_t of_files = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                              LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_FS_TRUNCATE;
    int fd = open(path, O_PATH | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return false;
    bool done = fstat(fd, &st) == 0;

    if (done) {
        struct landlock_path_beneath_attr beneath = {
            .allowed_access = access & rules->handled & (S_ISDIR(st.st_mode) ? UINT64_MAX : of_files),
            .parent_fd = fd};

        done = syscall(SYS_landlock_add_rule, rules->fd, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0;
    }
    close(fd);
    return done;
}

void
landlock_allow_each(const LandlockRules *rules, const LandlockPath *paths)
{
    for (; paths->path != NULL; paths++)
        (void)landlock_allow(rules, paths->path, paths->access);
}

bool
landlock_enter(const LandlockRules *rules)
{
    return syscall(SYS_landlock_restrict_self, rules->fd, 0) == 0;
}
