/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* Who a program should run as. */
typedef struct RunAs {
    char *name; /* NULL: whoever we are */
    uid_t uid;
    gid_t gid;
} RunAs;

void run_as_clear(RunAs *as);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RunAs, run_as_clear)

/* `wanted` NULL: for root the user `coop`, otherwise nobody else.  Root without such a user
 * is an error that says what to do; `root` has to be asked for by name. */
bool run_as_find(const char *wanted, RunAs *ret_as, GError **error);

/* For good: groups, then gid, then uid, checked afterwards. */
bool run_as_enter(const RunAs *as, GError **error);
/* No new privileges ever after. */
bool run_as_seal(GError **error);
