/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The image's /etc/passwd and /etc/group, read without NSS: a planted nsswitch.conf would load
 * code.  The files are whatever the box's root wrote, so they are only read by a process that
 * has nothing to lose (see user_lookup() in user.h). */

enum {
    PASSWD_ID_MAX = 65535, /* the ids that a box has */
    PASSWD_NAME_MAX = 32,
    PASSWD_PATH_MAX = 256,
    PASSWD_GROUPS_MAX = 32,
    PASSWD_LINE_MAX = 8 * 1024, /* a longer line is skipped */
    PASSWD_FILE_MAX = 4 * 1024 * 1024,
    PASSWD_DEFAULT_ID = 1000,
};

typedef struct User {
    uid_t uid;
    gid_t gid;
    bool has_uid, has_gid; /* before the lookup: what the request fixed */
    uint32_t n_groups;
    gid_t groups[PASSWD_GROUPS_MAX];
    char name[PASSWD_NAME_MAX + 1];
    char home[PASSWD_PATH_MAX + 1];
    char shell[PASSWD_PATH_MAX + 1];
} User;

/* "", a name, "uid" or "uid:gid".  False: none of them. */
bool user_parse(const char *text, User *ret_user);

/* One line without its newline.  True: it is the user's and was taken. */
bool passwd_take_line(const char *line, size_t n, User *user);
/* Adds the group when the user is among its members. */
void group_take_line(const char *line, size_t n, User *user);

/* Reads both files.  False, errno set: a name that is not there, or no file to find it in. */
bool user_read(User *user);
