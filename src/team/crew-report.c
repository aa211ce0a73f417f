/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent says of itself: its words become events, bounded one by one and in their rate, and its report
 * is kept.  Nothing of it moves a task. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "team/crew-private.h"

enum {
    EVENTS_MAX = 100,       /* of one report */
    EVENT_TEXT_MAX = 8192,  /* bytes of one member */
    EVENT_TEXT_LEAST = 256, /* of each where they do not fit together: all of them do, whatever is in them */
    EVENTS_PER_S = 10,      /* of one agent */
    EVENTS_AT_ONCE = 600,
    FINDING_PATH_MAX = 1024,
    FINDING_BODY_MAX = 8192,
    REASON_MAX = 60,
};

Shift *
crew_in_box(Crew *crew, const char *box_id, GError **error)
{
    Shift *s = g_hash_table_lookup(crew->by_box, box_id);

    if (s == NULL && !crew->begun)
        err_set(error, ERR_UNAVAILABLE, "the server has just begun; try again");
    else if (s == NULL)
        err_set(error, ERR_NOT_FOUND, "no agent works in this box");
    return s;
}

/* ---- events ---- */

static const struct {
    const char *kind, *event;
} kinds[] = {
    {"thought", "agent.thought"}, {"said", "agent.said"}, {"tool", "tool.used"}, {"usage", NULL},
    {"summary", "agent.thought"},
};

static int
kind_of(const Json *event)
{
    const char *name = row_text(event, "kind");

    for (int i = 0; name != NULL && i < (int)G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].kind, name) == 0)
            return i;
    }
    return -1;
}

/* Texts are cut where they are too long; what is no plain value is shown as text. */
static Json *
bounded(const Json *value, size_t max)
{
    if (json_is_number(value) || json_is_boolean(value) || json_is_null(value))
        return json_incref((Json *)(guintptr)value);
    g_autofree char *made = json_is_string(value) ? NULL : json_encode(value);
    const char *text = made != NULL ? made : json_string_value(value);
    size_t n = strlen(text);

    if (n <= max)
        return json_string(text);
    const char *end = g_utf8_find_prev_char(text, text + max + 1);

    return json_stringn(text, (size_t)(end - text));
}

static Json *
event_data(const Json *event, const char *agent, const char *role, size_t max)
{
    static const char *const members[] = {"text",          "name",  "arguments",     "output", "stderr",
                                          "exit_code",     "ok",    "duration_ms",   "turn",   "input_tokens",
                                          "output_tokens", "model", "cached_tokens", "path",   "cut"};
    Json *data = json_pack("{s:s, s:s, s:s}", "agent", agent, "role", role, "seen_by", "agent");

    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        const Json *value = json_object_get(event, members[i]);

        if (value != NULL)
            json_object_set_new(data, members[i], bounded(value, max));
    }
    if (strcmp(row_text(event, "kind"), "summary") == 0)
        json_object_set_new(data, "summary", json_true());
    return data;
}

typedef struct TellSpec {
    const char *id, *actor, *agent, *role, *task_id, *squad_id, *box_id;
    gint64 seen;
    Json *events;
} TellSpec;

static bool
tell_one(RowJob *job, const TellSpec *t, const Json *one, GError **error)
{
    const char *kind = kinds[kind_of(one)].event;
    TeamEvent event = {.kind = kind,
                       .actor = t->actor,
                       .task_id = t->task_id,
                       .squad_id = t->squad_id,
                       .box_id = t->box_id,
                       .execution_id = t->id};

    if (kind == NULL)
        return true;
    event.data = event_data(one, t->agent, t->role, EVENT_TEXT_MAX);
    g_autofree char *text = json_encode(event.data);

    if (strlen(text) > EVENT_DATA_MAX) {
        json_decref(event.data);
        event.data = event_data(one, t->agent, t->role, EVENT_TEXT_LEAST);
    }
    return team_event(job->tx, &event, error);
}

static bool
run_tell(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const TellSpec *t = spec;
    gint64 turns = 0, tools = 0;
    size_t i;
    Json *one;

    json_array_foreach(t->events, i, one)
    {
        const char *kind = row_text(one, "kind");

        turns += strcmp(kind, "usage") == 0;
        tools += strcmp(kind, "tool") == 0;
        if (!tell_one(job, t, one, error))
            return false;
    }
    return db_exec(job->tx,
                   "UPDATE task_executions SET turns = turns + ?, tools = tools + ?, "
                   "seen = CASE WHEN ? > seen THEN ? ELSE seen END WHERE id = ?",
                   DB_ARGS(db_int(turns), db_int(tools), db_int(t->seen), db_int(t->seen), db_text(t->id)),
                   error);
}

void
shift_tell(Shift *s, Json *events, TeamJsonFunc done, void *data)
{
    static const RowMember members[] = {
        ROW_AT_TEXT(TellSpec, id),     ROW_AT_TEXT(TellSpec, actor),   ROW_AT_TEXT(TellSpec, agent),
        ROW_AT_TEXT(TellSpec, role),   ROW_AT_TEXT(TellSpec, task_id), ROW_AT_TEXT(TellSpec, squad_id),
        ROW_AT_TEXT(TellSpec, box_id), ROW_AT_JSON(TellSpec, events),  ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(TellSpec), members, run_tell};
    BoxInfo info;

    s->says = MAX(s->says - (double)json_array_size(events), 0);
    box_info(s->box, &info);
    team_run(s->crew->team, &op,
             &(TellSpec){.id = s->id,
                         .actor = s->actor,
                         .agent = shift_text(s, "agent"),
                         .role = shift_text(s, "role"),
                         .task_id = shift_text(s, "task_id"),
                         .squad_id = shift_text(s, "squad_id"),
                         .box_id = info.id,
                         .seen = (gint64)s->seen,
                         .events = events},
             done, data);
}

size_t
shift_may_say(Shift *s, size_t n)
{
    gint64 now_us = clock_mono_us();
    double more = (double)(now_us - s->said_us) / G_USEC_PER_SEC * EVENTS_PER_S;

    s->says = s->said_us == 0 ? EVENTS_AT_ONCE : MIN(s->says + more, (double)EVENTS_AT_ONCE);
    s->said_us = now_us;
    return MIN(n, (size_t)s->says);
}

static bool
check_events(Json *body, Json **ret_events, GError **error)
{
    size_t i;
    Json *one;
    const JsonField fields[] = {{"events", JSON_KIND_ARRAY, ret_events, true, 0, EVENTS_MAX}, {NULL}};

    if (!json_read(body, fields, error))
        return false;
    json_array_foreach(*ret_events, i, one)
    {
        if (kind_of(one) < 0)
            return err_set(error, ERR_INVALID,
                           "the kind of event %zu is none of thought, said, tool, usage, summary", i);
    }
    return true;
}

void
crew_report(Crew *crew, const char *box_id, Json *body, TeamJsonFunc done, void *data)
{
    g_autoptr(GError) error = NULL;
    Json *events = NULL;
    Shift *s = crew_in_box(crew, box_id, &error);

    if (s != NULL && check_events(body, &events, &error) &&
        shift_may_say(s, json_array_size(events)) < json_array_size(events))
        err_set(&error, ERR_LIMIT, "an agent may say %d things a second", EVENTS_PER_S);
    if (error != NULL)
        done(NULL, error, data);
    else
        shift_tell(s, events, done, data);
}

/* ---- the report ---- */

static bool
check_finding(Json *finding, GError **error)
{
    static const char *const severities[] = {"error", "warning", "note", NULL};
    const char *path = "", *severity = "warning", *body = NULL;
    gint64 line = 0;
    const JsonField fields[] = {{"path", JSON_KIND_STRING, &path, false, 0, FINDING_PATH_MAX},
                                {"line", JSON_KIND_INT, &line, false, 0, G_MAXINT32},
                                {"severity", JSON_KIND_STRING, &severity, false, 0, 0},
                                {"body", JSON_KIND_STRING, &body, true, 1, FINDING_BODY_MAX},
                                {NULL}};

    return json_read(finding, fields, error) && row_check_word("severity", severity, severities, error);
}

static bool
check_report(Json *body, GError **error)
{
    static const char *const outcomes[] = {"done", "failed", NULL};
    static const char *const verdicts[] = {"approve", "changes", NULL};
    const char *outcome = NULL, *summary = "", *verdict = "approve", *reason = "";
    Json *findings = NULL, *one;
    size_t i;
    const JsonField fields[] = {{"outcome", JSON_KIND_STRING, &outcome, true, 1, 0},
                                {"summary", JSON_KIND_STRING, &summary, false, 0, CREW_SUMMARY_MAX},
                                {"verdict", JSON_KIND_STRING, &verdict, false, 0, 0},
                                {"reason", JSON_KIND_STRING, &reason, false, 0, REASON_MAX},
                                {"findings", JSON_KIND_ARRAY, &findings, false, 0, CREW_FINDINGS_MAX},
                                {NULL}};

    if (!json_read(body, fields, error) || !row_check_word("outcome", outcome, outcomes, error) ||
        !row_check_word("verdict", verdict, verdicts, error))
        return false;
    json_array_foreach(findings, i, one)
    {
        if (!check_finding(one, error))
            return false;
    }
    return true;
}

typedef struct DoneSpec {
    const char *id;
    Json *report;
} DoneSpec;

static bool
run_done(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const DoneSpec *d = spec;
    g_autofree char *text = json_encode(d->report);

    return db_exec(job->tx, "UPDATE task_executions SET report = ? WHERE id = ? AND ended_us = 0",
                   DB_ARGS(db_text(text), db_text(d->id)), error);
}

/* null members are those that are not there. */
static void
drop_nulls(Json *object)
{
    const char *name;
    Json *value;
    void *next;

    json_object_foreach_safe(object, next, name, value)
    {
        if (json_is_null(value))
            json_object_del(object, name);
    }
}

void
crew_done(Crew *crew, const char *box_id, Json *body, TeamJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(DoneSpec, id), ROW_AT_JSON(DoneSpec, report), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(DoneSpec), members, run_done};
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) report = json_deep_copy(body);
    Shift *s = crew_in_box(crew, box_id, &error);

    drop_nulls(report);
    if (s != NULL && check_report(report, &error) && s->phase > SHIFT_WORKING)
        err_set(&error, ERR_CONFLICT, "this agent has ended");
    else if (error == NULL && !shift_writes(s) && strcmp(row_text(report, "outcome"), "done") == 0 &&
             row_text(report, "verdict") == NULL)
        err_set(&error, ERR_INVALID, "who tests or reviews gives a verdict: approve or changes");
    if (error != NULL) {
        done(NULL, error, data);
        return;
    }
    json_decref(s->report);
    s->report = json_incref(report);
    FAILPOINT("crew-done");
    team_run(crew->team, &op, &(DoneSpec){s->id, report}, done, data);
}
