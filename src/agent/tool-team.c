/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that speak with others: room, ask, done. */
#include <string.h>
#include <unistd.h>

#include "agent/tool.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/path.h"

enum { OPTIONS_MAX = 10, WORD_MAX = 40, PATH_MAX_BYTES = 1024 };

/* ---- room ---- */

static bool
room_run(Work *work, Json *arguments, ToolResult *result, GError **error)
{
    const char *text = NULL, *priority = NULL, *id = work->brief->room_id;
    const JsonField fields[] = {
        {"text", JSON_KIND_STRING, &text, false, 0, TOOL_MESSAGE_MAX},
        {"priority", JSON_KIND_STRING, &priority, false, 0, WORD_MAX},
        {NULL},
    };

    if (!json_read(arguments, fields, error))
        return false;
    if (id == NULL)
        return err_set(error, ERR_NOT_FOUND, "this session has no room");
    if (text != NULL && *text != '\0') {
        if (!face_room_post(work->face, id, text, priority, error))
            return false;
        g_string_assign(result->text, "posted");
        return true;
    }
    g_autoptr(Json) room = face_room_read(work->face, id, error);
    if (room == NULL)
        return false;
    g_autofree char *words = brief_format_room(room);
    g_string_assign(result->text, *words != '\0' ? words : "The room is empty.");
    return true;
}

const Tool tool_room = {
    .name = "room",
    .description = "Say something to the other agents and people of this task, with `text`; without it, read "
                   "the plan, who does what, what is known and the last messages.",
    .parameters =
        "{\"type\": \"object\", \"properties\": {"
        "\"text\": {\"type\": \"string\"},"
        "\"priority\": {\"type\": \"string\", \"enum\": [\"low\", \"normal\", \"high\", \"urgent\"]}}}",
    .run = room_run,
};

/* ---- ask ---- */

/* The id of the question, if these words are open already: the program was started again. */
static char *
find_question(const Work *work, const char *question)
{
    g_autofree char *text = NULL;

    if (work->question_path == NULL || !g_file_get_contents(work->question_path, &text, NULL, NULL))
        return NULL;
    g_autoptr(Json) kept = json_decode(text, strlen(text), NULL);
    bool same = g_strcmp0(json_string_value(json_object_get(kept, "question")), question) == 0;
    return same ? g_strdup(json_string_value(json_object_get(kept, "id"))) : NULL;
}

static void
keep_question(const Work *work, const char *question, const char *id)
{
    g_autoptr(Json) kept = json_pack("{s:s, s:s}", "question", question, "id", id);
    g_autofree char *text = json_encode(kept);
    g_autoptr(GError) error = NULL;

    if (work->question_path != NULL &&
        !path_write_atomic(work->question_path, text, strlen(text), 0600, &error))
        log_warn("agent", "the question is not kept", log_gerror(error));
}

static char *
ask(Work *work, const char *question, Json *options, GError **error)
{
    g_autofree char *id = find_question(work, question);

    if (id == NULL) {
        id = face_ask(work->face, question, options, error);
        if (id == NULL)
            return NULL;
        keep_question(work, question, id);
    }
    char *answer = face_answer(work->face, id, error);
    if (answer != NULL && work->question_path != NULL)
        (void)unlink(work->question_path); /* at worst the same words have the same answer */
    return answer;
}

static bool
ask_run(Work *work, Json *arguments, ToolResult *result, GError **error)
{
    const char *question = NULL;
    Json *options = NULL;
    const JsonField fields[] = {
        {"question", JSON_KIND_STRING, &question, true, 1, TOOL_MESSAGE_MAX},
        {"options", JSON_KIND_ARRAY, &options, false, 0, OPTIONS_MAX},
        {NULL},
    };
    gint64 begun_us = clock_mono_us();

    if (!json_read(arguments, fields, error))
        return false;
    g_autofree char *answer = ask(work, question, options, error);
    /* A person's time is not the agent's. */
    work->deadline_us += clock_mono_us() - begun_us;
    if (answer == NULL)
        return false;
    g_string_assign(result->text, answer);
    return true;
}

const Tool tool_ask = {
    .name = "ask",
    .description = "Ask a person, and wait for the answer. Only for what nobody can decide without them.",
    .parameters = "{\"type\": \"object\", \"properties\": {"
                  "\"question\": {\"type\": \"string\"},"
                  "\"options\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}},"
                  "\"required\": [\"question\"]}",
    .flags = TOOL_SLOW | TOOL_REPEATABLE,
    .run = ask_run,
};

/* ---- done ---- */

static bool
check_finding(Json *finding, GError **error)
{
    static const char *const severities[] = {"error", "warning", "note", NULL};
    const char *path = NULL, *severity = NULL, *body = NULL;
    gint64 line = 0;
    const JsonField fields[] = {
        {"path", JSON_KIND_STRING, &path, false, 0, PATH_MAX_BYTES},
        {"line", JSON_KIND_INT, &line, false, 0, G_MAXINT32},
        {"severity", JSON_KIND_STRING, &severity, false, 0, WORD_MAX},
        {"body", JSON_KIND_STRING, &body, true, 1, TOOL_MESSAGE_MAX},
        {NULL},
    };

    if (!json_is_object(finding))
        return err_set(error, ERR_INVALID, "a finding must be an object");
    if (!json_read(finding, fields, error)) {
        g_prefix_error(error, "a finding: ");
        return false;
    }
    return severity == NULL || g_strv_contains(severities, severity) ||
           err_set(error, ERR_INVALID, "a finding: 'severity' is error, warning or note");
}

static bool
check_verdict(const Work *work, const char *verdict, GError **error)
{
    if (verdict == NULL)
        return !brief_is_review(work->brief) ||
               err_set(error, ERR_INVALID, "a review needs a verdict: approve or changes");
    return strcmp(verdict, "approve") == 0 || strcmp(verdict, "changes") == 0 ||
           err_set(error, ERR_INVALID, "'verdict' is approve or changes");
}

static bool
done_run(Work *work, Json *arguments, ToolResult *result, GError **error)
{
    const char *summary = NULL, *verdict = NULL, *outcome = "done";
    Json *findings = NULL, *finding;
    const JsonField fields[] = {
        {"summary", JSON_KIND_STRING, &summary, true, 1, TOOL_SUMMARY_MAX},
        {"outcome", JSON_KIND_STRING, &outcome, false, 0, WORD_MAX},
        {"verdict", JSON_KIND_STRING, &verdict, false, 0, WORD_MAX},
        {"findings", JSON_KIND_ARRAY, &findings, false, 0, TOOL_FINDINGS_MAX},
        {NULL},
    };
    size_t i;

    if (!json_read(arguments, fields, error) || !check_verdict(work, verdict, error))
        return false;
    if (strcmp(outcome, "done") != 0 && strcmp(outcome, "failed") != 0)
        return err_set(error, ERR_INVALID, "'outcome' is done or failed");
    json_array_foreach(findings, i, finding)
    {
        if (!check_finding(finding, error))
            return false;
    }
    ending_clear(&work->ending);
    work->ending = (Ending){.is_set = true,
                            .outcome = g_strdup(outcome),
                            .summary = g_strdup(summary),
                            .verdict = g_strdup(verdict),
                            .findings = json_incref(findings)};
    g_string_assign(result->text, "the session ends");
    return true;
}

const Tool tool_done = {
    .name = "done",
    .description =
        "End the session. `summary` says what was done and how it was proven; `outcome` is failed if "
        "the goal was not reached. A review has a verdict, and findings at lines of files.",
    .parameters = "{\"type\": \"object\", \"properties\": {"
                  "\"summary\": {\"type\": \"string\"},"
                  "\"outcome\": {\"type\": \"string\", \"enum\": [\"done\", \"failed\"]},"
                  "\"verdict\": {\"type\": \"string\", \"enum\": [\"approve\", \"changes\"]},"
                  "\"findings\": {\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {"
                  "\"path\": {\"type\": \"string\"}, \"line\": {\"type\": \"integer\"},"
                  "\"severity\": {\"type\": \"string\", \"enum\": [\"error\", \"warning\", \"note\"]},"
                  "\"body\": {\"type\": \"string\"}}, \"required\": [\"body\"]}}},"
                  "\"required\": [\"summary\"]}",
    .flags = TOOL_REPEATABLE,
    .run = done_run,
};
