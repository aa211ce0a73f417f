/* SPDX-License-Identifier: Apache-2.0 */
/* What is said under a pull request, and how it is said there.  One account speaks for all, so each text
 * begins with whose it is. */
#include <string.h>

#include "forge/check-row.h"
#include "forge/comment.h"
#include "forge/review.h"
#include "github/text.h"
#include "github/upstream-part.h"

enum {
    SAID_MAX = 65000, /* characters; GitHub takes 65536 with what is put before it */
    DESCRIPTION_MAX = 140,
    PART_OF_ID = 8,
    SHORT_OID = 8,
};

char *
upstream_part_marker(const Part *part)
{
    /* Of this repository: another server may speak by the same account. */
    return g_strdup_printf("%s-%.*s-%" G_GINT64_FORMAT, part->row->kind, PART_OF_ID, part->row->repository_id,
                           github_number(part->row->body, "id"));
}

static const char *
author_of(const Part *p)
{
    const char *login = github_text(json_object_get(p->here, "author"), "login");

    return login != NULL ? login : "coop";
}

static char *
cut(const char *text)
{
    glong n = g_utf8_strlen(text, -1);

    return n <= SAID_MAX ? g_strdup(text) : g_utf8_substring(text, 0, SAID_MAX);
}

static Json *
plain_body(const Part *p, const char *text)
{
    return json_pack("{s:s}", "body", text);
}

/* Of what has none. */
static char *
no_text(const Part *p)
{
    return g_strdup("");
}

/* ---- comments ---- */

static void
load_comment(Part *p, ForgeJsonFunc done)
{
    comment_get(p->upstream->spec.forge, p->repo, github_number(p->row->body, "id"), done, p);
}

static char *
comment_text(const Part *p)
{
    g_autofree char *body = cut(github_text(p->here, "body"));

    return g_strdup_printf("**%s**:\n\n%s", author_of(p), body);
}

static void
create_comment(const GithubAsk *ask, const Part *p)
{
    g_autofree char *marker = upstream_part_marker(p);

    github_comment_put(
        ask, &(GithubMarked){.number = p->number, .marker = marker, .login = p->login, .text = p->text});
}

static void
edit_comment(const GithubAsk *ask, const Part *p, gint64 id)
{
    github_comment_edit(ask, id, p->body);
}

static void
remove_comment(const GithubAsk *ask, const Part *p, gint64 id)
{
    github_comment_delete(ask, id);
}

/* ---- reviews ---- */

static void
load_review(Part *p, ForgeJsonFunc done)
{
    review_list(p->upstream->spec.forge, p->repo,
                &(ReviewFilter){.actor = "",
                                .number = github_number(p->row->body, "number"),
                                .id = github_number(p->row->body, "id")},
                done, p);
}

/* The account has opened the pull request, and GitHub lets nobody approve his own: so it is in words. */
static char *
review_text(const Part *p)
{
    static const struct {
        const char *state, *words;
    } rows[] = {{"APPROVED", "approves these changes"},
                {"CHANGES_REQUESTED", "asks for changes"},
                {"COMMENTED", "has looked at these changes"},
                {"DISMISSED", "has looked at these changes (dismissed)"}};
    const char *state = github_text(p->here, "state"), *body = github_text(p->here, "body");
    const char *words = NULL, *oid = github_text(p->here, "commit_oid");

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (g_strcmp0(rows[i].state, state) == 0)
            words = rows[i].words;
    }
    bool is_empty = body == NULL || *body == '\0';

    /* Lines alone speak for themselves. */
    if (words == NULL || (is_empty && strcmp(state, "COMMENTED") == 0))
        return NULL;
    g_autofree char *said = cut(is_empty ? "" : body);

    return g_strdup_printf("**%s** %s (%.*s).%s%s", author_of(p), words, SHORT_OID, oid != NULL ? oid : "",
                           is_empty ? "" : "\n\n", said);
}

static Json *
review_body(const Part *p, const char *text)
{
    return json_pack("{s:s, s:s}", "body", text, "event", "COMMENT");
}

static void
create_review(const GithubAsk *ask, const Part *p)
{
    github_review_create(ask, p->number, p->body);
}

static void
edit_review(const GithubAsk *ask, const Part *p, gint64 id)
{
    g_autoptr(Json) body = json_pack("{s:O}", "body", json_object_get(p->body, "body"));

    github_review_edit(ask, p->number, id, body);
}

/* ---- lines ---- */

static void
load_line(Part *p, ForgeJsonFunc done)
{
    line_comment_list(p->upstream->spec.forge, p->repo,
                      &(LineFilter){.actor = "", .id = github_number(p->row->body, "id")}, done, p);
}

static char *
line_text(const Part *p)
{
    g_autofree char *text = comment_text(p);

    if (!p->as_comment)
        return g_steal_pointer(&text);
    g_autofree char *path = github_clean(github_text(p->here, "path"), 1000);

    return g_strdup_printf("`%s`, line %" G_GINT64_FORMAT ":\n\n%s", path, github_number(p->here, "line"),
                           text);
}

static Json *
line_body(const Part *p, const char *text)
{
    if (p->in_reply_to > 0)
        return json_pack("{s:s, s:I}", "body", text, "in_reply_to", (json_int_t)p->in_reply_to);
    gint64 start = github_number(p->here, "start_line");
    Json *body = json_pack("{s:s, s:s, s:s, s:s, s:I}", "body", text, "commit_id",
                           github_text(p->here, "commit_oid"), "path", github_text(p->here, "path"), "side",
                           github_text(p->here, "side"), "line", (json_int_t)github_number(p->here, "line"));

    if (start > 0) {
        json_object_set_new(body, "start_line", json_integer(start));
        json_object_set(body, "start_side", json_object_get(p->here, "side"));
    }
    return body;
}

static void
create_line(const GithubAsk *ask, const Part *p)
{
    github_review_comment_create(ask, p->number, p->body);
}

static void
edit_line(const GithubAsk *ask, const Part *p, gint64 id)
{
    g_autoptr(Json) body = json_pack("{s:O}", "body", json_object_get(p->body, "body"));

    github_review_comment_edit(ask, id, body);
}

static void
remove_line(const GithubAsk *ask, const Part *p, gint64 id)
{
    github_review_comment_delete(ask, id);
}

/* ---- threads ---- */

/* The number of the event makes each wish a new one: they may have changed it meanwhile. */
static Json *
thread_body(const Part *p, const char *text)
{
    return json_pack("{s:O, s:I}", "resolved", json_object_get(p->here, "resolved"), "seq",
                     (json_int_t)github_number(p->row->body, "seq"));
}

static void
create_thread(const GithubAsk *ask, const Part *p)
{
    github_thread_set_resolved(ask, p->number, p->there, json_is_true(json_object_get(p->here, "resolved")));
}

/* ---- statuses ---- */

static void
load_status(Part *p, ForgeJsonFunc done)
{
    check_run_list(p->upstream->spec.forge, p->repo,
                   &(CheckRunFilter){.id = github_number(p->row->body, "id")}, done, p);
}

/* What a check run's end is in the older form, which every token can write that may write statuses;
 * check runs are for Apps. */
static const char *
state_of(const char *conclusion)
{
    static const struct {
        const char *conclusion, *state;
    } rows[] = {{"success", "success"}, {"neutral", "success"},   {"skipped", "success"},
                {"failure", "failure"}, {"timed_out", "failure"}, {"action_required", "failure"}};

    if (conclusion == NULL)
        return "pending";
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].conclusion, conclusion) == 0)
            return rows[i].state;
    }
    return "error";
}

static Json *
status_body(const Part *p, const char *text)
{
    const char *title = github_text(p->here, "title"), *conclusion = github_text(p->here, "conclusion");
    g_autofree char *context = g_strconcat("coop/", github_text(p->here, "name"), NULL);
    g_autofree char *said = github_clean(title != NULL        ? title
                                         : conclusion != NULL ? conclusion
                                                              : github_text(p->here, "status"),
                                         DESCRIPTION_MAX);

    return json_pack("{s:s, s:s, s:s}", "state", state_of(conclusion), "context", context, "description",
                     said);
}

static void
create_status(const GithubAsk *ask, const Part *p)
{
    github_status_create(ask, github_text(p->here, "head_oid"), p->body);
}

/* ---- the table ---- */

static const PartKind kinds[] = {
    {"comment", load_comment, comment_text, plain_body, create_comment, edit_comment, remove_comment, true},
    {"review", load_review, review_text, review_body, create_review, edit_review, NULL, true},
    {"line", load_line, line_text, line_body, create_line, edit_line, remove_line, true},
    {"thread", load_line, no_text, thread_body, create_thread, NULL, NULL, false},
    {"status", load_status, no_text, status_body, create_status, NULL, NULL, false},
};

const PartKind *
upstream_part_kind(const char *kind)
{
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) == 0)
            return &kinds[i];
    }
    return NULL;
}
