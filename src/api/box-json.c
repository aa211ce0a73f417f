/* SPDX-License-Identifier: Apache-2.0 */
#include "api/box-json.h"

#include "api/state.h"
#include "base/clock.h"

#define MIB (1024 * 1024)

static void
set_text(Json *object, const char *name, const char *text)
{
    json_object_set_new(object, name, text != NULL ? json_string(text) : json_null());
}

void
json_set_time(Json *object, const char *name, gint64 wall_us)
{
    char text[CLOCK_ISO_LEN + 1];

    if (wall_us > 0)
        clock_format_iso(wall_us, text);
    set_text(object, name, wall_us > 0 ? text : NULL);
}

static Json *
describe_limits(const KeeperLimits *l)
{
    return json_pack("{s:f, s:I, s:I, s:I, s:I}", "cpu", l->cpu_milli / 1000.0, "memory_mb",
                     (json_int_t)(l->memory_bytes / MIB), "disk_mb", (json_int_t)(l->disk_bytes / MIB),
                     "inodes", (json_int_t)l->inodes, "processes", (json_int_t)l->pids);
}

static Json *
describe_degraded(guint32 degraded)
{
    const char *names[33];
    Json *list = json_array();

    box_degraded_names(degraded, names);
    for (const char **name = names; *name != NULL; name++)
        json_array_append_new(list, json_string(*name));
    return list;
}

static Json *
decode_metadata(const char *text)
{
    Json *metadata = text != NULL ? json_loads(text, 0, NULL) : NULL;

    return metadata != NULL ? metadata : json_object();
}

static double
cost_of(const Api *api, gint64 uptime_s)
{
    /* To a millionth. */
    return (double)(gint64)((double)uptime_s / 3600 * api->price_per_hour * 1e6 + 0.5) / 1e6;
}

static void
set_origin(Json *o, const BoxInfo *i)
{
    bool hidden = i->lease != NULL && g_str_has_prefix(i->lease, LEASE_OF_CALL);

    set_text(o, "name", i->name);
    set_text(o, "template", i->template);
    set_text(o, "template_hash", i->template_hash);
    set_text(o, "owner", i->owner);
    set_text(o, "agent_id", i->agent_id);
    set_text(o, "task_id", i->task_id);
    set_text(o, "squad_id", i->squad_id);
    set_text(o, "repo_url", i->repo_url);
    set_text(o, "lease", hidden ? NULL : i->lease);
    json_object_set_new(o, "metadata", decode_metadata(i->metadata));
    json_object_set_new(o, "limits", describe_limits(&i->limits));
    json_object_set_new(o, "from_pool", json_boolean(i->from_pool));
}

static void
set_life(Json *o, const BoxInfo *i, const Api *api)
{
    gint64 uptime_s = i->uptime_ms / 1000;

    set_text(o, "state", box_state_name(i->state, i->busy));
    set_text(o, "status", box_status_name(i->state));
    set_text(o, "reason", i->reason);
    json_object_set_new(o, "degraded", describe_degraded(i->degraded));
    json_object_set_new(o, "executions", json_integer((json_int_t)i->executions));
    json_object_set_new(o, "uptime", json_integer(uptime_s));
    json_object_set_new(o, "cost", json_real(cost_of(api, uptime_s)));
    json_object_set_new(o, "timeout", json_integer(i->lifetime_ms / 1000));
    json_object_set_new(o, "idle_timeout", json_integer(i->idle_ms / 1000));
    json_set_time(o, "created_at", i->created_us);
    json_set_time(o, "updated_at", i->updated_us);
    json_set_time(o, "last_used_at", i->last_used_us);
    json_set_time(o, "expires_at", i->expires_us);
    json_set_time(o, "ended_at", i->ended_us);
}

Json *
box_describe(const Api *api, const Box *box)
{
    Json *o = json_object();
    BoxInfo info;

    box_info(box, &info);
    g_autofree char *service_id = g_strconcat("sb-", info.id, NULL);
    set_text(o, "id", info.uuid);
    set_text(o, "e2b_id", info.id);
    set_text(o, "sandbox_id", service_id);
    set_origin(o, &info);
    set_life(o, &info, api);
    return o;
}

/* ---- rows ---- */

static gint64
read_time_us(Json *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    g_autoptr(GDateTime) time = text != NULL ? g_date_time_new_from_iso8601(text, NULL) : NULL;

    return time != NULL ? g_date_time_to_unix(time) * G_USEC_PER_SEC + g_date_time_get_microsecond(time) : 0;
}

static gint64
number_of(Json *row, const char *name)
{
    return json_integer_value(json_object_get(row, name));
}

static Json *
describe_row_limits(Json *limits)
{
    KeeperLimits l = {
        .memory_bytes = (guint64)number_of(limits, "memory_bytes"),
        .disk_bytes = (guint64)number_of(limits, "disk_bytes"),
        .inodes = (guint32)number_of(limits, "inodes"),
        .pids = (guint32)number_of(limits, "pids"),
        .cpu_milli = (guint32)number_of(limits, "cpu_milli"),
    };

    return describe_limits(&l);
}

static void
set_row_life(Json *o, Json *row, const Api *api)
{
    gint64 uptime_s = (read_time_us(row, "ended_at") - read_time_us(row, "created_at")) / G_USEC_PER_SEC;
    const char *lease = json_string_value(json_object_get(row, "lease"));

    if (lease != NULL && g_str_has_prefix(lease, LEASE_OF_CALL))
        json_object_set_new(o, "lease", json_null());
    json_object_set_new(o, "uptime", json_integer(MAX(uptime_s, 0)));
    json_object_set_new(o, "cost", json_real(cost_of(api, MAX(uptime_s, 0))));
    json_object_set_new(o, "timeout", json_integer(number_of(row, "lifetime_ms") / 1000));
    json_object_set_new(o, "idle_timeout", json_integer(number_of(row, "idle_ms") / 1000));
    json_object_set(o, "expires_at", json_object_get(row, "ended_at"));
    json_object_set_new(o, "limits", describe_row_limits(json_object_get(row, "limits")));
}

Json *
box_describe_row(const Api *api, Json *row)
{
    static const char *const same[] = {
        "id",         "e2b_id",     "name",         "template", "template_hash", "owner",
        "agent_id",   "task_id",    "squad_id",     "repo_url", "lease",         "metadata",
        "from_pool",  "state",      "status",       "reason",   "degraded",      "executions",
        "created_at", "updated_at", "last_used_at", "ended_at",
    };
    Json *o = json_object();
    g_autofree char *service_id = g_strconcat("sb-", json_string_value(json_object_get(row, "e2b_id")), NULL);

    set_text(o, "sandbox_id", service_id);
    for (size_t i = 0; i < G_N_ELEMENTS(same); i++)
        json_object_set(o, same[i], json_object_get(row, same[i]));
    set_row_life(o, row, api);
    return o;
}

/* ---- the service's form ---- */

Json *
box_describe_service(Json *sandbox, bool in_list)
{
    static const char *const names[][2] = {
        {"sandbox_id", "sandbox_id"}, {"status", "state"},          {"environment", "template"},
        {"uptime", "uptime"},         {"executions", "executions"}, {"cost", "cost"},
        {"created_at", "created_at"}, {"expires_at", "expires_at"}, {"timeout", "timeout"},
        {"degraded", "degraded"},     {"reason", "reason"},
    };
    enum { IN_LIST = 6 };
    Json *o = json_object();

    for (size_t i = 0; i < (in_list ? IN_LIST : G_N_ELEMENTS(names)); i++) {
        Json *value = json_object_get(sandbox, names[i][1]);

        if (value != NULL && !(json_is_null(value) && i == G_N_ELEMENTS(names) - 1))
            json_object_set(o, names[i][0], value);
    }
    return o;
}

Json *
run_end_describe(const Run *run)
{
    const RunEnd *end = run_end(run);
    const TestReport *report = run_test_report(run);
    g_autofree char *message = run_end_dup_message(end);
    Json *o = json_pack("{s:s, s:i}", "reason", run_reason_name(end->reason), "exit_code",
                        run_end_exit_code(end));

    if (end->reason == RUN_SIGNAL)
        json_object_set_new(o, "signal", json_integer(end->code));
    if (message != NULL)
        json_object_set_new(o, "message", json_string(message));
    json_object_set_new(o, "duration_ms", json_integer((json_int_t)(end->duration_us / 1000)));
    json_object_set_new(o, "cpu_ms", json_integer((json_int_t)(end->cpu_us / 1000)));
    json_object_set_new(o, "max_rss_bytes", json_integer((json_int_t)end->max_rss_bytes));
    json_object_set_new(o, "stdout_bytes", json_integer((json_int_t)end->out_bytes));
    json_object_set_new(o, "stderr_bytes", json_integer((json_int_t)end->err_bytes));
    if (report != NULL)
        json_object_set_new(o, "test_results", report_to_json(report));
    return o;
}
