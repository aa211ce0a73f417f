/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/hook-private.h"

/* What nobody takes any more. */
static bool
drop_old(RowJob *job, GError **error)
{
    return db_exec(job->tx, "DELETE FROM hooks WHERE task_id IS NOT NULL AND created_us <= ?",
                   DB_ARGS(db_int(job->now_us - HOOK_REPLY_LIFE_S * (gint64)G_USEC_PER_SEC)), error);
}

bool
hook_add_reply(RowJob *job, const Seal *seal, const char *task_id, const char *url, GError **error)
{
    gint64 id = 0;

    if (strlen(url) > HOOK_URL_MAX)
        return err_set(error, ERR_INVALID, "the address for answers is longer than %d bytes", HOOK_URL_MAX);
    return drop_old(job, error) && hook_insert(job, (HookOwner){HOOK_OF_TASK, task_id}, &id, error) &&
           hook_set_secret(job, seal, id, url, error);
}

const Seal *
hooks_seal(const Hooks *hooks)
{
    return hooks->spec.seal;
}
