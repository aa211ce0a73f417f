/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/demo.h"

typedef char *(*Teller)(const Json *event, const Json *data);

static const char *
text(const Json *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));

    return value != NULL ? value : "";
}

static gint64
number(const Json *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static char *
tell_council(const Json *event, const Json *data)
{
    return g_strdup("a council plans: three opinions, ranked by each other, put together by a chairman");
}

static char *
tell_planned(const Json *event, const Json *data)
{
    return g_strdup_printf("planned by %s",
                           *text(data, "producer") != '\0' ? text(data, "producer") : "a brain");
}

static char *
tell_joined(const Json *event, const Json *data)
{
    return g_strdup_printf("%s starts in a box of its own (try %" G_GINT64_FORMAT ")", text(data, "agent"),
                           MAX(number(data, "try"), 1));
}

static char *
tell_said(const Json *event, const Json *data)
{
    const char *said = text(data, "text");

    return *said != '\0' ? g_strdup_printf("  %s says: %s", text(data, "agent"), said) : NULL;
}

static char *
tell_left(const Json *event, const Json *data)
{
    const Json *passed = json_object_get(data, "passed");
    const char *seen = json_is_true(passed) ? "Coop ran the checks itself: they pass"
                       : json_is_false(passed)
                           ? "Coop ran the checks itself: they FAIL, whatever the agent says"
                           : "nothing to check";

    if (strcmp(text(data, "state"), "done") != 0)
        return g_strdup_printf("%s did not come to an end: %s", text(data, "agent"), text(data, "problem"));
    return g_strdup_printf("%s is done; %s", text(data, "agent"), seen);
}

static char *
tell_conflict(const Json *event, const Json *data)
{
    return g_strdup("two branches changed the same lines: the conflict goes back to an agent");
}

static char *
tell_opened(const Json *event, const Json *data)
{
    return g_strdup_printf("pull request #%" G_GINT64_FORMAT " is open: %s", number(data, "number"),
                           text(data, "title"));
}

static char *
tell_review(const Json *event, const Json *data)
{
    return g_strdup_printf("review: %s", text(data, "state"));
}

static char *
tell_checks(const Json *event, const Json *data)
{
    return g_strdup_printf("Coop's checks in a clean box: %s", text(data, "state"));
}

static char *
tell_merged(const Json *event, const Json *data)
{
    return g_strdup_printf("pull request #%" G_GINT64_FORMAT " is merged", number(data, "number"));
}

char *
demo_tell(const Json *event)
{
    static const struct {
        const char *kind;
        Teller tell;
    } tellers[] = {
        {"council.opened", tell_council},    {"task.planned", tell_planned},
        {"agent.joined", tell_joined},       {"agent.said", tell_said},
        {"agent.thought", tell_said},        {"agent.left", tell_left},
        {"merge.conflicted", tell_conflict}, {"pr.opened", tell_opened},
        {"review.submitted", tell_review},   {"checks.ended", tell_checks},
        {"pr.merged", tell_merged},
    };
    const char *kind = text(event, "kind");

    for (size_t i = 0; i < G_N_ELEMENTS(tellers); i++) {
        if (strcmp(tellers[i].kind, kind) == 0)
            return tellers[i].tell(event, json_object_get(event, "data"));
    }
    return NULL;
}
