/* SPDX-License-Identifier: Apache-2.0 */
#include "github/arrive.h"

#include <string.h>

#include "forge/arrival.h"
#include "github/item.h"
#include "github/look.h"
#include "github/names.h"
#include "github/text.h"
#include "github/work.h"

/* ---- the pull request itself ---- */

/* What is still to be sent from here wins, and what was read before the last that was heard is old. */
static bool
is_news(const WorkRow *row, const Json *pull)
{
    const char *then = github_text(row->answer, "updated_at"), *now = github_text(pull, "updated_at");

    return !row->is_pending && (then == NULL || now == NULL || strcmp(now, then) >= 0);
}

/* So that the next change here is compared with what is there. */
static bool
note(DbTx *tx, const WorkRow *row, const Json *pull, GError **error)
{
    static const char *const members[] = {"state", "draft"};
    Json *sent = json_object_get(row->answer, "sent");

    json_object_set(row->answer, "state", json_object_get(pull, "state"));
    if (github_text(pull, "updated_at") != NULL)
        json_object_set(row->answer, "updated_at", json_object_get(pull, "updated_at"));
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        if (json_object_get(sent, members[i]) != NULL && json_object_get(pull, members[i]) != NULL)
            json_object_set(sent, members[i], json_object_get(pull, members[i]));
    }
    return work_set_answer(tx, row, error);
}

/* `there` without what could not be put here: nobody has taken that off. */
static Json *
alike(const Json *there, const Json *added, const Json *here)
{
    g_autoptr(Json) refused = names_minus(added, here);

    return names_minus(there, refused);
}

/* Against what both sides were last alike in, so that what was changed here meanwhile stays. */
static bool
take_names(DbTx *tx, const Json *pull, const Arrival *at, const WorkRow *row, bool *ret_changed,
           GError **error)
{
    Json *sent = json_object_get(row->answer, "sent");
    const Json *old_labels = json_object_get(sent, "labels"),
               *old_people = json_object_get(sent, "reviewers");
    const Json *labels = json_object_get(pull, "labels");
    const Json *people = json_object_get(pull, "requested_reviewers");

    if (!json_is_array(labels) || !json_is_array(people) || !json_is_object(sent))
        return true;
    g_autoptr(Json) labels_now = names_of(labels, "name"), people_now = names_of(people, "login");
    g_autoptr(Json) labels_new = names_minus(labels_now, old_labels);
    g_autoptr(Json) labels_gone = names_minus(old_labels, labels_now);
    g_autoptr(Json) people_new = names_minus(people_now, old_people);
    g_autoptr(Json) people_gone = names_minus(old_people, people_now);
    ArrivalNames names = {labels_new, labels_gone, people_new, people_gone};
    g_autoptr(Json) here = NULL;

    if (!arrival_names(tx, at, &names, &here, ret_changed, error))
        return false;
    g_autoptr(Json) labels_here = names_of(json_object_get(here, "labels"), "name");
    g_autoptr(Json) people_here = names_of_theirs(json_object_get(here, "reviewers"));

    json_object_set_new(sent, "labels", alike(labels_now, labels_new, labels_here));
    json_object_set_new(sent, "reviewers", alike(people_now, people_new, people_here));
    return true;
}

static bool
arrive_pull(DbTx *tx, const GithubArrive *a, const Arrival *at, const WorkRow *row, GithubArrived *ret,
            GError **error)
{
    const Json *pull = a->object;
    const char *state = github_text(pull, "state");
    ArrivalState is = {.is_closed = g_strcmp0(state, "closed") == 0,
                       .is_draft = json_is_true(json_object_get(pull, "draft")),
                       .merge_oid = json_is_true(json_object_get(pull, "merged"))
                                        ? github_text(pull, "merge_commit_sha")
                                        : NULL};

    if (state == NULL || !is_news(row, pull))
        return true;
    ret->is_merged = is.merge_oid != NULL;
    return arrival_state(tx, at, &is, &ret->has_changed, error) &&
           take_names(tx, pull, at, row, &ret->has_changed, error) && note(tx, row, pull, error);
}

/* ---- what is said ---- */

/* Anybody can write a marker: it counts in what our account wrote. */
static bool
is_our_own(const GithubArrive *a)
{
    const char *login = github_text(json_object_get(a->object, "user"), "login");

    return look_is_marked(github_text(a->object, "body")) && login != NULL &&
           (*a->login == '\0' || g_ascii_strcasecmp(login, a->login) == 0);
}

static bool
has_a_say(const Json *object)
{
    static const char *const words[] = {"OWNER", "MEMBER", "COLLABORATOR", NULL};
    const char *word = github_text(object, "author_association");

    return word != NULL && g_strv_contains(words, word);
}

static bool
is_gone(const GithubArrive *a)
{
    return g_strcmp0(a->action, "deleted") == 0;
}

static bool
put_comment(DbTx *tx, const GithubArrive *a, const Arrival *at, gint64 *id, bool *changed, GError **error)
{
    const char *body = github_text(a->object, "body");

    return arrival_comment(tx, at, is_gone(a) ? NULL : body != NULL ? body : "", id, changed, error);
}

static bool
put_review(DbTx *tx, const GithubArrive *a, const Arrival *at, gint64 *id, bool *changed, GError **error)
{
    const char *state = github_text(a->object, "state");
    g_autofree char *upper = g_ascii_strup(state != NULL ? state : "", -1); /* webhooks write it small */
    ArrivalReview review = {.state = upper,
                            .body = github_text(a->object, "body"),
                            .commit_oid = github_text(a->object, "commit_id"),
                            .may_refuse = has_a_say(a->object)};

    return strcmp(upper, "PENDING") == 0 || arrival_review(tx, at, &review, id, changed, error);
}

static bool
put_line(DbTx *tx, const GithubArrive *a, const Arrival *at, gint64 *id, bool *changed, GError **error)
{
    const Json *o = a->object;
    const char *body = github_text(o, "body"), *path = github_text(o, "path");
    gint64 line = github_number(o, "line"), parent = github_number(o, "in_reply_to_id");
    LineSpec spec = {.body = body != NULL ? body : "",
                     .path = path != NULL ? path : "",
                     .side = github_text(o, "side"),
                     .line = line > 0 ? line : github_number(o, "original_line"),
                     .start_line = github_number(o, "start_line"),
                     .commit_oid = github_text(o, "commit_id"),
                     .diff_hunk = github_text(o, "diff_hunk")};

    if (parent > 0 && !upstream_item_here(tx, a->repository_id, "line", parent, &spec.in_reply_to, error))
        return false;
    return arrival_line(tx, at, is_gone(a) ? NULL : &spec, id, changed, error);
}

static bool
put_thread(DbTx *tx, const GithubArrive *a, const Arrival *at, gint64 *id, bool *changed, GError **error)
{
    bool is_resolved = g_strcmp0(a->action, "resolved") == 0;

    return *id == 0 || (!is_resolved && g_strcmp0(a->action, "unresolved") != 0) ||
           arrival_resolve(tx, at, *id, is_resolved, changed, error);
}

/* ---- the table ---- */

/* A thread is known by its first comment. */
static gint64
id_of(const Json *object)
{
    const Json *comments = json_object_get(object, "comments");

    return github_number(json_is_array(comments) ? json_array_get(comments, 0) : object, "id");
}

typedef struct ArriveRow {
    const char *name, *member;
    const char *kind; /* of the pair of ids; NULL: the pull request itself */
    bool (*put)(DbTx *tx, const GithubArrive *a, const Arrival *at, gint64 *id, bool *changed,
                GError **error);
} ArriveRow;

static const ArriveRow rows[] = {
    {"pull_request", "pull_request", NULL, NULL},
    {"issue_comment", "comment", "comment", put_comment},
    {"pull_request_review", "review", "review", put_review},
    {"pull_request_review_comment", "comment", "line", put_line},
    {"pull_request_review_thread", "thread", "line", put_thread},
};

static const ArriveRow *
find_row(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

const char *
github_arrive_member(const char *name)
{
    const ArriveRow *row = find_row(name);

    return row != NULL ? row->member : NULL;
}

/* The author is who wrote it, whoever told of it. */
static bool
arrive_part(DbTx *tx, const GithubArrive *a, const ArriveRow *kind, Arrival at, GithubArrived *ret,
            GError **error)
{
    UpstreamItem item = {kind->kind, id_of(a->object), 0};
    const char *login = github_text(json_object_get(a->object, "user"), "login");
    g_autofree char *clean = github_clean(login != NULL ? login : "ghost", 100);
    g_autofree char *author = g_strconcat("github:", clean, NULL);

    ret->is_part = true;
    if (item.upstream_id <= 0 ||
        !upstream_item_here(tx, a->repository_id, item.kind, item.upstream_id, &item.id, error))
        return item.upstream_id <= 0;
    if (item.id == 0 && is_our_own(a))
        return true;
    bool is_new = item.id == 0;

    at.actor = is_new ? author : a->actor;
    return kind->put(tx, a, &at, &item.id, &ret->has_changed, error) &&
           (!is_new || item.id == 0 || upstream_item_put(tx, a->repository_id, &item, error));
}

bool
github_arrive(DbTx *tx, const GithubArrive *a, GithubArrived *ret_arrived, GError **error)
{
    const ArriveRow *kind = find_row(a->name);
    g_autoptr(WorkRow) row = NULL;

    *ret_arrived = (GithubArrived){0};
    if (kind == NULL || !work_find_pull(tx, a->repository_id, a->upstream_number, &row, error))
        return kind == NULL;
    if (row == NULL)
        return true;
    Arrival at = {a->repository_id, a->actor, github_number(row->body, "number")};

    ret_arrived->number = at.number;
    return kind->put == NULL ? arrive_pull(tx, a, &at, row, ret_arrived, error)
                             : arrive_part(tx, a, kind, at, ret_arrived, error);
}
