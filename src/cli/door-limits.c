/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/door-scope.h"
#include "cli/number.h"
#include "cli/remote.h"

static const char limits_path[] = "/api/v1/door/limits";
static const char no_bound[] = "none", inherited[] = "inherit";

static const struct {
    const char *option, *member;
    SettingType type;
} limits[] = {
    {"bytes-per-day", "bytes_per_day", SETTING_SIZE},
    {"bytes-per-second", "bytes_per_s", SETTING_SIZE},
    {"requests-per-minute", "requests_per_min", SETTING_INT},
    {"lookups-per-minute", "lookups_per_min", SETTING_INT},
};

/* ---- setting ---- */

static bool
add_limits(Cli *cli, Json *body, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
        const char *text = cli_option(cli, limits[i].option);
        gint64 max = limits[i].type == SETTING_SIZE ? G_MAXINT64 : G_MAXINT32, value = 0;

        if (text == NULL)
            continue;
        if (strcmp(text, inherited) == 0) {
            json_object_set_new(body, limits[i].member, json_null());
            continue;
        }
        if (strcmp(text, no_bound) != 0 &&
            !cli_read_number(cli, limits[i].option, limits[i].type, 1, max, &value, error))
            return false;
        json_object_set_new(body, limits[i].member, json_integer(value));
    }
    return true;
}

/* ---- showing ---- */

static char *
shown(SettingType type, const Json *value, const char *if_zero)
{
    gint64 n = json_integer_value(value);

    if (value == NULL)
        return g_strdup("");
    if (n == 0)
        return g_strdup(if_zero);
    return type == SETTING_SIZE ? g_format_size_full((guint64)n, G_FORMAT_SIZE_IEC_UNITS)
                                : g_strdup_printf("%" G_GINT64_FORMAT, n);
}

static void
add_row(Json *rows, const char *scope, const Json *said, const char *if_zero)
{
    Json *row = json_pack("{s:s}", "scope", scope);

    for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
        g_autofree char *text = shown(limits[i].type, json_object_get(said, limits[i].member), if_zero);

        json_object_set_new(row, limits[i].member, json_string(text));
    }
    if (json_object_get(said, "bytes_today") != NULL) {
        g_autofree char *used = shown(SETTING_SIZE, json_object_get(said, "bytes_today"), "0");

        json_object_set_new(row, "bytes_today", json_string(used));
    }
    json_array_append_new(rows, row);
}

static void
add_rows(Json *rows, const Json *found, const char *box)
{
    const Json *scopes = json_object_get(found, "scopes");

    if (box != NULL) {
        add_row(rows, box, found, no_bound);
        return;
    }
    for (size_t i = 0; i < json_array_size(scopes); i++) {
        Json *one = json_array_get(scopes, i);
        g_autofree char *scope = door_scope_shown(one);

        add_row(rows, g_str_has_prefix(scope, "server") ? "server" : scope, json_object_get(one, "limits"),
                no_bound);
    }
    add_row(rows, "usual", json_object_get(found, "usual"), no_bound);
    add_row(rows, "at most", json_object_get(found, "max"), no_bound);
}

static ExitCode
show(Cli *cli, const Json *found, const char *box)
{
    static const OutColumn columns[] = {{"scope", "SCOPE"},
                                        {"bytes_today", "TODAY"},
                                        {"bytes_per_day", "A DAY"},
                                        {"bytes_per_s", "A SECOND"},
                                        {"requests_per_min", "REQUESTS/MIN"},
                                        {"lookups_per_min", "LOOKUPS/MIN"},
                                        {NULL}};
    g_autoptr(Json) rows = json_array();

    if (out_format(cli_out(cli)) == OUT_JSON) {
        out_json(cli_out(cli), found);
        return EXIT_CODE_OK;
    }
    add_rows(rows, found, box);
    out_table(cli_out(cli), columns, rows);
    return EXIT_CODE_OK;
}

static char *
path_for(const char *box)
{
    g_autofree char *escaped = box != NULL ? g_uri_escape_string(box, NULL, FALSE) : NULL;

    return escaped != NULL ? g_strconcat(limits_path, "?box=", escaped, NULL) : g_strdup(limits_path);
}

static ExitCode
run_limits(Cli *cli)
{
    g_autoptr(Json) body = json_object();
    g_autoptr(Json) change = json_object();
    g_autoptr(Json) found = NULL;
    g_autoptr(Remote) remote = NULL;
    g_autoptr(GError) error = NULL;

    if (!add_limits(cli, change, &error))
        return cli_fail(cli, EXIT_CODE_USAGE, "%s", error->message);
    if (!door_scope_add(cli, body))
        return EXIT_CODE_USAGE;
    bool sets = json_object_size(change) > 0;
    const char *box = sets ? NULL : cli_option(cli, "box");
    g_autofree char *path = path_for(box);
    ExitCode code = remote_open(cli, &remote);

    json_object_update(body, change);
    if (code == EXIT_CODE_OK)
        code = remote_call(remote, sets ? "PATCH" : "GET", path, sets ? body : NULL, &found);
    return code == EXIT_CODE_OK ? show(cli, found, box) : code;
}

static const CliOption limits_options[] = {
    {.name = "bytes-per-day", .value = "SIZE", .help = "both ways together, such as 64GiB"},
    {.name = "bytes-per-second", .value = "SIZE", .help = "both ways together"},
    {.name = "requests-per-minute", .value = "N", .help = "connections to elsewhere and plain requests"},
    {.name = "lookups-per-minute", .value = "N", .help = "names looked up"},
    DOOR_SCOPE_OPTIONS,
    {NULL},
};

const Command door_limits = {
    .name = "limits",
    .summary = "Show or change how much boxes may send, fetch and ask for",
    .details =
        "Each limit is that of the nearest scope that has it: box, squad, template, server. 'none' lifts "
        "one,\n"
        "'inherit' takes one of a scope back. With --box and nothing to set: what is true for that box.",
    .options = limits_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_limits,
};
