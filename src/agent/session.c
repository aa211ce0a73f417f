/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/events.h"
#include "agent/keep.h"
#include "agent/model.h"
#include "agent/talk.h"
#include "agent/tool.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

enum { LINE_SHOWN = 160 };

static const char ended[] = "the session ended";
static const char interrupted[] =
    "error: the program was started again while this ran. Look at the state of the "
    "work tree before you go on.";
static const char go_on[] =
    "Go on by calling a tool. If everything is finished, call `done` with a summary; if it "
    "cannot be finished, call it with the outcome failed.";
static const char was_cut[] = "Your answer was cut off at its greatest length. Go on in smaller pieces.";

typedef struct Session {
    Brief brief;
    Work work;
    Events *events;
    Talk *talk;
    Model *model;
    Keep keep;
    Json *tools;
    guint silent, malformed; /* in a row */
    guint refused;           /* reports */
} Session;

typedef struct CallRef {
    const char *id, *name, *arguments;
} CallRef;

/* ---- what people see in the log ---- */

static void
show(const char *what, const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, (gssize)MIN(strlen(text), (size_t)LINE_SHOWN));

    for (char *p = valid; *p != '\0'; p++) {
        if ((guchar)*p < ' ')
            *p = ' ';
    }
    printf("%s: %s\n", what, valid);
    fflush(stdout);
}

/* ---- the end ---- */

static void
end_failed(Session *s, const char *reason, const char *summary)
{
    ending_clear(&s->work.ending);
    s->work.ending = (Ending){.is_set = true,
                              .outcome = g_strdup("failed"),
                              .reason = g_strdup(reason),
                              .summary = g_strdup(summary)};
}

/* `waited_for`: what it still waited for then, NULL: nothing. */
static void
end_late(Session *s, const char *waited_for)
{
    g_autofree char *words = g_strconcat("the time of this session is over", waited_for != NULL ? "; " : NULL,
                                         waited_for, NULL);

    end_failed(s, "time", words);
}

/* A model that only speaks has said its last words. */
static void
end_with_words(Session *s, const char *words)
{
    if (brief_is_review(&s->brief) || *words == '\0') {
        end_failed(s, "no_tool_call", "the model stopped calling tools, and did not say that it is done");
        return;
    }
    g_autofree char *valid = g_utf8_make_valid(words, (gssize)MIN(strlen(words), (size_t)TOOL_SUMMARY_MAX));
    s->work.ending = (Ending){
        .is_set = true, .outcome = g_strdup("done"), .summary = g_steal_pointer(&valid)};
}

/* The server has the last word on what a report may be: what it refuses goes back to the model that wrote
 * it.  `*ret_again`: it did. */
static bool
finish(Session *s, bool *ret_again, GError **error)
{
    const Ending *ending = &s->work.ending;
    g_autoptr(Json) report = ending_report(ending);
    g_autoptr(GError) failed = NULL;

    show(ending->outcome, ending->summary);
    events_text(s->events, "summary", ending->summary);
    events_finish(s->events);
    *ret_again = false;
    if (face_done(s->work.face, report, &failed))
        return strcmp(ending->outcome, "done") == 0 || err_set(error, ERR_INTERNAL, "%s", ending->summary);
    g_autoptr(Json) pending = talk_pending(s->talk);
    Json *call = json_array_get(pending, 0);
    if (err_kind(failed) != ERR_INVALID || call == NULL || ++s->refused > SESSION_REFUSED_MAX) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return false;
    }
    g_autofree char *text = g_strconcat("error: ", failed->message, NULL);
    talk_add_result(s->talk, json_string_value(json_object_get(call, "id")), "done", text);
    ending_clear(&s->work.ending);
    *ret_again = true;
    return true;
}

/* ---- tools ---- */

/* `done` gets no result: it is under way until the server knows, and is called again by a program that goes
 * on. */
static bool
run_call(Session *s, const CallRef *call, bool *ret_malformed, GError **error)
{
    gint64 begun_us = clock_mono_us();
    g_autoptr(GString) text = g_string_new(NULL), err = g_string_new(NULL);
    ToolResult result = {.text = text, .err = err};

    show(call->name, call->arguments);
    if (!tool_call(&s->work, call->name, call->arguments, &result, ret_malformed, error))
        return false;
    if (!s->work.ending.is_set)
        talk_add_result(s->talk, call->id, call->name, text->str);
    events_tool(s->events, &(ToolEvent){.name = call->name,
                                        .arguments = call->arguments,
                                        .output = text->str,
                                        .err = err->str,
                                        .exit_code = result.exit_code,
                                        .duration_ms = (clock_mono_us() - begun_us) / 1000});
    return true;
}

static bool
run_calls(Session *s, const Answer *answer, GError **error)
{
    bool all_malformed = true;

    for (guint i = 0; i < answer->calls->len; i++) {
        const AnswerCall *call = g_ptr_array_index(answer->calls, i);
        bool malformed = false;

        if (tool_is_slow(call->name))
            events_flush(s->events);
        if (!run_call(s, &(CallRef){call->id, call->name, call->arguments->str}, &malformed, error))
            return false;
        all_malformed = all_malformed && malformed;
        if (s->work.ending.is_set)
            return true;
    }
    s->silent = 0;
    s->malformed = all_malformed ? s->malformed + 1 : 0;
    if (s->malformed >= SESSION_MALFORMED_MAX)
        end_failed(s, "malformed_calls", "the model keeps calling tools in ways that make no sense");
    return true;
}

/* Calls that were under way when the last program ended.  What changes nothing is done again. */
static bool
run_pending(Session *s, bool same, GError **error)
{
    g_autoptr(Json) pending = talk_pending(s->talk);
    size_t i;
    Json *value;

    json_array_foreach(pending, i, value)
    {
        const CallRef call = {.id = json_string_value(json_object_get(value, "id")),
                              .name = json_string_value(json_object_get(value, "name")),
                              .arguments = json_string_value(json_object_get(value, "arguments"))};
        bool malformed, done = strcmp(call.name, "done") == 0;

        if (!same || !tool_is_repeatable(call.name))
            talk_add_result(s->talk, call.id, call.name, done ? ended : interrupted);
        else if (!run_call(s, &call, &malformed, error))
            return false;
        if (s->work.ending.is_set)
            return true;
    }
    return true;
}

/* ---- turns ---- */

/* Servers differ in what they leave out; both are needed to bring call and result together. */
static void
complete_calls(const Session *s, const Answer *answer)
{
    for (guint i = 0; i < answer->calls->len; i++) {
        AnswerCall *call = g_ptr_array_index(answer->calls, i);

        if (call->id == NULL)
            call->id = g_strdup_printf("call_%" G_GINT64_FORMAT "_%u", talk_turns(s->talk), i);
        if (call->name == NULL)
            call->name = g_strdup("unknown");
    }
}

static void
tell_answer(Session *s, const Answer *answer, gint64 duration_ms)
{
    const char *kind = answer->calls->len > 0 ? "thought" : "said";

    events_usage(s->events, answer, duration_ms);
    events_text(s->events, "thought", answer->thought->str);
    events_text(s->events, kind, answer->text->str);
    if (answer->text->len > 0)
        show(kind, answer->text->str);
}

static bool
take_answer(Session *s, const Answer *answer, GError **error)
{
    complete_calls(s, answer);
    talk_add_answer(s->talk, answer);
    if (answer->calls->len > 0)
        return run_calls(s, answer, error);
    if (++s->silent >= SESSION_SILENT_MAX)
        end_with_words(s, answer->text->str);
    else
        talk_add_user(s->talk, answer->cut_short ? was_cut : go_on);
    return true;
}

static bool
take_turn(Session *s, GError **error)
{
    g_auto(Answer) answer = {0};
    g_autoptr(GError) failed = NULL;
    gint64 begun_us = clock_mono_us();
    ModelReason reason;

    events_flush(s->events);
    model_set_deadline(s->model, s->work.deadline_us);
    if (!keep_ask(&s->keep, s->tools, &answer, &reason, &failed)) {
        if (reason == MODEL_STOPPED) {
            g_propagate_error(error, g_steal_pointer(&failed));
            return false;
        }
        if (clock_mono_us() < s->work.deadline_us)
            end_failed(s, model_reason_name(reason), failed->message);
        else
            end_late(s, failed->message);
        return true;
    }
    tell_answer(s, &answer, (clock_mono_us() - begun_us) / 1000);
    return take_answer(s, &answer, error);
}

static bool
work(Session *s, GError **error)
{
    bool again = true, good = true;

    while (good && again) {
        if (s->work.ending.is_set)
            good = finish(s, &again, error);
        else if (clock_mono_us() >= s->work.deadline_us)
            end_late(s, NULL);
        else if (talk_turns(s->talk) >= s->brief.turns)
            end_failed(s, "turns", "the turns of this session are used up");
        else
            good = take_turn(s, error);
    }
    return good;
}

/* ---- the beginning ---- */

static bool
open_talk(Session *s, GError **error)
{
    g_autofree char *above = g_path_get_dirname(s->brief.workdir);
    g_autofree char *path = g_build_filename(above, ".coop", "talk.jsonl", NULL);
    TalkFound found;
    g_autofree char *text = NULL;

    s->work.question_path = g_build_filename(above, ".coop", "question.json", NULL);
    s->talk = talk_open(path, &s->brief, &found);
    if (found != TALK_NEW && !run_pending(s, found == TALK_SAME, error))
        return false;
    if (found == TALK_SAME)
        return true;
    text = found == TALK_NEW ? brief_format(&s->brief) : brief_format_again(&s->brief);
    talk_add_goal(s->talk, text);
    return true;
}

static bool
begin(Session *s, int cancel_fd, GError **error)
{
    s->work.face = face_new(cancel_fd, error);
    Json *tree = s->work.face != NULL ? face_brief(s->work.face, error) : NULL;
    if (tree == NULL || !brief_read(&s->brief, tree, error))
        return false;
    s->events = events_new(s->work.face);
    s->work.brief = &s->brief;
    s->work.cancel_fd = cancel_fd;
    s->work.echo = true;
    s->work.deadline_us = clock_mono_us() + s->brief.seconds * G_USEC_PER_SEC;
    s->work.root_fd = open(s->brief.workdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->work.root_fd < 0)
        return err_errno(error, "the work tree '%s'", s->brief.workdir);
    s->model = model_new(&(ModelSpec){.dialect = s->brief.dialect,
                                      .name = s->brief.model,
                                      .output_tokens = s->brief.output_tokens,
                                      .cancel_fd = cancel_fd},
                         error);
    if (s->model == NULL)
        return false;
    s->tools = tools_describe(&s->brief);
    if (!open_talk(s, error))
        return false;
    keep_init(&s->keep, &s->brief, s->model, s->talk);
    return true;
}

static void
session_clear(Session *s)
{
    ending_clear(&s->work.ending);
    g_free(s->work.question_path);
    auto_close(&s->work.root_fd);
    events_free(s->events);
    talk_free(s->talk);
    model_free(s->model);
    json_decref(s->tools);
    brief_clear(&s->brief);
    face_free(s->work.face);
}

bool
session_run(int cancel_fd, GError **error)
{
    Session s = {.work.root_fd = -1};
    bool good = begin(&s, cancel_fd, error) && work(&s, error);

    session_clear(&s);
    return good;
}
