/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/hook-body.h"

#include <string.h>

#include "api/state.h"
#include "api/v3/hook-push.h"
#include "forge/people.h"

/* One kind of body: adds what is its own; false: this is not sent. */
typedef bool (*FillFunc)(const V3Scene *scene, const HookEvent *event, Json *body);

static void
set_action(Json *body, const char *action)
{
    if (action != NULL)
        json_object_set_new(body, "action", json_string(action));
}

/* What an event is about, or its number where it is gone by now. */
static Json *
object_or_id(const V3Scene *scene, const HookEvent *event, V3Render render, const char *id)
{
    return event->object != NULL ? render(scene, event->object)
                                 : json_pack("{s:O?}", "id", json_object_get(event->data, id));
}

/* ---- threads ---- */

/* One that was put on or taken off. */
static void
add_label(const V3Scene *scene, const HookEvent *event, Json *body)
{
    Json *name = json_object_get(event->data, "label");

    if (name != NULL)
        json_object_set_new(body, "label",
                            event->object != NULL ? v3_label(scene, event->object)
                                                  : json_pack("{s:O}", "name", name));
}

static bool
fill_issue(const V3Scene *scene, const HookEvent *event, Json *body)
{
    if (event->thread == NULL)
        return false;
    set_action(body, event->action);
    json_object_set_new(body, "issue", v3_issue(scene, event->thread));
    if (g_strcmp0(event->action, "edited") == 0)
        json_object_set_new(body, "changes", json_object());
    add_label(scene, event, body);
    return true;
}

static bool
fill_comment(const V3Scene *scene, const HookEvent *event, Json *body)
{
    if (!fill_issue(scene, event, body))
        return false;
    json_object_set_new(body, "comment", object_or_id(scene, event, v3_issue_comment, "comment_id"));
    return true;
}

/* GitHub tells of each that is asked in a body of its own; here all are asked at once, and this is the
 * first. */
static void
add_reviewer(const V3Scene *scene, const HookEvent *event, Json *body)
{
    const char *asked = json_string_value(json_array_get(json_object_get(event->data, "reviewers"), 0));
    size_t i;
    Json *person;

    json_array_foreach(json_object_get(event->thread, "reviewers"), i, person)
    {
        if (g_strcmp0(row_text(person, "actor"), asked) == 0) {
            json_object_set_new(body, "requested_reviewer", v3_user(scene->place, person));
            return;
        }
    }
}

static bool
fill_pull(const V3Scene *scene, const HookEvent *event, Json *body)
{
    if (event->thread == NULL)
        return false;
    set_action(body, event->action);
    json_object_set(body, "number", json_object_get(event->thread, "number"));
    json_object_set_new(body, "pull_request", v3_pull_whole(scene, event->thread));
    if (g_strcmp0(event->action, "edited") == 0)
        json_object_set_new(body, "changes", json_object());
    if (g_strcmp0(event->action, "synchronize") == 0) {
        json_object_set(body, "before", json_object_get(event->data, "before"));
        json_object_set(body, "after", json_object_get(event->data, "head_oid"));
    }
    if (g_strcmp0(event->action, "review_requested") == 0)
        add_reviewer(scene, event, body);
    add_label(scene, event, body);
    return true;
}

/* ---- reviews ---- */

/* A comment that stands alone is a review of its own, which says nothing else. */
static Json *
review_of_comment(const HookEvent *event)
{
    const Json *comment = event->object;

    return json_pack("{s:O, s:O, s:O, s:s, s:s, s:O, s:O}", "id", json_object_get(comment, "review_id"),
                     "number", json_object_get(comment, "number"), "author",
                     json_object_get(comment, "author"), "body", "", "state", "COMMENTED", "commit_oid",
                     json_object_get(comment, "original_oid"), "submitted_us",
                     json_object_get(comment, "created_us"));
}

static bool
fill_review(const V3Scene *scene, const HookEvent *event, Json *body)
{
    bool is_comment = json_object_get(event->data, "line_comment_id") != NULL;

    if (event->thread == NULL || event->object == NULL)
        return false;
    g_autoptr(Json) row = is_comment ? review_of_comment(event) : json_incref(event->object);
    g_autofree char *state = g_ascii_strdown(row_text(row, "state"), -1);
    Json *review = v3_review(scene, row);

    /* The one word that GitHub writes otherwise here than in its API. */
    json_object_set_new(review, "state", json_string(state));
    set_action(body, is_comment ? "submitted" : event->action);
    json_object_set_new(body, "review", review);
    json_object_set_new(body, "pull_request", v3_pull(scene, event->thread));
    return true;
}

static bool
fill_line_comment(const V3Scene *scene, const HookEvent *event, Json *body)
{
    bool is_new = g_strcmp0(event->action, "commented") == 0;

    /* Threads that are resolved are another event of GitHub's. */
    if (event->thread == NULL ||
        (!is_new && g_strcmp0(event->action, "edited") != 0 && g_strcmp0(event->action, "deleted") != 0))
        return false;
    set_action(body, is_new ? "created" : event->action);
    json_object_set_new(body, "comment", object_or_id(scene, event, v3_line_comment, "line_comment_id"));
    json_object_set_new(body, "pull_request", v3_pull(scene, event->thread));
    return true;
}

/* ---- the rest ---- */

static bool
fill_label(const V3Scene *scene, const HookEvent *event, Json *body)
{
    set_action(body, event->action);
    add_label(scene, event, body);
    return true;
}

static bool
fill_ref(const V3Scene *scene, const HookEvent *event, Json *body)
{
    const char *ref = row_text(event->data, "ref");

    json_object_set(body, "ref", json_object_get(event->data, "name"));
    json_object_set_new(body, "ref_type",
                        json_string(g_str_has_prefix(ref, "refs/tags/") ? "tag" : "branch"));
    json_object_set_new(body, "master_branch", json_string(scene->info->default_branch));
    json_object_set_new(body, "description", v3_maybe(scene->info->description));
    json_object_set_new(body, "pusher_type", json_string("user"));
    return true;
}

static bool
fill_push(const V3Scene *scene, const HookEvent *event, Json *body)
{
    v3_hook_push(scene, event, body);
    return true;
}

/* ---- what was found out about a commit ---- */

static bool
fill_status(const V3Scene *scene, const HookEvent *event, Json *body)
{
    g_autoptr(Json) status = event->object != NULL ? v3_status(scene->place, event->object) : NULL;

    if (status == NULL)
        return false;
    json_object_update(body, status);
    json_object_del(body, "url");
    json_object_del(body, "creator");
    json_object_set(body, "sha", json_object_get(event->object, "oid"));
    json_object_set_new(body, "name", v3_format("%s/%s", scene->info->owner, scene->info->name));
    json_object_set_new(
        body, "commit",
        json_pack("{s:O, s:o}", "sha", json_object_get(event->object, "oid"), "url",
                  v3_format("%s/commits/%s", scene->place->api, row_text(event->object, "oid"))));
    json_object_set_new(body, "branches", json_array());
    return true;
}

static bool
fill_check_run(const V3Scene *scene, const HookEvent *event, Json *body)
{
    const char *status = event->object != NULL ? row_text(event->object, "status") : NULL;

    if (status == NULL)
        return false;
    /* GitHub knows no "updated". */
    set_action(body, strcmp(status, "completed") == 0 ? "completed" : "created");
    json_object_set_new(body, "check_run", v3_check_run(scene->place, event->object));
    return true;
}

static Json *
pulls_of_suite(const V3Scene *scene, const HookEvent *event)
{
    const Json *pull = event->thread;
    Json *list = json_array();

    if (pull != NULL)
        json_array_append_new(
            list,
            json_pack("{s:O, s:O, s:o, s:{s:O?, s:O?}, s:{s:O?, s:O?}}", "id", json_object_get(pull, "id"),
                      "number", json_object_get(pull, "number"), "url",
                      v3_format("%s/pulls/%" G_GINT64_FORMAT, scene->place->api, row_int(pull, "number")),
                      "head", "ref", json_object_get(pull, "head"), "sha", json_object_get(pull, "head_oid"),
                      "base", "ref", json_object_get(pull, "base"), "sha",
                      json_object_get(pull, "base_oid")));
    return list;
}

static const char *
conclusion_of(const char *state)
{
    static const struct {
        const char *state, *conclusion;
    } words[] = {{"passed", "success"}, {"failed", "failure"}, {"cancelled", "cancelled"}};

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        if (g_strcmp0(state, words[i].state) == 0)
            return words[i].conclusion;
    }
    return "stale"; /* it could not be found out */
}

static bool
fill_suite(const V3Scene *scene, const HookEvent *event, Json *body)
{
    const char *id = row_text(event->data, "suite"), *head = row_text(event->data, "head_oid");
    const Json *suite = event->object;

    if (id == NULL || head == NULL)
        return false;
    Json *object = json_pack("{s:I, s:s, s:s, s:O?, s:s, s:s, s:n, s:s, s:o, s:o, s:o, s:{s:I, s:s, s:s}}",
                             "id", (json_int_t)person_id(id), "node_id", id, "head_sha", head, "head_branch",
                             json_object_get(event->thread, "head"), "status", "completed", "conclusion",
                             conclusion_of(row_text(event->data, "state")), "before", "after", head, "url",
                             v3_format("%s/api/v1/repos/%s/%s/checks/%s", scene->place->server,
                                       scene->info->owner, scene->info->name, id),
                             "check_runs_url", v3_format("%s/commits/%s/check-runs", scene->place->api, head),
                             "pull_requests", pulls_of_suite(scene, event), "app", "id",
                             (json_int_t)person_id("coop"), "slug", "coop", "name", "Coop");

    json_object_set_new(object, "created_at", v3_time(row_int(suite, "created_us")));
    json_object_set_new(object, "updated_at", v3_time(event->at_us));
    set_action(body, event->action);
    json_object_set_new(body, "check_suite", object);
    return true;
}

static bool
fill_ping(const V3Scene *scene, const HookEvent *event, Json *body)
{
    json_object_set_new(body, "zen", json_string("Keep it simple."));
    json_object_set(body, "hook_id", json_object_get(event->object, "id"));
    json_object_set_new(body, "hook", v3_hook(scene, event->object));
    return true;
}

static const struct {
    const char *name;
    FillFunc fill;
} bodies[] = {
    {"check_run", fill_check_run},
    {"check_suite", fill_suite},
    {"create", fill_ref},
    {"delete", fill_ref},
    {"issue_comment", fill_comment},
    {"issues", fill_issue},
    {"label", fill_label},
    {"ping", fill_ping},
    {"push", fill_push},
    {"pull_request", fill_pull},
    {"pull_request_review", fill_review},
    {"pull_request_review_comment", fill_line_comment},
    {"status", fill_status},
};

static FillFunc
find_body(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(bodies); i++) {
        if (strcmp(bodies[i].name, name) == 0)
            return bodies[i].fill;
    }
    return NULL;
}

Json *
v3_hook_body(Repo *repo, const HookEvent *event, void *data)
{
    FillFunc fill = find_body(event->name);
    g_autoptr(Json) body = json_object();
    g_auto(V3Place) place = {0};
    RepoInfo info;

    v3_place_init(&place, data, repo);
    repo_info(repo, &info);
    V3Scene scene = {&place, &info};

    if (fill == NULL || !fill(&scene, event, body))
        return NULL;
    json_object_set_new(body, "repository", v3_repository(&place, &info));
    json_object_set_new(body, "sender", v3_user(&place, event->sender));
    return g_steal_pointer(&body);
}
