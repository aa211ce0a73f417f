/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/visit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/privilege.h"
#include "daemon/home.h"

static bool
find_owner(const char *home, RunAs *ret_owner, GError **error)
{
    struct stat st;

    if (stat(home, &st) < 0)
        return run_as_find(NULL, ret_owner, error);
    *ret_owner = (RunAs){.uid = st.st_uid, .gid = st.st_gid};
    return true;
}

static bool
become(Visit *v, const RunAs *owner, GError **error)
{
    if (geteuid() != 0 || owner->uid == 0)
        return true;
    v->uid = geteuid();
    v->gid = getegid();
    v->changed = true;
    return (setegid(owner->gid) == 0 && seteuid(owner->uid) == 0) ||
           err_errno(error, "work as the owner of the data folder");
}

bool
visit_begin(const char *home, Visit *ret, GError **error)
{
    g_auto(RunAs) owner = {0};

    if (!find_owner(home, &owner, error) || !home_prepare(home, owner.uid, owner.gid, error) ||
        !become(ret, &owner, error))
        return false;
    ret->lock_fd = home_lock(home, owner.uid, owner.gid, error);
    return ret->lock_fd >= 0;
}

void
visit_end(Visit *v)
{
    if (v->lock_fd >= 0)
        close(v->lock_fd);
    /* Both were ours: only a mistake of ours can keep us from them. */
    if (v->changed)
        g_assert(seteuid(v->uid) == 0 && setegid(v->gid) == 0);
    *v = (Visit)VISIT_INIT;
}
