/* SPDX-License-Identifier: Apache-2.0 */
#include "github/map.h"

#include <string.h>

#include "github/text.h"

enum { TEXT_MAX = 8000, WORD_MAX = 200, URL_MAX = 500 };

typedef enum Which { ANY, MERGED } Which;

/* The first row that fits; an action NULL fits all. */
typedef struct MapRow {
    const char *name, *action;
    Which which;
    const char *kind;
    const char *object; /* member that it is about; NULL: the whole payload */
    const char *stamp;  /* member of the object that changes with it and with nothing else */
} MapRow;

static const MapRow rows[] = {
    {"pull_request", "opened", ANY, "pr.opened", "pull_request", "created_at"},
    {"pull_request", "closed", MERGED, "pr.merged", "pull_request", "merged_at"},
    {"pull_request", "closed", ANY, "pr.closed", "pull_request", "closed_at"},
    {"pull_request", "reopened", ANY, "pr.reopened", "pull_request", "updated_at"},
    {"pull_request", "ready_for_review", ANY, "pr.ready", "pull_request", "updated_at"},
    {"pull_request", "review_requested", ANY, "review.requested", "pull_request", "updated_at"},
    {"pull_request", NULL, ANY, "pr.updated", "pull_request", "updated_at"},
    {"pull_request_review", "submitted", ANY, "review.submitted", "review", "submitted_at"},
    {"pull_request_review", NULL, ANY, "review.changed", "review", "state"},
    {"pull_request_review_comment", NULL, ANY, "review.changed", "comment", "updated_at"},
    {"pull_request_review_thread", NULL, ANY, "review.changed", "pull_request", "updated_at"},
    {"issue_comment", "created", ANY, "comment.added", "comment", "created_at"},
    {"issue_comment", NULL, ANY, "comment.changed", "comment", "updated_at"},
    {"issues", "opened", ANY, "issue.opened", "issue", "created_at"},
    {"issues", "closed", ANY, "issue.closed", "issue", "closed_at"},
    {"issues", "reopened", ANY, "issue.reopened", "issue", "updated_at"},
    {"issues", NULL, ANY, "issue.updated", "issue", "updated_at"},
    {"check_run", NULL, ANY, "check.reported", "check_run", "status"},
    {"status", NULL, ANY, "status.reported", NULL, "state"},
};

void
github_mapped_clear(GithubMapped *mapped)
{
    g_clear_pointer(&mapped->actor, g_free);
    g_clear_pointer(&mapped->seen, g_free);
    g_clear_pointer(&mapped->data, json_decref);
}

static const MapRow *
find_row(const char *name, const Json *payload)
{
    const char *action = github_text(payload, "action");
    bool is_merged = json_is_true(json_object_get(json_object_get(payload, "pull_request"), "merged"));

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (strcmp(rows[i].name, name) == 0 &&
            (rows[i].action == NULL || g_strcmp0(rows[i].action, action) == 0) &&
            (rows[i].which == ANY || is_merged))
            return &rows[i];
    }
    return NULL;
}

/* Texts of strangers: bounded, and cut between characters. */
static void
add_text(Json *data, const char *name, const char *text, size_t max)
{
    if (text == NULL)
        return;
    g_autofree char *part = g_strndup(text, max);
    g_autofree char *valid = g_utf8_make_valid(part, -1);

    json_object_set_new(data, name, json_string(valid));
}

static void
add_texts(Json *data, const Json *object)
{
    static const struct {
        const char *name;
        size_t max;
    } members[] = {{"title", WORD_MAX},      {"state", WORD_MAX},    {"body", TEXT_MAX},
                   {"context", WORD_MAX},    {"name", WORD_MAX},     {"status", WORD_MAX},
                   {"sha", WORD_MAX},        {"head_sha", WORD_MAX}, {"path", WORD_MAX},
                   {"conclusion", WORD_MAX}, {"html_url", URL_MAX},  {"description", WORD_MAX},
                   {"external_id", WORD_MAX}};

    for (size_t i = 0; i < G_N_ELEMENTS(members); i++)
        add_text(data, members[i].name, github_text(object, members[i].name), members[i].max);
}

/* The last one that did it: whoever sent it, or wrote it. */
static char *
actor_of(const Json *payload, const Json *object)
{
    const char *login = github_text(json_object_get(payload, "sender"), "login");

    if (login == NULL)
        login = github_text(json_object_get(object, "merged_by"), "login");
    /* Who opened a pull request need not be who has changed it. */
    if (login == NULL && object != json_object_get(payload, "pull_request"))
        login = github_text(json_object_get(object, "user"), "login");
    g_autofree char *clean = github_clean(login != NULL ? login : "ghost", 100);

    return g_strconcat("github:", clean, NULL);
}

static gint64
number_of(const Json *payload)
{
    gint64 number = github_number(json_object_get(payload, "pull_request"), "number");

    return number != 0 ? number : github_number(json_object_get(payload, "issue"), "number");
}

bool
github_map(const char *name, const Json *payload, GithubMapped *ret_mapped)
{
    const MapRow *row = find_row(name, payload);
    const Json *object = row == NULL           ? NULL
                         : row->object != NULL ? json_object_get(payload, row->object)
                                               : payload;
    gint64 id = github_number(object, "id");

    if (!json_is_object(object) || id <= 0)
        return false;
    const char *stamp = github_text(object, row->stamp), *ending = github_text(object, "conclusion");
    Json *data = json_pack("{s:s, s:I}", "source", "github", "upstream_id", (json_int_t)id);

    *ret_mapped = (GithubMapped){.kind = row->kind,
                                 .actor = actor_of(payload, object),
                                 .data = data,
                                 .seen = g_strdup_printf("%s:%" G_GINT64_FORMAT ":%.40s:%.40s", row->kind, id,
                                                         stamp != NULL ? stamp : "",
                                                         ending != NULL ? ending : ""),
                                 .number = number_of(payload)};
    add_text(data, "action", github_text(payload, "action"), WORD_MAX);
    add_texts(data, object);
    if (ret_mapped->number > 0)
        json_object_set_new(data, "upstream_number", json_integer(ret_mapped->number));
    return true;
}
