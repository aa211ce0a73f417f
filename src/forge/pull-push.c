/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/check-private.h"
#include "forge/forge-private.h"
#include "forge/pull-private.h"
#include "forge/thread-private.h"

static bool
follow_head(RowJob *job, const Json *pull, const ForgePush *push, GError **error)
{
    if (!db_exec(job->tx, "UPDATE threads SET head_oid = ?, updated_us = ? WHERE id = ?",
                 DB_ARGS(db_text(push->new), db_int(row_later_us(job, pull)), db_int(row_int(pull, "id"))),
                 error))
        return false;
    return thread_event(job, "pr.updated", push->actor, pull,
                        json_pack("{s:s, s:s, s:s}", "action", "synchronize", "before",
                                  row_text(pull, "head_oid"), "head_oid", push->new),
                        error);
}

static bool
follow(RowJob *job, const Json *pull, const char *branch, const ForgePush *push, GError **error)
{
    if (strcmp(push->new, git_oid_zero) == 0)
        return thread_set_state(job, pull, "closed", "branch_removed", push->actor, error);
    if (strcmp(row_text(pull, "head"), branch) == 0)
        return follow_head(job, pull, push, error);
    return db_exec(job->tx, "UPDATE threads SET base_oid = ? WHERE id = ?",
                   DB_ARGS(db_text(push->new), db_int(row_int(pull, "id"))), error);
}

/* A page of those that are open behind `*after`, which moves on. */
static bool
follow_page(RowJob *job, const char *branch, const ForgePush *push, gint64 *after, bool *ret_more,
            GError **error)
{
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    size_t i;
    Json *pull;

    row_where_add(&where,
                  "t.repository_id = ? AND t.kind = 'pull' AND t.state = 'open' AND "
                  "(t.head = ? OR t.base = ?) AND t.number > ?",
                  DB_ARGS(db_text(job->repository_id), db_text(branch), db_text(branch), db_int(*after)));
    g_autoptr(Json) list = row_list(job, &thread_table, &where, "t.number",
                                    (ForgePage){.per_page = THREAD_PAGE_MAX}, error);

    if (list == NULL)
        return false;
    json_array_foreach(json_object_get(list, "items"), i, pull)
    {
        *after = row_int(pull, "number");
        if (!follow(job, pull, branch, push, error) || !check_suite_want(job, *after, push->actor, error))
            return false;
    }
    *ret_more = json_array_size(json_object_get(list, "items")) == THREAD_PAGE_MAX;
    return true;
}

static bool
write_push(DbTx *tx, const char *repository_id, const ForgePush *push, void *ctx, GError **error)
{
    static const char prefix[] = "refs/heads/";
    g_auto(RowJob) job = {0};
    gint64 after = 0;
    bool more = true;

    if (!g_str_has_prefix(push->ref, prefix))
        return true;
    row_job_init(&job, tx, repository_id);
    while (more) {
        if (!follow_page(&job, push->ref + strlen(prefix), push, &after, &more, error))
            return false;
    }
    return true;
}

static void
on_pushed(Repo *repo, const ForgePush *push, void *ctx)
{
    pulls_look_at(repo->forge, repo);
}

const ForgePushListener pulls_listener = {.write = write_push, .pushed = on_pushed};
