/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of one agent's work, with what its commands print, and of one squad, over the event log. */
#include <string.h>

#include "api/call-box.h"
#include "api/event-stream.h"
#include "api/gate.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "forge/row.h"
#include "http/url.h"

/* Names that were promised; every other kind is its own, with "_" for the dot. */
static const struct {
    const char *kind, *name;
} squad_names[] = {
    {"box.created", "sandbox_created"},
    {"box.expired", "sandbox_terminated"},
    {"box.failed", "sandbox_error"},
    {"box.killed", "sandbox_terminated"},
    {"box.paused", "sandbox_paused"},
    {"box.ready", "sandbox_ready"},
    {"box.resumed", "sandbox_resumed"},
    {"branch.created", "git_operation"},
    {"branch.removed", "git_operation"},
    {"command.ended", "execution_completed"},
    {"command.output", "execution_log"},
    {"command.started", "execution_started"},
    {"commit.pushed", "git_operation"},
    {"context.updated", "context-update"},
    {"git.cloned", "git_operation"},
    {"git.failed", "git_operation"},
    {"git.fetched", "git_operation"},
    {"git.progressed", "git_operation"},
    {"merge.conflicted", "git_operation"},
    {"message.posted", "message"},
    {"pr.closed", "pr_closed"},
    {"pr.merged", "pr_merged"},
    {"pr.opened", "pr_created"},
    {"pr.ready", "pr_updated"},
    {"pr.reopened", "pr_updated"},
    {"pr.updated", "pr_updated"},
    {"task.moved", "task_updated"},
    {"tests.reported", "test_results"},
};

/* The names that have no row, each made once. */
static const char *
plain_name(const char *kind)
{
    g_autofree char *name = g_strdelimit(g_strdup(kind), ".", '_');

    return g_intern_string(name);
}

const char *
stream_squad_name(const char *kind)
{
    for (size_t i = 0; i < G_N_ELEMENTS(squad_names); i++) {
        if (strcmp(squad_names[i].kind, kind) == 0)
            return squad_names[i].name;
    }
    return plain_name(kind);
}

/* ---- finding what is followed ---- */

typedef struct Target {
    StreamKind kind;
    const char *id, *owner;
} Target;

static bool
run_find(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    /* The first alone is in both. */
    static const RowColumn columns[] = {{"id", ROW_TEXT}, {"box_id", ROW_TEXT}, {"run", ROW_INT}};
    static const RowTable tables[STREAM_KIND_MAX] = {
        [STREAM_EXECUTION] = {"execution", "task_executions", columns, G_N_ELEMENTS(columns)},
        [STREAM_SQUAD] = {"squad", "squads", columns, 1},
    };
    static const char *const wheres[STREAM_KIND_MAX] = {
        [STREAM_EXECUTION] = "(id = ? OR agent = ?) AND (? IS NULL OR owner = ?)",
        [STREAM_SQUAD] =
            "(id = ? OR name = ?) AND (? IS NULL OR user_id = ? OR user_id = '') ORDER BY user_id DESC",
    };
    const Target *t = data;
    DbValue id = db_text(t->id), owner = db_text(t->owner);

    *ret_value = row_get(job, &tables[t->kind], wheres[t->kind], DB_ARGS(id, id, owner, owner), error);
    return *ret_value != NULL;
}

typedef struct Asked {
    ApiCall *call; /* with a reference to its request */
    StreamKind kind;
    gint64 after;
    const char *places; /* borrowed from the request; NULL: none */
} Asked;

static void
on_found(Json *value, const GError *error, void *data)
{
    g_autofree Asked *a = data;
    EventFilter filter = {0};

    if (error != NULL) {
        call_respond_error(a->call, error);
    } else if (a->kind == STREAM_SQUAD) {
        filter.squad_id = row_text(value, "id");
        event_stream_follow(a->call, &(EventStreamSpec){.kind = a->kind,
                                                        .filter = &filter,
                                                        .after = a->after,
                                                        .name_of = stream_squad_name});
    } else {
        filter.execution_id = row_text(value, "id");
        event_stream_follow(a->call, &(EventStreamSpec){.kind = a->kind,
                                                        .filter = &filter,
                                                        .after = a->after,
                                                        .with_lines = true,
                                                        .box_id = row_text(value, "box_id"),
                                                        .run = row_int(value, "run"),
                                                        .places = a->places});
    }
    http_request_unref(a->call->request);
}

static void
follow(ApiCall *call, StreamKind kind)
{
    static const RowMember members[] = {ROW_AT_TEXT(Target, id), ROW_AT_TEXT(Target, owner), ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(Target), members, run_find};
    static const char *const names[] = {"after", NULL};
    const char *query = http_request_query(call->request);
    g_autoptr(GError) error = NULL;
    const char *places = NULL;
    gint64 after = -1;

    if (!url_query_only(query, names, &error) ||
        !url_query_get_int(query, "after", 0, G_MAXINT64, &after, &error) ||
        !event_stream_read_last_id(call, &after, kind == STREAM_EXECUTION ? &places : NULL, &error)) {
        call_respond_error(call, error);
        return;
    }
    /* It is a stream whatever the caller says it accepts. */
    if (!call->counts_stream && !gate_take_stream(call))
        return;
    Asked *a = g_new(Asked, 1);
    Target target = {.kind = kind, .id = call_param(call, "id"), .owner = caller_owner(&call->caller)};

    *a = (Asked){.call = call, .kind = kind, .after = after, .places = places};
    http_request_ref(call->request);
    row_run_in(call->api->db, "", &op, &target, on_found, a);
}

static void
get_execution(ApiCall *call)
{
    follow(call, STREAM_EXECUTION);
}

static void
get_squad(ApiCall *call)
{
    follow(call, STREAM_SQUAD);
}

/* ---- how many ---- */

static void
get_stats(ApiCall *call)
{
    static const char *const names[STREAM_KIND_MAX] = {
        [STREAM_LOG] = "events", [STREAM_EXECUTION] = "executions", [STREAM_SQUAD] = "squads"};
    Json *kinds = json_object();
    guint open = 0;

    for (StreamKind k = STREAM_LOG; k < STREAM_KIND_MAX; k++) {
        const StreamCounts *c = &call->api->stream_counts[k];

        open += c->open;
        json_object_set_new(kinds, names[k],
                            json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "connections", (json_int_t)c->open,
                                      "opened", (json_int_t)c->opened, "events_sent", (json_int_t)c->events,
                                      "lines_sent", (json_int_t)c->lines, "beats_sent", (json_int_t)c->beats,
                                      "resyncs", (json_int_t)c->resyncs));
    }
    call_respond_json(call, 200,
                      json_pack("{s:I, s:o, s:I}", "connections", (json_int_t)open, "streams", kinds, "seq",
                                (json_int_t)event_log_last_seq(call->api->events)));
}

const ApiRoute streams_routes[] = {
    {"GET", "/api/v1/sse/execution/{id}", SCOPE_READ, ROUTE_STREAM, get_execution},
    {"GET", "/api/v1/sse/squad/{id}", SCOPE_READ, ROUTE_STREAM, get_squad},
    {"GET", "/api/v1/sse/stats", SCOPE_READ, 0, get_stats},
    {NULL},
};
