/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/landing-private.h"
#include "forge/thread-private.h"

enum { COMMENT_PATHS_MAX = 20, EVENT_PATHS_MAX = 100 };

static const char comment_marker[] = "coop-merge-queue";

const char landing_active_sql[] = "('queued', 'building', 'checking', 'landing')";

static const char *const reasons[LANDING_REASON_MAX] = {
    [LANDING_RULES] = "rules",       [LANDING_HEAD_MOVED] = "head_moved",
    [LANDING_CHECKS] = "checks",     [LANDING_TARGET_MOVED] = "target_moved",
    [LANDING_CONFLICT] = "conflict", [LANDING_NOTHING] = "nothing",
    [LANDING_REMOVED] = "removed",   [LANDING_FAILED] = "failed",
};

const char *
landing_reason_name(LandingReason reason)
{
    g_assert(reason < LANDING_REASON_MAX);
    return reasons[reason];
}

/* ---- reading ---- */

#define SHOWN                                                                                                \
    {"id", ROW_INT, "m.id"}, {"repository", ROW_TEXT, "r.owner || '/' || r.name"},                           \
        {"number", ROW_INT, "m.number"}, {"target", ROW_TEXT, "m.target"}, {"method", ROW_TEXT, "m.method"}, \
        {"title", ROW_TEXT, "m.title"}, {"message", ROW_TEXT, "m.message"},                                  \
        {"actor", ROW_PERSON, "m.actor"}, {"state", ROW_TEXT, "m.state"}, {"reason", ROW_TEXT, "m.reason"},  \
        {"problem", ROW_TEXT, "m.problem"}, {"head_oid", ROW_TEXT, "m.head_oid"},                            \
        {"target_oid", ROW_TEXT, "m.target_oid"}, {"candidate_oid", ROW_TEXT, "m.candidate_oid"},            \
        {"landing_oid", ROW_TEXT, "CASE WHEN m.state = 'landed' THEN m.landing_oid END"},                    \
        {"suite_id", ROW_TEXT, "m.suite_id"}, {"tries", ROW_INT, "m.tries"},                                 \
        {"created_us", ROW_INT, "m.created_us"},                                                             \
    {                                                                                                        \
        "ended_us", ROW_INT, "m.ended_us"                                                                    \
    }

static const RowColumn shown[] = {SHOWN};
static const RowColumn whole[] = {SHOWN, {"conflict", ROW_JSON, "m.conflict"}};
static const RowColumn inside[] = {
    SHOWN,
    {"pinned", ROW_BOOL, "m.pinned"},
    {"author_name", ROW_TEXT, "m.author_name"},
    {"author_email", ROW_TEXT, "m.author_email"},
    {"leftover", ROW_INT, "m.leftover"},
    {"head", ROW_TEXT,
     "(SELECT t.head FROM threads t WHERE t.repository_id = m.repository_id AND t.number = m.number)"},
};

#define FROM "merges m JOIN repositories r ON r.id = m.repository_id"
static const RowTable tables[] = {
    [LANDING_SHOWN] = {"merge", FROM, shown, G_N_ELEMENTS(shown)},
    [LANDING_WHOLE] = {"merge", FROM, whole, G_N_ELEMENTS(whole)},
    [LANDING_INSIDE] = {"merge", FROM, inside, G_N_ELEMENTS(inside)},
};

Json *
landing_row_get(RowJob *job, LandingView view, gint64 id, GError **error)
{
    return row_get(job, &tables[view], "m.id = ? AND m.repository_id = ?",
                   DB_ARGS(db_int(id), db_text(job->repository_id)), error);
}

Json *
landing_row_list(RowJob *job, const RowWhere *where, const char *order, ForgePage page, GError **error)
{
    return row_list(job, &tables[LANDING_SHOWN], where, order, page, error);
}

bool
landing_outcome_is(const Json *value, const char *outcome)
{
    return strcmp(row_text(value, "outcome"), outcome) == 0;
}

/* ---- the comment ---- */

/* One of this name by somebody else stays as it is: it must not keep anything from landing. */
bool
landing_comment(RowJob *job, gint64 number, const char *body, CommentNeed need, GError **error)
{
    const CommentSpec spec = {.actor = "coop", .number = number, .body = body, .marker = comment_marker};
    g_autoptr(GError) failed = NULL;
    g_autoptr(Json) comment = NULL;
    gint64 there = 0;

    if (need == COMMENT_IF_THERE &&
        !row_ask_int(job,
                     "SELECT COUNT(*) FROM comments c JOIN threads t ON t.id = c.thread_id WHERE "
                     "t.repository_id = ? AND t.number = ? AND c.marker = ?",
                     DB_ARGS(db_text(job->repository_id), db_int(number), db_text(comment_marker)), &there,
                     error))
        return false;
    if ((need == COMMENT_IF_THERE && there == 0) || comment_put_row(job, &spec, &comment, &failed) ||
        g_error_matches(failed, ERR_DOMAIN, ERR_DENIED))
        return true;
    g_propagate_error(error, g_steal_pointer(&failed));
    return false;
}

/* Names of files appear as code: no markup of theirs counts, and no line of theirs ends the list. */
static void
put_path(GString *text, const char *path)
{
    g_autofree char *shown_path = g_strdup(path);

    for (char *p = shown_path; *p != '\0'; p++) {
        if ((guchar)*p < ' ' || *p == '`' || *p == 0x7f)
            *p = '?';
    }
    g_string_append_printf(text, "- `%s`\n", shown_path);
}

static void
put_paths(GString *text, const Json *bundle)
{
    const Json *files = json_object_get(bundle, "files");
    size_t n = json_array_size(files);

    for (size_t i = 0; i < MIN(n, COMMENT_PATHS_MAX); i++)
        put_path(text, row_text(json_array_get(files, i), "path"));
    if (n > COMMENT_PATHS_MAX)
        g_string_append_printf(text, "- and %zu more\n", n - COMMENT_PATHS_MAX);
}

static char *
format_comment(const Json *entry, const LandingEnd *end, const Json *bundle)
{
    GString *text = g_string_new(NULL);

    if (bundle == NULL) {
        g_string_append_printf(text, "It was not merged into `%s`: %s.\n", row_text(entry, "target"),
                               end->problem);
        return g_string_free(text, FALSE);
    }
    g_string_append_printf(text, "It conflicts with `%s`:\n\n", row_text(entry, "target"));
    put_paths(text, bundle);
    g_string_append_printf(text,
                           "\nBase, both sides and both intents: `/api/v1/repos/%s/merges/%" G_GINT64_FORMAT
                           "`. Resolve it on the branch and merge again.\n",
                           row_text(entry, "repository"), end->id);
    return g_string_free(text, FALSE);
}

/* ---- ending ---- */

static Json *
event_paths(const Json *bundle)
{
    Json *paths = json_array(), *file;
    size_t i;

    json_array_foreach(json_object_get(bundle, "files"), i, file)
    {
        if (i < EVENT_PATHS_MAX)
            json_array_append(paths, json_object_get(file, "path"));
    }
    return paths;
}

static bool
tell_end(RowJob *job, const Json *entry, const LandingEnd *end, const Json *bundle, GError **error)
{
    static const struct {
        const char *state, *kind;
    } kinds[] = {
        {"conflict", "merge.conflicted"}, {"failed", "merge.failed"}, {"cancelled", "merge.cancelled"}};
    g_autoptr(Json) pull = thread_load(job, row_int(entry, "number"), "pull", error);
    const char *kind = NULL;

    if (pull == NULL)
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        kind = strcmp(end->state, kinds[i].state) == 0 ? kinds[i].kind : kind;
    Json *data = json_pack("{s:I, s:s, s:s, s:s, s:s, s:s}", "merge", (json_int_t)end->id, "head",
                           row_text(pull, "head"), "base", row_text(entry, "target"), "head_oid",
                           row_text(entry, "head_oid"), "reason", reasons[end->reason], "problem",
                           end->problem);

    if (bundle != NULL)
        json_object_set_new(data, "paths", event_paths(bundle));
    return thread_event(job, kind, end->actor != NULL ? end->actor : "coop", pull, data, error);
}

bool
landing_row_end(RowJob *job, const Json *entry, const LandingEnd *end, GError **error)
{
    g_autoptr(Json) bundle = end->conflict != NULL ? json_decode(end->conflict, strlen(end->conflict), error)
                                                   : NULL;
    g_autofree char *comment = NULL;

    if (end->conflict != NULL && bundle == NULL)
        return false;
    comment = format_comment(entry, end, bundle);
    return db_exec(job->tx,
                   "UPDATE merges SET state = ?, reason = ?, problem = ?, conflict = ?, landing_oid = NULL, "
                   "ended_us = ? WHERE id = ?",
                   DB_ARGS(db_text(end->state), db_text(reasons[end->reason]), db_text(end->problem),
                           db_text(end->conflict), db_int(job->now_us), db_int(end->id)),
                   error) &&
           tell_end(job, entry, end, bundle, error) &&
           (end->reason == LANDING_REMOVED ||
            landing_comment(job, row_int(entry, "number"), comment, COMMENT_NEEDED, error));
}
