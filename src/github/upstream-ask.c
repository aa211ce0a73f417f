/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of work follow from an event, in its own transaction. */
#include <string.h>

#include "forge/repo-settings.h"
#include "forge/review.h"
#include "github/text.h"
#include "github/upstream-private.h"

/* ---- rows ---- */

static char *
pull_key(const UpstreamStep *s, gint64 number)
{
    return g_strdup_printf("pull:%s:%" G_GINT64_FORMAT, s->repository_id, number);
}

static bool
ask(DbTx *tx, const UpstreamStep *s, const char *kind, const char *name, const char *after, Json *body,
    GError **error)
{
    g_autoptr(Json) whole = body;

    json_object_set_new(whole, "seq", json_integer(s->seq));
    return work_ask(
        tx,
        &(WorkAsk){
            .repository_id = s->repository_id, .kind = kind, .name = name, .after = after, .body = whole},
        error);
}

/* What belongs to a pull request that is kept there. */
static bool
ask_part(DbTx *tx, const UpstreamStep *s, const char *kind, gint64 number, gint64 id, GError **error)
{
    g_autofree char *name = g_strdup_printf("%" G_GINT64_FORMAT, id);
    g_autofree char *after = pull_key(s, number);

    return ask(tx, s, kind, name, after,
               json_pack("{s:I, s:I}", "number", (json_int_t)number, "id", (json_int_t)id), error);
}

/* The branch of a pull request that a box has pushed: others' are no business of theirs.  NULL: it is
 * none. */
static bool
find_head(DbTx *tx, const UpstreamStep *s, gint64 number, char **ret_head, GError **error)
{
    g_autofree char *start = g_strconcat("push:", s->repository_id, ":", NULL);
    g_autoptr(DbRows)
        rows = db_query(tx,
                        "SELECT t.head FROM threads t JOIN upstream_work w ON w.key = ? || t.head WHERE "
                        "t.repository_id = ? AND t.number = ? AND t.kind = 'pull'",
                        DB_ARGS(db_text(start), db_text(s->repository_id), db_int(number)), error);
    bool more = false;

    if (rows == NULL || !db_rows_next(rows, &more, error))
        return false;
    *ret_head = more ? g_strdup(db_rows_text(rows, 0)) : NULL;
    return true;
}

/* ---- pushes ---- */

/* What is protected here is nobody's to change there by way of a box. */
static bool
may_push(DbTx *tx, const UpstreamStep *s, const char *branch, bool *ret_may, GError **error)
{
    g_autoptr(RepoSettings) settings = repo_settings_load(tx, s->repository_id, error);
    g_autoptr(DbRows) rows = db_query(tx, "SELECT default_branch FROM repositories WHERE id = ?",
                                      DB_ARGS(db_text(s->repository_id)), error);
    bool more = false;

    if (settings == NULL || rows == NULL || !db_rows_next(rows, &more, error))
        return false;
    *ret_may = more && !repo_settings_protect(settings, db_rows_text(rows, 0), branch);
    return true;
}

static bool
ask_push(DbTx *tx, const UpstreamStep *s, GError **error)
{
    const char *ref = github_text(s->data, "ref");
    bool may = false;

    if (!s->is_of_box || ref == NULL || !g_str_has_prefix(ref, "refs/heads/"))
        return true;
    const char *branch = ref + strlen("refs/heads/");

    if (!may_push(tx, s, branch, &may, error))
        return false;
    return !may ||
           ask(tx, s, "push", branch, NULL,
               json_pack("{s:s, s:s*}", "branch", branch, "oid", github_text(s->data, "after")), error);
}

/* ---- pull requests ---- */

static bool
ask_pull(DbTx *tx, const UpstreamStep *s, GError **error)
{
    gint64 number = github_number(s->data, "number");
    g_autofree char *head = NULL, *name = g_strdup_printf("%" G_GINT64_FORMAT, number);

    if (!find_head(tx, s, number, &head, error))
        return false;
    if (head == NULL)
        return true;
    g_autofree char *after = g_strconcat("push:", s->repository_id, ":", head, NULL);

    return ask(tx, s, "pull", name, after, json_pack("{s:I}", "number", (json_int_t)number), error);
}

/* The commit that the queue has checked and landed, and no other, goes to the base there.  What somebody
 * pushed into the base is his own affair. */
static bool
ask_merge(DbTx *tx, const UpstreamStep *s, GError **error)
{
    gint64 number = github_number(s->data, "number");
    g_autofree char *head = NULL, *name = g_strdup_printf("%" G_GINT64_FORMAT, number);
    g_autofree char *after = pull_key(s, number);

    if (g_strcmp0(github_text(s->data, "method"), "push") == 0)
        return true;
    if (!find_head(tx, s, number, &head, error))
        return false;
    return head == NULL ||
           ask(tx, s, "merge", name, after,
               json_pack("{s:I, s:s*, s:s*, s:s*}", "number", (json_int_t)number, "branch",
                         github_text(s->data, "base"), "oid", github_text(s->data, "merge_oid"), "head",
                         github_text(s->data, "head_oid")),
               error);
}

/* ---- what is said ---- */

static bool
ask_comment(DbTx *tx, const UpstreamStep *s, GError **error)
{
    gint64 number = github_number(s->data, "number"), id = github_number(s->data, "comment_id");
    g_autofree char *head = NULL;

    return find_head(tx, s, number, &head, error) &&
           (head == NULL || id <= 0 || ask_part(tx, s, "comment", number, id, error));
}

/* Those that were given with a review. */
static bool
ask_lines(DbTx *tx, const UpstreamStep *s, gint64 number, gint64 review_id, GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT id FROM review_comments WHERE review_id = ? ORDER BY id LIMIT ?",
                        DB_ARGS(db_int(review_id), db_int(REVIEW_LINES_MAX)), error);
    gint64 ids[REVIEW_LINES_MAX];
    size_t n = 0;
    bool more = rows != NULL;

    while (more && n < G_N_ELEMENTS(ids)) {
        if (!db_rows_next(rows, &more, error))
            return false;
        if (more)
            ids[n++] = db_rows_int(rows, 0);
    }
    if (rows == NULL)
        return false;
    g_clear_pointer(&rows, db_rows_free);
    for (size_t i = 0; i < n; i++) {
        if (!ask_part(tx, s, "line", number, ids[i], error))
            return false;
    }
    return true;
}

/* By its first comment, which is what it is there. */
static bool
ask_thread(DbTx *tx, const UpstreamStep *s, gint64 number, gint64 line, GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT COALESCE(in_reply_to, id) FROM review_comments WHERE id = ?",
                        DB_ARGS(db_int(line)), error);
    bool more = false;

    if (rows == NULL || !db_rows_next(rows, &more, error))
        return false;
    gint64 first = more ? db_rows_int(rows, 0) : 0;

    g_clear_pointer(&rows, db_rows_free);
    return first == 0 || ask_part(tx, s, "thread", number, first, error);
}

static bool
ask_review(DbTx *tx, const UpstreamStep *s, GError **error)
{
    gint64 number = github_number(s->data, "number"), id = github_number(s->data, "review_id");
    gint64 line = github_number(s->data, "line_comment_id");
    const char *action = github_text(s->data, "action");
    g_autofree char *head = NULL;

    if (!find_head(tx, s, number, &head, error))
        return false;
    if (head == NULL)
        return true;
    if (line > 0 && (g_strcmp0(action, "resolved") == 0 || g_strcmp0(action, "unresolved") == 0))
        return ask_thread(tx, s, number, line, error);
    if (line > 0)
        return ask_part(tx, s, "line", number, line, error);
    return id <= 0 || (ask_part(tx, s, "review", number, id, error) && ask_lines(tx, s, number, id, error));
}

/* ---- checks ---- */

/* Of a commit that is the head of a pull request there; what the queue checks is known to nobody else. */
static bool
ask_status(DbTx *tx, const UpstreamStep *s, GError **error)
{
    g_autofree char *start = g_strconcat("push:", s->repository_id, ":", NULL);
    g_autoptr(DbRows) rows = db_query(
        tx,
        "SELECT t.number FROM threads t JOIN upstream_work w ON w.key = ? || t.head WHERE "
        "t.repository_id = ? AND t.head_oid = ? AND t.kind = 'pull' AND t.state = 'open' "
        "ORDER BY t.number DESC LIMIT 1",
        DB_ARGS(db_text(start), db_text(s->repository_id), db_text(github_text(s->data, "head_oid"))), error);
    bool more = false;

    if (rows == NULL || !db_rows_next(rows, &more, error))
        return false;
    gint64 number = more ? db_rows_int(rows, 0) : 0;

    g_clear_pointer(&rows, db_rows_free);
    return number == 0 || g_strcmp0(github_text(s->data, "seen_by"), "coop") != 0 ||
           ask_part(tx, s, "status", number, github_number(s->data, "check_id"), error);
}

/* ---- the table ---- */

/* The first row that fits. */
static const struct {
    const char *kind; /* of the event; with a dot at its end all that begin so */
    bool (*ask)(DbTx *tx, const UpstreamStep *s, GError **error);
} asks[] = {
    {"branch.created", ask_push},   {"commit.pushed", ask_push},
    {"pr.merged", ask_merge},       {"pr.", ask_pull},
    {"comment.added", ask_comment}, {"comment.changed", ask_comment},
    {"review.requested", ask_pull}, {"review.submitted", ask_review},
    {"review.changed", ask_review}, {"check.reported", ask_status},
};

bool
upstream_ask(DbTx *tx, const UpstreamStep *step, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(asks); i++) {
        bool is_start = g_str_has_suffix(asks[i].kind, ".");

        if (is_start ? g_str_has_prefix(step->kind, asks[i].kind) : strcmp(step->kind, asks[i].kind) == 0)
            return asks[i].ask(tx, step, error);
    }
    return true;
}
