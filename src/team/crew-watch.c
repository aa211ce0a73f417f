/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's output and its end.  What an adapter reads out of it becomes events; how far it was read is
 * written with them, so that nothing is told twice. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "team/crew-private.h"
#include "team/flow-private.h"

enum { MS_PER_S = 1000, REST_MIN_S = 60, TOLD_AT_ONCE = 100 };

static void
on_told(Json *value, const GError *error, void *data)
{
    if (error != NULL)
        log_warn("crew", "what an agent said could not be written", log_gerror(error));
}

/* As much as an agent may tell at its face. */
static void
flush(Shift *s, Json *events)
{
    size_t n = json_array_size(events), may = shift_may_say(s, n);

    s->seen = s->read - adapter_lines_rest(s->lines);
    s->unsaid += n - may;
    for (; n > may; n--)
        json_array_remove(events, n - 1);
    if (n > 0)
        shift_tell(s, events, on_told, NULL);
    json_array_clear(events);
}

static void
tell_unsaid(Shift *s)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT " lines more were too many to be kept",
                                            s->unsaid);
    g_autoptr(Json) events = json_pack("[{s:s, s:s, s:I}]", "kind", "thought", "text", text, "cut",
                                       (json_int_t)s->unsaid);

    if (s->unsaid > 0)
        shift_tell(s, events, on_told, NULL);
}

static void
take_piece(Shift *s, RunStep step, const RunPiece *piece, Json *events)
{
    if (s->lines == NULL || piece->stream != STREAM_STDOUT)
        return;
    if (step == RUN_STEP_GAP)
        adapter_lines_gap(s->lines);
    else
        adapter_lines_feed(s->lines, piece->bytes, piece->n, events);
    s->read = piece->offset + piece->n;
    if (json_array_size(events) >= TOLD_AT_ONCE)
        flush(s, events);
}

static void
take_end(Shift *s, Json *events)
{
    if (s->lines != NULL) {
        adapter_lines_end(s->lines, events);
        flush(s, events);
        tell_unsaid(s);
    }
    s->end = *run_end(s->run);
    g_clear_pointer(&s->follower, run_follower_free);
    FAILPOINT("crew-ran");
    shift_ran(s);
}

static void
on_output(void *data)
{
    g_autoptr(Shift) s = shift_ref(data);
    g_autoptr(Json) events = json_array();
    RunPiece piece;
    RunStep step;

    while ((step = run_follower_next(s->follower, &piece)) == RUN_STEP_DATA || step == RUN_STEP_GAP)
        take_piece(s, step, &piece, events);
    if (step == RUN_STEP_WAIT) {
        if (s->lines != NULL)
            flush(s, events);
        return;
    }
    if (!run_has_ended(s->run)) {
        shift_lost(s, "its output cannot be read any more");
        return;
    }
    take_end(s, events);
}

/* One that is found again gets a minute at least, unless it never had as much. */
static guint
left_ms(const Shift *s)
{
    gint64 seconds = shift_seconds(s), started_us = row_int(s->row, "started_us");
    gint64 gone_s = started_us != 0 ? (clock_wall_us() - started_us) / G_USEC_PER_SEC : 0;

    /* The clock may have been set, to either side. */
    return (guint)CLAMP(seconds - gone_s, MIN(seconds, REST_MIN_S), seconds) * MS_PER_S;
}

void
shift_watch(Shift *s, Run *run)
{
    guint64 from = s->adapter != NULL ? s->seen : run_output_bytes(run, STREAM_STDOUT);

    s->phase = SHIFT_WORKING;
    s->run = run_ref(run);
    s->read = s->seen;
    if (s->adapter != NULL)
        s->lines = adapter_lines_new(s->adapter);
    s->follower = run_follow(run, from, run_output_bytes(run, STREAM_STDERR), on_output, s);
    if (s->asking == 0)
        shift_timer(s, left_ms(s));
    /* The answer was the last that the server before this one has written. */
    if (s->asking == 0 && strcmp(shift_text(s, "state"), "asking") == 0)
        crew_answered(s->crew, s->id);
    on_output(s); /* before that nobody is woken */
}

/* ---- what came of it ---- */

static void
set_end(Shift *s, const char *state, char *problem)
{
    g_free(s->state);
    g_free(s->problem);
    s->state = g_strdup(state);
    s->problem = problem;
}

/* "The command's end is its report; its last words are the summary." */
static void
report_for(Shift *s)
{
    const char *said = s->lines != NULL ? adapter_lines_summary(s->lines) : "";
    const char *verdict = shift_writes(s) ? NULL : adapter_verdict(said);
    bool well = s->end.reason == RUN_EXIT && s->end.code == 0;

    if (s->adapter != NULL && s->report == NULL)
        s->report = json_pack("{s:s, s:s, s:s*}", "outcome", well ? "done" : "failed", "summary", said,
                              "verdict", verdict);
}

/* Its own words, which are told as such wherever the problem is shown. */
static char *
problem_said(const Shift *s)
{
    const char *summary = row_text(s->report, "summary");
    g_autofree char *said = flow_cut(summary, CREW_PROBLEM_MAX);

    return said[0] != '\0' ? g_strdup_printf("it gave up, and says: %s", said)
                           : g_strdup("it gave up, and says nothing");
}

static void
judge(Shift *s)
{
    g_autofree char *message = run_end_dup_message(&s->end);
    const char *outcome = row_text(s->report, "outcome");

    if (shift_only_checks(s))
        set_end(s, "done", NULL);
    else if (s->repeats > 0)
        set_end(
            s, "failed",
            g_strdup_printf("it asked its model the same for the %uth time, and was stopped", s->repeats));
    else if (s->timed_out || s->end.reason == RUN_TIMEOUT)
        set_end(s, "failed", g_strdup_printf("it did not end within %u s", shift_seconds(s)));
    else if (s->end.reason != RUN_EXIT)
        set_end(s, s->end.reason == RUN_NOT_STARTED ? "failed" : "lost",
                g_strdup(message != NULL ? message : "it was killed"));
    else if (outcome == NULL)
        set_end(s, "failed", g_strdup_printf("it ended with code %d and said nothing", s->end.code));
    else if (strcmp(outcome, "done") != 0)
        set_end(s, "failed", problem_said(s));
    else if (!shift_writes(s) && row_text(s->report, "verdict") == NULL)
        set_end(s, "failed", g_strdup("it looked, and gave no verdict"));
    else
        set_end(s, "done", NULL);
}

static void
on_proving(Json *value, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;

    if (s->crew == NULL || s->phase != SHIFT_PROVING)
        return;
    if (error == NULL && strcmp(row_text(value, "state"), "proving") != 0) {
        shift_let_go(s);
        return;
    }
    FAILPOINT("crew-proving");
    shift_prove(s);
}

/* Nobody waits for it: it comes while the work is proved, or is not known. */
static void
on_use(Box *box, const BoxUse *use, const GError *error, void *data)
{
    g_autoptr(Shift) s = data;

    if (error == NULL)
        s->memory_bytes = use->memory_peak_bytes;
}

void
shift_ran(Shift *s)
{
    loop_timer_cancel(s->crew->loop, &s->timer);
    box_use(s->box, on_use, shift_ref(s));
    if (s->end.reason == RUN_STOPPED || s->end.reason == RUN_LOST) {
        shift_lost(s, "its box ended while it worked");
        return;
    }
    report_for(s);
    judge(s);
    s->phase = SHIFT_PROVING;
    crew_move(s->crew,
              &(CrewMove){.id = s->id,
                          .state = "proving",
                          .workdir = s->workdir,
                          .seen = (gint64)s->seen,
                          .report = s->report},
              on_proving, shift_ref(s));
}
