/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/pull.h"

#include <string.h>

#include "base/err.h"
#include "forge/check-private.h"
#include "forge/pull-private.h"
#include "forge/thread-private.h"

static const char wip[] = "[WIP] ";

/* What the last push left there, in full; "": there is no such branch. */
static bool
branch_row(RowJob *job, const char *branch, char ret_oid[GIT_OID_LEN + 1], GError **error)
{
    g_autofree char *ref = g_strconcat("refs/heads/", branch, NULL);
    g_autoptr(DbRows)
        rows = db_query(job->tx, "SELECT oid FROM repository_refs WHERE repository_id = ? AND name = ?",
                        DB_ARGS(db_text(job->repository_id), db_text(ref)), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    g_strlcpy(ret_oid, found ? db_rows_text(rows, 0) : "", GIT_OID_LEN + 1);
    return true;
}

static bool
check_single(RowJob *job, const char *head, const char *base, gint64 except, GError **error)
{
    gint64 other = 0;

    return row_ask_int(job,
                       "SELECT number FROM threads WHERE repository_id = ? AND kind = 'pull' AND "
                       "state = 'open' AND head = ? AND base = ? AND number <> ?",
                       DB_ARGS(db_text(job->repository_id), db_text(head), db_text(base), db_int(except)),
                       &other, error) &&
           (other == 0 ||
            err_set(error, ERR_CONFLICT, "#%" G_GINT64_FORMAT " is open already for '%s' into '%s'", other,
                    head, base));
}

/* A push may have come between asking git and this. */
static bool
set_tips(RowJob *job, const Json *pull, const char *head_oid, const char *base_oid, GError **error)
{
    char head[GIT_OID_LEN + 1], base[GIT_OID_LEN + 1];

    if (!branch_row(job, row_text(pull, "head"), head, error) ||
        !branch_row(job, row_text(pull, "base"), base, error))
        return false;
    return db_exec(job->tx, "UPDATE threads SET head_oid = ?, base_oid = ? WHERE id = ?",
                   DB_ARGS(db_text(head[0] != '\0' ? head : head_oid),
                           db_text(base[0] != '\0' ? base : base_oid), db_int(row_int(pull, "id"))),
                   error);
}

bool
pull_may_reopen(RowJob *job, const Json *pull, GError **error)
{
    const char *head = row_text(pull, "head"), *base = row_text(pull, "base");
    char head_oid[GIT_OID_LEN + 1], base_oid[GIT_OID_LEN + 1];
    gint64 number = row_int(pull, "number");

    if (row_is(pull, "merged"))
        return err_set(error, ERR_CONFLICT, "#%" G_GINT64_FORMAT " was merged", number);
    if (!branch_row(job, head, head_oid, error) || !branch_row(job, base, base_oid, error) ||
        !check_single(job, head, base, number, error))
        return false;
    if (head_oid[0] == '\0' || base_oid[0] == '\0')
        return err_set(error, ERR_CONFLICT, "the branch '%s' is gone", head_oid[0] == '\0' ? head : base);
    return set_tips(job, pull, head_oid, base_oid, error);
}

bool
pull_retarget(RowJob *job, const Json *pull, const char *base, GError **error)
{
    const char *head = row_text(pull, "head");
    char oid[GIT_OID_LEN + 1];

    if (head == NULL)
        return err_set(error, ERR_INVALID, "an issue has no base");
    if (!thread_require_open(pull, error) || !git_branch_is_valid(base, error))
        return false;
    if (strcmp(base, row_text(pull, "base")) == 0)
        return true;
    if (strcmp(base, head) == 0)
        return err_set(error, ERR_INVALID, "head and base are the same branch");
    if (!branch_row(job, base, oid, error))
        return false;
    if (oid[0] == '\0')
        return err_set(error, ERR_INVALID, "there is no branch '%s'", base);
    return check_single(job, head, base, row_int(pull, "number"), error) &&
           db_exec(
               job->tx,
               "UPDATE threads SET base = ?, base_oid = ?, compared_base = NULL, based_us = ? WHERE id = ?",
               DB_ARGS(db_text(base), db_text(oid), db_int(job->now_us), db_int(row_int(pull, "id"))), error);
}

/* ---- reviewers ---- */

static void
list_remove(Json *list, const char *text)
{
    for (size_t i = json_array_size(list); i > 0; i--) {
        if (strcmp(json_string_value(json_array_get(list, i - 1)), text) == 0)
            json_array_remove(list, i - 1);
    }
}

static Json *
actors_of(const Json *people)
{
    Json *actors = json_array(), *person;
    size_t i;

    json_array_foreach(people, i, person) json_array_append(actors, json_object_get(person, "actor"));
    return actors;
}

static bool
change_reviewers(RowJob *job, const Json *pull, const ThreadNames *names, Json *actors, Json *added,
                 GError **error)
{
    for (const char *const *name = names->names; name != NULL && *name != NULL; name++) {
        g_autofree char *actor = NULL;

        if (!row_check_text("the reviewer", *name, ACTOR_MAX, ROW_TEXT_NEEDED, error) ||
            (actor = people_find(job->people, *name, error)) == NULL)
            return false;
        if (names->how == LIST_REMOVE)
            list_remove(actors, actor);
        else if (strcmp(actor, row_actor(pull, "author")) == 0)
            return err_set(error, ERR_INVALID, "the author cannot be asked for a review");
        else if (!row_list_has(actors, actor)) {
            json_array_append_new(actors, json_string(actor));
            json_array_append_new(added, json_string(actor));
        }
    }
    return json_array_size(actors) <= THREAD_REVIEWERS_MAX ||
           err_set(error, ERR_LIMIT, "at most %d reviews can be asked for", THREAD_REVIEWERS_MAX);
}

static bool
set_reviewers(RowJob *job, const Json *pull, const ThreadNames *names, GError **error)
{
    g_autoptr(Json) actors = names->how == LIST_SET ? json_array()
                                                    : actors_of(json_object_get(pull, "reviewers"));
    g_autoptr(Json) added = json_array();

    if (!change_reviewers(job, pull, names, actors, added, error))
        return false;
    g_autofree char *text = json_encode(actors);

    if (!db_exec(job->tx, "UPDATE threads SET reviewers = ?, updated_us = ? WHERE id = ?",
                 DB_ARGS(db_text(text), db_int(row_later_us(job, pull)), db_int(row_int(pull, "id"))), error))
        return false;
    if (names->how == LIST_REMOVE)
        return thread_event(job, "pr.updated", names->actor, pull,
                            json_pack("{s:s}", "action", "review_request_removed"), error);
    return json_array_size(added) == 0 || thread_event(job, "review.requested", names->actor, pull,
                                                       json_pack("{s:O}", "reviewers", added), error);
}

bool
pull_reviewers_row(RowJob *job, const ThreadNames *names, Json **ret_value, GError **error)
{
    g_autoptr(Json) pull = thread_load(job, names->number, "pull", error);

    if (pull == NULL || !thread_require_open(pull, error) || !set_reviewers(job, pull, names, error))
        return false;
    *ret_value = thread_load(job, names->number, "pull", error);
    return *ret_value != NULL;
}

static bool
run_reviewers(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    return pull_reviewers_row(job, data, ret_value, error);
}

void
pull_reviewers(Forge *forge, Repo *repo, const ThreadNames *names, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(ThreadNames, actor), ROW_AT_TEXTS(ThreadNames, names),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(ThreadNames), members, run_reviewers};

    row_run(forge, repo, &op, names, done, data);
}

/* ---- draft and ready ---- */

bool
pull_change_draft(RowJob *job, const PullDraft *draft, GError **error)
{
    g_autoptr(Json) pull = thread_load(job, draft->number, "pull", error);

    if (pull == NULL || !thread_require_open(pull, error))
        return false;
    if (row_is(pull, "draft") == draft->draft)
        return true;
    const char *title = row_text(pull, "title");

    if (!draft->draft && g_str_has_prefix(title, wip) && title[strlen(wip)] != '\0')
        title += strlen(wip);
    return db_exec(job->tx, "UPDATE threads SET draft = ?, title = ?, updated_us = ? WHERE id = ?",
                   DB_ARGS(db_int(draft->draft), db_text(title), db_int(row_later_us(job, pull)),
                           db_int(row_int(pull, "id"))),
                   error) &&
           thread_event(job, draft->draft ? "pr.updated" : "pr.ready", draft->actor, pull,
                        draft->draft
                            ? json_pack("{s:s}", "action", "converted_to_draft")
                            : json_pack("{s:s, s:s}", "title", title, "head_oid", row_text(pull, "head_oid")),
                        error) &&
           check_suite_want(job, draft->number, draft->actor, error);
}

static bool
run_draft(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const PullDraft *draft = data;

    if (!pull_change_draft(job, draft, error))
        return false;
    *ret_value = thread_load(job, draft->number, "pull", error);
    return *ret_value != NULL;
}

void
pull_set_draft(Forge *forge, Repo *repo, const PullDraft *draft, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(PullDraft, actor), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(PullDraft), members, run_draft};

    row_run(forge, repo, &op, draft, done, data);
}

/* ---- opening ---- */

/* The merge queue tells of what it lands itself. */
static bool
is_landing(RowJob *job, gint64 number, gint64 *ret_count, GError **error)
{
    *ret_count = 0;
    return row_ask_int(job,
                       "SELECT COUNT(*) FROM merges WHERE repository_id = ? AND number = ? AND "
                       "state = 'landing'",
                       DB_ARGS(db_text(job->repository_id), db_int(number)), ret_count, error);
}

static bool
set_brought(RowJob *job, gint64 number, const PullLook *look, GError **error)
{
    g_autoptr(DbRows) rows = db_query(
        job->tx,
        "SELECT rr.actor FROM threads t JOIN repository_refs rr ON rr.repository_id = t.repository_id AND "
        "rr.name = 'refs/heads/' || t.base WHERE t.repository_id = ? AND t.number = ? AND t.state = 'open'",
        DB_ARGS(db_text(job->repository_id), db_int(number)), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    if (!found)
        return true;
    g_autofree char *actor = g_strdup(db_rows_text(rows, 0));

    g_clear_pointer(&rows, db_rows_free);
    return pull_set_merged(
        job->tx, job->repository_id,
        &(PullMerged){.actor = actor, .number = number, .method = "push", .merge_oid = look->base_oid},
        error);
}

bool
pull_put_look(RowJob *job, gint64 number, const PullLook *look, GError **error)
{
    gint64 landing = 0;

    if (!db_exec(job->tx,
                 "UPDATE threads SET compared_head = ?, compared_base = ?, ahead = ?, behind = ?, "
                 "conflicts = ?, from_oid = ?, commits = ?, changed_files = ?, additions = ?, deletions = ? "
                 "WHERE repository_id = ? AND number = ? AND head_oid = ? AND base_oid = ?",
                 DB_ARGS(db_text(look->head_oid), db_text(look->base_oid), db_int(look->ahead),
                         db_int(look->behind), db_int(look->conflicts),
                         db_text(look->from_oid[0] != '\0' ? look->from_oid : NULL), db_int(look->commits),
                         db_int(look->files), db_int(look->additions), db_int(look->deletions),
                         db_text(job->repository_id), db_int(number), db_text(look->head_oid),
                         db_text(look->base_oid)),
                 error))
        return false;
    if (db_changes(job->tx) == 0 || !look->brought)
        return true;
    return is_landing(job, number, &landing, error) && (landing > 0 || set_brought(job, number, look, error));
}

bool
pull_insert(RowJob *job, const PullSpec *spec, const PullLook *look, Json **ret_pull, GError **error)
{
    ThreadNew new = {.kind = "pull",
                     .actor = spec->actor,
                     .title = spec->title,
                     .body = spec->body,
                     .task_id = spec->task_id,
                     .labels = spec->labels,
                     .head = spec->head,
                     .base = spec->base,
                     .head_oid = look->head_oid,
                     .base_oid = look->base_oid,
                     .draft = spec->draft};
    g_autoptr(Json) pull = NULL;

    if (!check_single(job, spec->head, spec->base, 0, error) || !thread_insert(job, &new, &pull, error))
        return false;
    gint64 number = row_int(pull, "number");
    ThreadNames names = {spec->actor, number, LIST_ADD, spec->reviewers};

    if (!set_tips(job, pull, look->head_oid, look->base_oid, error) ||
        !pull_put_look(job, number, look, error) ||
        !thread_event(job, "pr.opened", spec->actor, pull,
                      json_pack("{s:s, s:s, s:s, s:b}", "head", spec->head, "base", spec->base, "head_oid",
                                look->head_oid, "draft", spec->draft),
                      error) ||
        (spec->reviewers != NULL && !set_reviewers(job, pull, &names, error)) ||
        !check_suite_want(job, number, spec->actor, error))
        return false;
    *ret_pull = thread_load(job, number, "pull", error);
    return *ret_pull != NULL;
}
