/* SPDX-License-Identifier: Apache-2.0 */
#include "github/look.h"

#include <string.h>

#include "github/text.h"

static const char marker_start[] = "<!-- coop:";
static const char marker_end[] = " -->";

char *
look_marker(const char *name)
{
    return g_strconcat(marker_start, name, marker_end, NULL);
}

bool
look_is_marked(const char *text)
{
    return text != NULL && g_str_has_prefix(text, marker_start);
}

bool
look_same_text(const char *a, const char *b)
{
    a = a != NULL ? a : "";
    b = b != NULL ? b : "";
    for (;;) {
        while (*a == '\r')
            a++;
        while (*b == '\r')
            b++;
        if (*a != *b || *a == '\0')
            break;
        a++;
        b++;
    }
    return a[strspn(a, " \t\r\n")] == '\0' && b[strspn(b, " \t\r\n")] == '\0';
}

static bool
same(const Json *item, const Json *body, const char *name)
{
    return look_same_text(github_text(item, name), github_text(body, name));
}

/* What was not asked for may be anything. */
static bool
same_if_asked(const Json *item, const char *item_name, const Json *body, const char *body_name)
{
    const Json *wanted = json_object_get(body, body_name);

    return wanted == NULL || json_is_null(wanted) || json_equal(json_object_get(item, item_name), wanted);
}

bool
look_is_pull(const Json *item, const Json *body)
{
    const char *head = github_text(body, "head");
    const char *colon = head != NULL ? strchr(head, ':') : NULL; /* "owner:branch" */

    return g_strcmp0(github_text(json_object_get(item, "head"), "ref"), colon != NULL ? colon + 1 : head) ==
               0 &&
           g_strcmp0(github_text(json_object_get(item, "base"), "ref"), github_text(body, "base")) == 0 &&
           g_strcmp0(github_text(item, "state"), "open") == 0;
}

bool
look_is_merged(const Json *item, const Json *body)
{
    return json_is_true(json_object_get(item, "merged")) &&
           same_if_asked(json_object_get(item, "head"), "sha", body, "sha");
}

bool
look_is_updated(const Json *item, const Json *body)
{
    const char *expected = github_text(body, "expected_head_sha");
    const char *sha = github_text(json_object_get(item, "head"), "sha");

    return expected != NULL && sha != NULL && strcmp(expected, sha) != 0;
}

/* What an event makes of a review. */
static const char *
state_of(const char *event)
{
    static const struct {
        const char *event, *state;
    } rows[] = {{"APPROVE", "APPROVED"}, {"REQUEST_CHANGES", "CHANGES_REQUESTED"}, {"COMMENT", "COMMENTED"}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (g_strcmp0(rows[i].event, event) == 0)
            return rows[i].state;
    }
    return "PENDING";
}

bool
look_is_review(const Json *item, const Json *body)
{
    return same(item, body, "body") && same_if_asked(item, "commit_id", body, "commit_id") &&
           g_strcmp0(github_text(item, "state"), state_of(github_text(body, "event"))) == 0;
}

bool
look_is_line_comment(const Json *item, const Json *body)
{
    return same(item, body, "body") && same_if_asked(item, "path", body, "path") &&
           same_if_asked(item, "line", body, "line") &&
           same_if_asked(item, "in_reply_to_id", body, "in_reply_to");
}

bool
look_is_comment(const Json *item, const Json *body)
{
    const char *wanted = github_text(body, "body"), *text = github_text(item, "body");
    const char *end = wanted != NULL && g_str_has_prefix(wanted, marker_start) ? strstr(wanted, marker_end)
                                                                               : NULL;

    if (end == NULL)
        return same(item, body, "body");
    return text != NULL && strncmp(text, wanted, (size_t)(end - wanted) + strlen(marker_end)) == 0;
}

bool
look_is_said(const Json *item, const Json *body)
{
    return same(item, body, "body");
}

bool
look_is_issue(const Json *item, const Json *body)
{
    return same(item, body, "title") && same(item, body, "body") &&
           json_object_get(item, "pull_request") == NULL;
}

bool
look_is_status(const Json *item, const Json *body)
{
    const char *context = github_text(body, "context");

    return g_strcmp0(github_text(item, "context"), context != NULL ? context : "default") == 0 &&
           same(item, body, "state") && same(item, body, "description") && same(item, body, "target_url");
}

bool
look_is_check(const Json *item, const Json *body)
{
    const char *id = github_text(body, "external_id");

    return id != NULL && g_strcmp0(github_text(item, "external_id"), id) == 0 && same(item, body, "name");
}

bool
look_is_ref(const Json *item, const Json *body)
{
    return same(item, body, "ref") &&
           g_strcmp0(github_text(json_object_get(item, "object"), "sha"), github_text(body, "sha")) == 0;
}
