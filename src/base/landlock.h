/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <linux/landlock.h>
#include <stdbool.h>
#include <stdint.h>

/* Rules about files for the calling process and what it starts.  libc only, so that every program can
 * have it; these set errno. */

/* Which version of the kernel's interface brought what.  Below REFER no file can be moved between
 * folders at all. */
enum {
    LANDLOCK_ABI_REFER = 2,
    LANDLOCK_ABI_TRUNCATE = 3,
    LANDLOCK_ABI_NET = 4,
    LANDLOCK_ABI_SCOPES = 6,
};
int landlock_abi(void); /* 0: this kernel has none */

/* Newer than the headers of the oldest distribution. */
#define LANDLOCK_FS_TRUNCATE (1ULL << 14)
#define LANDLOCK_NET_BIND (1ULL << 0)
#define LANDLOCK_NET_CONNECT (1ULL << 1)
#define LANDLOCK_SCOPE_SOCKETS (1ULL << 0)
#define LANDLOCK_SCOPE_SIGNALS (1ULL << 1)

#define LANDLOCK_READ_FILE LANDLOCK_ACCESS_FS_READ_FILE
#define LANDLOCK_RUN_FILE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE)
#define LANDLOCK_READ_TREE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define LANDLOCK_RUN_TREE (LANDLOCK_READ_TREE | LANDLOCK_ACCESS_FS_EXECUTE)
/* Plain files and folders: no links, sockets, pipes or devices are made. */
#define LANDLOCK_WRITE_TREE                                                                                  \
    (LANDLOCK_READ_TREE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |                   \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR |             \
     LANDLOCK_FS_TRUNCATE)

/* The kernel's own structure as far as the newest kernel has it; older ones take its start. */
typedef struct LandlockRuleset {
    uint64_t fs, net, scoped;
} LandlockRuleset;

typedef struct LandlockRules {
    int fd; /* the caller's to close */
    uint64_t handled;
} LandlockRules;

/* Everything about files that the kernel knows is refused until it is allowed; of `net` and `scoped` what
 * it knows. */
bool landlock_rules_open(int abi, uint64_t net, uint64_t scoped, LandlockRules *ret_rules);
/* Of a file, only what can be done with files. */
bool landlock_allow(const LandlockRules *rules, const char *path, uint64_t access);

typedef struct LandlockPath {
    const char *path;
    uint64_t access;
} LandlockPath;
/* What is not there is nothing to read. */
void landlock_allow_each(const LandlockRules *rules, const LandlockPath *paths);
/* Certificates and what names are resolved by; a NULL path ends it. */
extern const LandlockPath landlock_network_paths[];

bool landlock_enter(const LandlockRules *rules);
