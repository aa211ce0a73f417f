/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "init/passwd.h"

/* Who a run is to be, by a name or number of the image. */

enum { USER_WANTED_MAX = 40, USER_FILES = 2, USER_SETTLED_S = 2 };

/* A file as it was when it was read. */
typedef struct UserFile {
    uint64_t device, inode, size;
    int64_t changed_s, changed_ns; /* every change of a file moves it */
} UserFile;

/* The last one found.  A lookup may be a process of its own, which costs more than all else
 * that init does for a run; so it is kept for as long as the files are as they were.  Where they were
 * changed within the last USER_SETTLED_S the clock may be too coarse to tell, and nothing is
 * kept. */
typedef struct UserMemory {
    bool known;
    char wanted[USER_WANTED_MAX + 1];
    UserFile files[USER_FILES];
    User user;
} UserMemory;

/* `wanted` as in FrameStart.  Passwd is read as nobody: `here`, where a process that changes its
 * user cannot be traced by others of that user, or else in a child, which costs a fork.  Never in
 * init itself.  Whoever can write the file is root inside, as the reader was.  errno on failure. */
bool user_lookup(const char *wanted, bool here, User *ret_user);
/* From memory, if that is still true. */
bool user_recall(const UserMemory *memory, const char *wanted, User *ret_user);
/* user_lookup(); `known` says whether it can be kept. */
bool user_learn(const char *wanted, bool here, UserMemory *ret_memory);
/* What came from another process: within its bounds. */
void user_tame(User *user);
