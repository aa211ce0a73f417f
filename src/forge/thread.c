/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/check-private.h"
#include "forge/label-private.h"
#include "forge/pull-private.h"
#include "forge/thread-private.h"

static bool
next_number(RowJob *job, gint64 *ret_number, GError **error)
{
    gint64 next = 0;

    if (!row_ask_int(
            job, "UPDATE repositories SET next_number = next_number + 1 WHERE id = ? RETURNING next_number",
            DB_ARGS(db_text(job->repository_id)), &next, error))
        return false;
    *ret_number = next - 1;
    return next > 0 || err_set(error, ERR_NOT_FOUND, "the repository is gone");
}

static bool
insert_row(RowJob *job, const ThreadNew *new, gint64 id, gint64 number, GError **error)
{
    g_autofree char *title = row_dup_line("the title", new->title, THREAD_TITLE_MAX, ROW_TEXT_NEEDED, error);

    if (title == NULL ||
        !row_check_text("the body", new->body, THREAD_BODY_MAX, ROW_TEXT_MAY_BE_EMPTY, error))
        return false;
    return db_exec(job->tx,
                   "INSERT INTO threads (id, repository_id, number, kind, state, title, body, author, "
                   "reviewers, task_id, head, base, head_oid, base_oid, based_us, ahead, behind, conflicts, "
                   "draft, merged, created_us, updated_us, closed_us, merged_us) VALUES (?, ?, ?, ?, 'open', "
                   "?, ?, ?, '[]', ?, ?, ?, ?, ?, ?, 0, 0, 0, ?, 0, ?, ?, 0, 0)",
                   DB_ARGS(db_int(id), db_text(job->repository_id), db_int(number), db_text(new->kind),
                           db_text(title), db_text(new->body != NULL ? new->body : ""), db_text(new->actor),
                           db_text(new->task_id), db_text(new->head), db_text(new->base),
                           db_text(new->head_oid), db_text(new->base_oid), db_int(job->now_us),
                           db_int(new->draft), db_int(job->now_us), db_int(job->now_us)),
                   error);
}

bool
thread_insert(RowJob *job, const ThreadNew *new, Json **ret_thread, GError **error)
{
    gint64 id = 0, number = 0;

    if (!next_number(job, &number, error) || !row_next_id(job, "threads", &id, error) ||
        !insert_row(job, new, id, number, error) || !labels_change(job, id, LIST_ADD, new->labels, error))
        return false;
    *ret_thread = thread_load(job, number, NULL, error);
    return *ret_thread != NULL;
}

bool
thread_touch(RowJob *job, const Json *thread, GError **error)
{
    return db_exec(job->tx, "UPDATE threads SET updated_us = ? WHERE id = ?",
                   DB_ARGS(db_int(row_later_us(job, thread)), db_int(row_int(thread, "id"))), error);
}

bool
thread_event(RowJob *job, const char *kind, const char *actor, const Json *thread, Json *more, GError **error)
{
    Json *data = json_pack("{s:I, s:s, s:s}", "number", (json_int_t)row_int(thread, "number"), "type",
                           row_text(thread, "kind"), "title", row_text(thread, "title"));

    if (more != NULL)
        json_object_update_new(data, more);
    return row_event(job, kind, actor, row_text(thread, "task_id"), data, error);
}

bool
thread_require_open(const Json *thread, GError **error)
{
    return strcmp(row_text(thread, "state"), "open") == 0 ||
           err_set(error, ERR_CONFLICT, "#%" G_GINT64_FORMAT " is closed", row_int(thread, "number"));
}

bool
thread_set_state(RowJob *job, const Json *thread, const char *state, const char *reason, const char *actor,
                 GError **error)
{
    bool closes = strcmp(state, "closed") == 0;
    bool is_pull = strcmp(row_text(thread, "kind"), "pull") == 0;
    const char *kind = is_pull ? (closes ? "pr.closed" : "pr.reopened")
                               : (closes ? "issue.closed" : "issue.reopened");

    return db_exec(job->tx,
                   "UPDATE threads SET state = ?, state_reason = ?, closed_us = ?, updated_us = ? "
                   "WHERE id = ?",
                   DB_ARGS(db_text(state), db_text(reason), db_int(closes ? job->now_us : 0),
                           db_int(row_later_us(job, thread)), db_int(row_int(thread, "id"))),
                   error) &&
           thread_event(job, kind, actor, thread,
                        reason != NULL ? json_pack("{s:s}", "reason", reason) : NULL, error);
}

/* ---- opening ---- */

static bool
run_open(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const IssueSpec *spec = data;
    ThreadNew new = {.kind = "issue",
                     .actor = spec->actor,
                     .title = spec->title,
                     .body = spec->body,
                     .task_id = spec->task_id,
                     .labels = spec->labels};

    return thread_insert(job, &new, ret_value, error) &&
           thread_event(job, "issue.opened", spec->actor, *ret_value, NULL, error);
}

void
issue_open(Forge *forge, Repo *repo, const IssueSpec *spec, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(IssueSpec, actor),   ROW_AT_TEXT(IssueSpec, title),
                                        ROW_AT_TEXT(IssueSpec, body),    ROW_AT_TEXT(IssueSpec, task_id),
                                        ROW_AT_TEXTS(IssueSpec, labels), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(IssueSpec), members, run_open};

    row_run(forge, repo, &op, spec, done, data);
}

/* ---- changing ---- */

static bool
edit_texts(RowJob *job, const ThreadEdit *edit, const Json *thread, GError **error)
{
    g_autofree char *title = row_dup_line("the title",
                                          edit->title != NULL ? edit->title : row_text(thread, "title"),
                                          THREAD_TITLE_MAX, ROW_TEXT_NEEDED, error);

    if (title == NULL ||
        !row_check_text("the body", edit->body, THREAD_BODY_MAX, ROW_TEXT_MAY_BE_EMPTY, error))
        return false;
    return db_exec(job->tx, "UPDATE threads SET title = ?, body = ? WHERE id = ?",
                   DB_ARGS(db_text(title),
                           db_text(edit->body != NULL ? edit->body : row_text(thread, "body")),
                           db_int(row_int(thread, "id"))),
                   error);
}

static bool
edit_state(RowJob *job, const ThreadEdit *edit, const Json *thread, GError **error)
{
    static const char *const states[] = {"open", "closed", NULL};
    static const char *const reasons[] = {"completed", "not_planned", "reopened", NULL};
    bool is_issue = strcmp(row_text(thread, "kind"), "issue") == 0;
    const char *reason = is_issue ? edit->state_reason : NULL;

    if (!row_check_word("the state", edit->state, states, error) ||
        (reason != NULL && !row_check_word("the reason", reason, reasons, error)))
        return false;
    if (strcmp(edit->state, row_text(thread, "state")) == 0)
        return true;
    if (is_issue && reason == NULL && strcmp(edit->state, "closed") == 0)
        reason = "completed";
    if (strcmp(edit->state, "open") == 0 && !is_issue && !pull_may_reopen(job, thread, error))
        return false;
    return thread_set_state(job, thread, edit->state, reason, edit->actor, error);
}

static bool
edit_draft(RowJob *job, const ThreadEdit *edit, GError **error)
{
    return pull_change_draft(job, &(PullDraft){edit->actor, edit->number, edit->draft == DRAFT_SET}, error);
}

static bool
run_edit(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const ThreadEdit *edit = data;
    g_autoptr(Json) thread = thread_load(job, edit->number, edit->kind, error);

    if (thread == NULL)
        return false;
    bool is_pull = strcmp(row_text(thread, "kind"), "pull") == 0;
    bool changes = edit->title != NULL || edit->body != NULL || edit->labels != NULL || edit->base != NULL;

    if ((changes && !edit_texts(job, edit, thread, error)) ||
        (edit->base != NULL && !pull_retarget(job, thread, edit->base, error)) ||
        (edit->labels != NULL && !labels_change(job, row_int(thread, "id"), LIST_SET, edit->labels, error)) ||
        (changes && !thread_touch(job, thread, error)) ||
        (edit->draft != DRAFT_AS_IS && !edit_draft(job, edit, error)) ||
        (edit->state != NULL && !edit_state(job, edit, thread, error)))
        return false;
    *ret_value = thread_load(job, edit->number, NULL, error);
    return *ret_value != NULL && (!is_pull || check_suite_want(job, edit->number, edit->actor, error)) &&
           (!changes || thread_event(job, is_pull ? "pr.updated" : "issue.updated", edit->actor, *ret_value,
                                     json_pack("{s:s}", "action", "edited"), error));
}

typedef struct Editing {
    Forge *forge;
    Repo *repo;
    ForgeJsonFunc done;
    void *data;
} Editing;

/* Another base, or tips that moved while it was closed: git is asked again. */
static void
on_edited(Json *value, const GError *error, void *data)
{
    Editing *e = data;

    if (error == NULL)
        pulls_look_at(e->forge, e->repo);
    if (e->done != NULL)
        e->done(value, error, e->data);
    repo_unref(e->repo);
    g_free(e);
}

void
thread_edit(Forge *forge, Repo *repo, const ThreadEdit *edit, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(ThreadEdit, actor),
                                        ROW_AT_TEXT(ThreadEdit, kind),
                                        ROW_AT_TEXT(ThreadEdit, title),
                                        ROW_AT_TEXT(ThreadEdit, body),
                                        ROW_AT_TEXT(ThreadEdit, state),
                                        ROW_AT_TEXT(ThreadEdit, state_reason),
                                        ROW_AT_TEXT(ThreadEdit, base),
                                        ROW_AT_TEXTS(ThreadEdit, labels),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(ThreadEdit), members, run_edit};

    if (edit->base == NULL && g_strcmp0(edit->state, "open") != 0) {
        row_run(forge, repo, &op, edit, done, data);
        return;
    }
    Editing *e = g_new0(Editing, 1);

    *e = (Editing){forge, repo_ref(repo), done, data};
    row_run(forge, repo, &op, edit, on_edited, e);
}

/* Each label is told of by itself; a list that was set is told of once. */
static bool
tell_labels(RowJob *job, const ThreadNames *names, const Json *thread, GError **error)
{
    static const char *const actions[] = {"labeled", "labeled", "unlabeled"};
    const char *kind = strcmp(row_text(thread, "kind"), "pull") == 0 ? "pr.updated" : "issue.updated";
    const char *action = actions[names->how];

    if (names->how == LIST_SET)
        return thread_event(job, kind, names->actor, thread, json_pack("{s:s}", "action", action), error);
    for (const char *const *name = names->names; name != NULL && *name != NULL; name++) {
        if (!thread_event(job, kind, names->actor, thread,
                          json_pack("{s:s, s:s}", "action", action, "label", *name), error))
            return false;
    }
    return true;
}

bool
thread_label_row(RowJob *job, const ThreadNames *names, Json **ret_value, GError **error)
{
    g_autoptr(Json) thread = thread_load(job, names->number, NULL, error);

    if (thread == NULL || !labels_change(job, row_int(thread, "id"), names->how, names->names, error) ||
        !thread_touch(job, thread, error))
        return false;
    *ret_value = thread_load(job, names->number, NULL, error);
    return *ret_value != NULL && tell_labels(job, names, *ret_value, error);
}

static bool
run_label(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    return thread_label_row(job, data, ret_value, error);
}

void
thread_label(Forge *forge, Repo *repo, const ThreadNames *names, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(ThreadNames, actor), ROW_AT_TEXTS(ThreadNames, names),
                                        ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(ThreadNames), members, run_label};

    row_run(forge, repo, &op, names, done, data);
}
