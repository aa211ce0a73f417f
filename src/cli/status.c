/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/commands.h"
#include "cli/remote.h"

static OutStyle
style_of_status(const char *value)
{
    return strcmp(value, "ok") == 0 ? OUT_GOOD : OUT_WARN;
}

static char *
format_uptime(gint64 s)
{
    if (s >= 24 * 3600)
        return g_strdup_printf("%dd %dh", (int)(s / 86400), (int)(s / 3600 % 24));
    if (s >= 3600)
        return g_strdup_printf("%dh %dm", (int)(s / 3600), (int)(s / 60 % 60));
    return g_strdup_printf("%dm %ds", (int)(s / 60), (int)(s % 60));
}

/* A number of the statistics, under a name of its own. */
static void
set_number(Json *flat, const char *name, const Json *stats, const char *part, const char *member)
{
    Json *value = json_object_get(json_object_get(stats, part), member);

    if (value != NULL)
        json_object_set(flat, name, value);
}

static void
show_text(Out *out, const char *address, const Json *health, const Json *stats)
{
    static const OutColumn fields[] = {
        {"status", "Status", style_of_status},
        {"version", "Version"},
        {"address", "Address"},
        {"uptime", "Uptime"},
        {"connections", "Connections"},
        {"streams", "Streams"},
        {"writes_waiting", "Writes waiting"},
        {"seq", "Last event"},
        {NULL},
    };
    g_autofree char *uptime = format_uptime(json_integer_value(json_object_get(health, "uptime_s")));
    g_autoptr(Json)
        flat = json_pack("{s:O, s:O, s:s, s:s}", "status", json_object_get(health, "status"), "version",
                         json_object_get(health, "version"), "address", address, "uptime", uptime);
    const Json *degraded = json_object_get(health, "degraded");
    size_t i;
    Json *part;

    set_number(flat, "connections", stats, "http", "connections");
    set_number(flat, "streams", stats, "http", "streams");
    set_number(flat, "writes_waiting", stats, "store", "writes_waiting");
    set_number(flat, "seq", stats, "events", "last_seq");
    out_fields(out, fields, flat);
    json_array_foreach(degraded, i, part)
    {
        out_text(out, OUT_WARN, "%s: %s\n", json_string_value(json_object_get(part, "part")),
                 json_string_value(json_object_get(part, "reason")));
    }
}

static void
show(Out *out, const char *reached, Json *health, Json *stats)
{
    const char *told = json_string_value(json_object_get(stats, "address"));
    g_autoptr(Json) all = json_copy(health);

    json_object_update(all, stats);
    json_object_set_new(all, "address", json_string(told != NULL ? told : reached));
    json_object_set_new(all, "reached_at", json_string(reached));
    out_json(out, all);
    if (out_format(out) == OUT_TEXT)
        show_text(out, told != NULL ? told : reached, health, stats);
}

/* Any of these may be missing in what a stranger sends. */
static bool
is_health(const Json *health)
{
    return g_strcmp0(json_string_value(json_object_get(health, "service")), "coop") == 0 &&
           json_is_string(json_object_get(health, "status")) &&
           json_is_string(json_object_get(health, "version"));
}

/* A caller who may not read the numbers still learns whether the server is well. */
static ExitCode
get_stats(Cli *cli, Remote *remote, Json **ret_stats)
{
    RemoteCall call = REMOTE_CALL_INIT;
    g_auto(RemoteReply) reply = {0};

    if (!remote_has_key(remote)) {
        out_notice(cli_out(cli), "without a key only the health is shown");
        return EXIT_CODE_OK;
    }
    call.path = "/api/v1/stats";
    remote_try(remote, &call, &reply);
    *ret_stats = g_steal_pointer(&reply.body);
    if (reply.status == 403) {
        out_notice(cli_out(cli), "only the health is shown: %s", reply.message);
        g_clear_pointer(ret_stats, json_decref);
        return EXIT_CODE_OK;
    }
    return reply.message != NULL ? cli_fail(cli, reply.code, "%s", reply.message) : EXIT_CODE_OK;
}

static ExitCode
run(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) health = NULL, stats = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", "/health", NULL, &health);
    if (code != EXIT_CODE_OK)
        return code;
    if (!is_health(health))
        return cli_fail(cli, EXIT_CODE_UNREACHABLE, "what answers at %s is no Coop server",
                        remote_address(remote));
    code = get_stats(cli, remote, &stats);
    if (code != EXIT_CODE_OK)
        return code;
    g_autoptr(Json) none = json_object();
    show(cli_out(cli), remote_address(remote), health, stats != NULL ? stats : none);
    return strcmp(json_string_value(json_object_get(health, "status")), "ok") == 0 ? EXIT_CODE_OK
                                                                                   : EXIT_CODE_FAILED;
}

const Command command_status = {
    .name = "status",
    .summary = "Show whether the server is well",
    .details =
        "Exit code 0: it is well; 1: a part of it works less well than it should; 3: no server answered.",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run,
};
