/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/box-stats.h"

#include <string.h>

#include "base/clock.h"
#include "cli/box-call.h"

enum { PERCENT = 100 };

const OutColumn box_stats_columns[] = {
    {"sandbox_id", "SANDBOX"},
    {"name", "NAME"},
    {"state", "STATE"},
    {"cpu", "CPU"},
    {"memory", "MEMORY"},
    {"disk", "DISK"},
    {"processes", "PROCESSES"},
    {"uptime", "UPTIME"},
    {NULL},
};

void
box_sample_clear(BoxSample *sample)
{
    g_clear_pointer(&sample->rows, json_decref);
}

static const Json *
row_of(const BoxSample *sample, const char *id)
{
    size_t i;
    Json *row;

    if (sample == NULL)
        return NULL;
    json_array_foreach(sample->rows, i, row)
    {
        if (g_strcmp0(json_string_value(json_object_get(row, "sandbox_id")), id) == 0)
            return row;
    }
    return NULL;
}

static void
set_bytes(Json *row, const char *name, const Json *stats, const char *member)
{
    const Json *value = json_object_get(stats, member);
    g_autofree char *text = g_format_size_full((guint64)json_integer_value(value), G_FORMAT_SIZE_IEC_UNITS);

    json_object_set_new(row, name, json_is_integer(value) ? json_string(text) : json_null());
}

/* As a share of one core. */
static void
set_cpu(Json *row, const Json *stats, const Json *old, gint64 elapsed_us)
{
    json_int_t now = json_integer_value(json_object_get(stats, "cpu_us"));
    char text[32] = "-";

    json_object_set_new(row, "cpu_us", json_integer(now));
    if (old != NULL && elapsed_us > 0)
        g_snprintf(text, sizeof text, "%.1f%%",
                   (double)(now - json_integer_value(json_object_get(old, "cpu_us"))) * PERCENT /
                       (double)elapsed_us);
    json_object_set_new(row, "cpu", json_string(text));
}

static bool
add_row(Remote *remote, const Json *box, const BoxSample *before, BoxSample *sample)
{
    static const char *const copied[] = {"sandbox_id", "name", "state", "uptime"};
    const char *id = json_string_value(json_object_get(box, "sandbox_id"));
    g_autofree char *path = box_path(id != NULL ? id : "", "/stats");
    g_auto(RemoteReply) reply = {0};
    RemoteCall call = REMOTE_CALL_INIT;

    call.path = path;
    remote_try(remote, &call, &reply);
    if (reply.message != NULL)
        return reply.status != 0;
    Json *row = json_object();
    for (size_t i = 0; i < G_N_ELEMENTS(copied); i++)
        json_object_set(row, copied[i], json_object_get(box, copied[i]));
    set_cpu(row, reply.body, row_of(before, id), before != NULL ? sample->at_us - before->at_us : 0);
    set_bytes(row, "memory", reply.body, "memory_bytes");
    set_bytes(row, "disk", reply.body, "disk_bytes");
    json_object_set(row, "processes", json_object_get(reply.body, "processes"));
    json_array_append_new(sample->rows, row);
    return true;
}

static bool
is_wanted(const Json *box, const char *const *only, guint n)
{
    const char *id = json_string_value(json_object_get(box, "sandbox_id"));

    for (guint i = 0; i < n; i++) {
        if (g_strcmp0(id, only[i]) == 0 ||
            (id != NULL && strcmp(id + MIN(strlen("sb-"), strlen(id)), only[i]) == 0))
            return true;
    }
    return n == 0;
}

ExitCode
box_sample(Remote *remote, const char *const *only, guint n, const BoxSample *before, BoxSample *ret_sample)
{
    g_autoptr(Json) body = NULL;
    ExitCode code = remote_call(remote, "GET", "/api/v1/sandboxes", NULL, &body);
    size_t i;
    Json *box;

    *ret_sample = (BoxSample){.rows = json_array(), .at_us = clock_mono_us()};
    if (code != EXIT_CODE_OK)
        return code;
    json_array_foreach(json_object_get(body, "sandboxes"), i, box)
    {
        if (is_wanted(box, only, n) && !add_row(remote, box, before, ret_sample))
            break; /* the server is gone: the next call says so */
    }
    return EXIT_CODE_OK;
}
