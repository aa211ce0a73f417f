/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "forge/landing-private.h"
#include "forge/pull.h"
#include "forge/repo-settings.h"
#include "forge/thread-private.h"

enum {
    /* "Merge pull request #N from BRANCH" has to fit in, too. */
    TITLE_MAX = THREAD_TITLE_MAX + 64,
};

/* ---- may it be ---- */

static bool
choose_method(const LandingSpec *spec, const RepoSettings *settings, MergeMethod *ret_method, GError **error)
{
    guint method = 0;

    while (spec->method == NULL && (settings->merge_methods & 1u << method) == 0)
        method++;
    *ret_method = (MergeMethod)method;
    if (spec->method != NULL && !merge_method_parse(spec->method, ret_method))
        return err_set(error, ERR_INVALID, "'%s' is none of merge, squash and rebase", spec->method);
    return (settings->merge_methods & 1u << *ret_method) != 0 ||
           err_set(error, ERR_DENIED, "this repository does not merge by %s", merge_method_name(*ret_method));
}

/* Conflicts are found again by merging, with the bundle that shows them. */
static bool
check_rules(RowJob *job, const LandingSpec *spec, const Json *pull, GError **error)
{
    guint passing = 1u << PULL_BLOCK_UNKNOWN | 1u << PULL_BLOCK_CONFLICTS;
    PullMergeState state;

    if (spec->head_oid != NULL && !row_check_oid("the head", spec->head_oid, error))
        return false;
    if (spec->head_oid != NULL && strcmp(spec->head_oid, row_text(pull, "head_oid")) != 0)
        return err_set(error, ERR_CONFLICT, "its head is %s, not %s", row_text(pull, "head_oid"),
                       spec->head_oid);
    if (!pull_merge_state(job->tx, job->repository_id, spec->number, &state, error))
        return false;
    g_autofree char *text = pull_blocks_format(state.blocks & ~passing);

    return text[0] == '\0' || err_set(error, ERR_DENIED, "%s", text);
}

static bool
check_room(RowJob *job, gint64 number, GError **error)
{
    g_autofree char *same = g_strdup_printf(
        "SELECT id FROM merges WHERE repository_id = ? AND number = ? AND state IN %s", landing_active_sql);
    g_autofree char *all = g_strdup_printf(
        "SELECT COUNT(*) FROM merges WHERE repository_id = ? AND state IN %s", landing_active_sql);
    gint64 id = 0, n = 0;

    if (!row_ask_int(job, same, DB_ARGS(db_text(job->repository_id), db_int(number)), &id, error) ||
        !row_ask_int(job, all, DB_ARGS(db_text(job->repository_id)), &n, error))
        return false;
    if (id != 0)
        return err_set(error, ERR_CONFLICT, "#%" G_GINT64_FORMAT " is in the merge queue already", number);
    return n < LANDING_QUEUE_MAX ||
           err_set(error, ERR_LIMIT, "%d merges wait in this repository already", LANDING_QUEUE_MAX);
}

/* ---- what the commit says ---- */

typedef struct Words {
    char *title, *message; /* NULL: it is a rebase */
    char *author_name, *author_email;
} Words;

static void
words_clear(Words *words)
{
    g_free(words->title);
    g_free(words->message);
    g_free(words->author_name);
    g_free(words->author_email);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Words, words_clear)

/* An agent has an address of its own. */
static bool
write_author(RowJob *job, const char *actor, Words *words, GError **error)
{
    g_autoptr(Json) person = people_json(job->people, actor, error);

    if (person == NULL)
        return false;
    const char *id = g_str_has_prefix(actor, "agent:") ? actor + strlen("agent:") : "";
    g_autoptr(DbRows) rows = db_query(job->tx,
                                      "SELECT name, email FROM identities WHERE id = ? OR agent_id = ? "
                                      "ORDER BY created_us, id LIMIT 1",
                                      DB_ARGS(db_text(id), db_text(id)), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    words->author_name = g_strdup(found ? db_rows_text(rows, 0) : row_text(person, "login"));
    words->author_email = found ? g_strdup(db_rows_text(rows, 1))
                                : g_strdup_printf("%s@coop.invalid", row_text(person, "login"));
    return true;
}

static char *
title_of(MergeMethod method, const Json *pull)
{
    gint64 number = row_int(pull, "number");

    return method == MERGE_SQUASH
               ? g_strdup_printf("%s (#%" G_GINT64_FORMAT ")", row_text(pull, "title"), number)
               : g_strdup_printf("Merge pull request #%" G_GINT64_FORMAT " from %s", number,
                                 row_text(pull, "head"));
}

static char *
message_of(MergeMethod method, const Json *pull)
{
    const char *text = row_text(pull, method == MERGE_SQUASH ? "body" : "title");
    const char *task = row_text(pull, "task_id");
    g_autofree char *cut = g_utf8_substring(text, 0, MIN(g_utf8_strlen(text, -1), LANDING_MESSAGE_MAX / 2));

    if (task == NULL)
        return g_steal_pointer(&cut);
    return g_strdup_printf("%s%sTask: %s", cut, cut[0] != '\0' ? "\n\n" : "", task);
}

static bool
write_words(RowJob *job, const LandingSpec *spec, MergeMethod method, const Json *pull, Words *words,
            GError **error)
{
    const char *author = method == MERGE_SQUASH ? row_actor(pull, "author") : spec->actor;

    if (!write_author(job, author, words, error))
        return false;
    if (method == MERGE_REBASE)
        return true;
    g_autofree char *title = spec->title != NULL && spec->title[0] != '\0' ? g_strdup(spec->title)
                                                                           : title_of(method, pull);

    if (!row_check_text("the message", spec->message, LANDING_MESSAGE_MAX, ROW_TEXT_MAY_BE_EMPTY, error))
        return false;
    words->title = row_dup_line("the title", title, TITLE_MAX, ROW_TEXT_NEEDED, error);
    words->message = spec->message != NULL ? g_strdup(spec->message) : message_of(method, pull);
    return words->title != NULL;
}

/* ---- the row ---- */

static bool
insert(RowJob *job, const LandingSpec *spec, MergeMethod method, const Json *pull, const Words *words,
       gint64 id, GError **error)
{
    return db_exec(job->tx,
                   "INSERT INTO merges (id, repository_id, number, target, method, head_oid, title, message, "
                   "actor, state, pinned, author_name, author_email, tries, leftover, created_us, ended_us) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, 1, 0, ?, 0)",
                   DB_ARGS(db_int(id), db_text(job->repository_id), db_int(spec->number),
                           db_text(row_text(pull, "base")), db_text(merge_method_name(method)),
                           db_text(row_text(pull, "head_oid")), db_text(words->title),
                           db_text(words->message), db_text(spec->actor), db_int(spec->head_oid != NULL),
                           db_text(words->author_name), db_text(words->author_email), db_int(job->now_us)),
                   error);
}

static bool
run_add(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const LandingSpec *spec = data;
    g_autoptr(Json) pull = thread_load(job, spec->number, "pull", error);
    g_autoptr(RepoSettings) settings = pull != NULL ? repo_settings_load(job->tx, job->repository_id, error)
                                                    : NULL;
    g_auto(Words) words = {0};
    MergeMethod method;
    gint64 id = 0;

    if (settings == NULL || !choose_method(spec, settings, &method, error) ||
        !check_rules(job, spec, pull, error) || !check_room(job, spec->number, error) ||
        !write_words(job, spec, method, pull, &words, error) || !row_next_id(job, "merges", &id, error) ||
        !insert(job, spec, method, pull, &words, id, error) ||
        !thread_event(job, "merge.queued", spec->actor, pull,
                      json_pack("{s:I, s:s, s:s, s:s, s:s}", "merge", (json_int_t)id, "head",
                                row_text(pull, "head"), "base", row_text(pull, "base"), "head_oid",
                                row_text(pull, "head_oid"), "method", merge_method_name(method)),
                      error))
        return false;
    FAILPOINT("landing-adding");
    *ret_value = landing_row_get(job, LANDING_SHOWN, id, error);
    return *ret_value != NULL;
}

static const RowMember add_members[] = {ROW_AT_TEXT(LandingSpec, actor),    ROW_AT_TEXT(LandingSpec, method),
                                        ROW_AT_TEXT(LandingSpec, title),    ROW_AT_TEXT(LandingSpec, message),
                                        ROW_AT_TEXT(LandingSpec, head_oid), ROW_AT_END};
const RowOp landing_add_op = {ROW_WRITES, sizeof(LandingSpec), add_members, run_add};
