/* SPDX-License-Identifier: Apache-2.0 */
#include "base/privilege.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"

static const char default_user[] = "coop";

void
run_as_clear(RunAs *as)
{
    g_free(as->name);
    *as = (RunAs){0};
}

bool
run_as_find(const char *wanted, RunAs *ret_as, GError **error)
{
    bool root = geteuid() == 0;

    if (!root && wanted == NULL) {
        *ret_as = (RunAs){.uid = geteuid(), .gid = getegid()};
        return true;
    }
    const char *name = wanted != NULL ? wanted : default_user;
    errno = 0;
    struct passwd *pw = getpwnam(name);
    if (pw == NULL && wanted == NULL)
        return err_set(error, ERR_UNAVAILABLE,
                       "the server does not run as root, and there is no user '%s'\n"
                       "FIX: run script/start, which makes it, or name another with --user",
                       default_user);
    if (pw == NULL)
        return err_set(error, ERR_NOT_FOUND, "there is no user '%s'", name);
    if (!root && pw->pw_uid != geteuid())
        return err_set(error, ERR_DENIED, "only root can run as another user");
    *ret_as = (RunAs){.name = g_strdup(name), .uid = pw->pw_uid, .gid = pw->pw_gid};
    return true;
}

static bool
change_ids(const RunAs *as, GError **error)
{
    if (setgroups(1, &as->gid) < 0 || setresgid(as->gid, as->gid, as->gid) < 0 ||
        setresuid(as->uid, as->uid, as->uid) < 0)
        return err_errno(error, "run as user '%s'", as->name);
    /* A drop that did not happen is the one failure nobody would notice. */
    if (as->uid != 0 && (setuid(0) == 0 || geteuid() != as->uid || getegid() != as->gid))
        return err_set(error, ERR_INTERNAL, "the privileges of root could not be given up");
    return true;
}

bool
run_as_enter(const RunAs *as, GError **error)
{
    return as->name == NULL || geteuid() != 0 || change_ids(as, error);
}

bool
run_as_seal(GError **error)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_errno(error, "give up new privileges");
    return true;
}
