/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/box-spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cli/number.h"

enum { SECOND_MS = 1000, CPUS_MAX = 1024 };

static const gint64 time_max_ms = G_GINT64_CONSTANT(366) * 24 * 3600 * SECOND_MS;
static const gint64 size_max = G_GINT64_CONSTANT(1) << 44;

static bool
read_cpus(Cli *cli, Json *limits, GError **error)
{
    const char *text = cli_option(cli, "cpus");
    char *end = NULL;

    if (text == NULL)
        return true;
    double cpus = g_ascii_strtod(text, &end);
    if (end == text || *end != '\0' || !(cpus > 0 && cpus <= CPUS_MAX))
        return err_set(error, ERR_INVALID, "option --cpus: '%s' is not a number of cores", text);
    json_object_set_new(limits, "cpu", json_real(cpus));
    return true;
}

static bool
read_limits(Cli *cli, Json *body, GError **error)
{
    static const struct {
        const char *option, *member;
        SettingType type;
        gint64 unit;
    } rows[] = {
        {"memory", "memory_mb", SETTING_SIZE, 1 << 20},
        {"disk", "disk_mb", SETTING_SIZE, 1 << 20},
        {"processes", "processes", SETTING_INT, 1},
    };
    g_autoptr(Json) limits = json_object();

    if (!read_cpus(cli, limits, error))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        gint64 value = 0;

        if (!cli_read_number(cli, rows[i].option, rows[i].type, 1, size_max, &value, error))
            return false;
        if (value > 0)
            json_object_set_new(limits, rows[i].member, json_integer(MAX(value / rows[i].unit, 1)));
    }
    if (json_object_size(limits) > 0)
        json_object_set(body, "limits", limits);
    return true;
}

static bool
read_time(Cli *cli, const char *option, const char *member, Json *body, GError **error)
{
    gint64 ms = 0;

    if (!cli_read_number(cli, option, SETTING_DURATION, SECOND_MS, time_max_ms, &ms, error))
        return false;
    if (ms > 0)
        json_object_set_new(body, member, json_integer(ms / SECOND_MS));
    return true;
}

static void
copy_text(Cli *cli, const char *option, const char *member, Json *body)
{
    const char *text = cli_option(cli, option);

    if (text != NULL)
        json_object_set_new(body, member, json_string(text));
}

Json *
box_spec_body(Cli *cli, GError **error)
{
    g_autoptr(Json) body = json_object();

    copy_text(cli, "template", "template", body);
    copy_text(cli, "name", "name", body);
    copy_text(cli, "lease", "lease", body);
    if (cli_option(cli, "keep") != NULL)
        json_object_set_new(body, "keep", json_true());
    if (!read_limits(cli, body, error) || !read_time(cli, "lifetime", "timeout", body, error) ||
        !read_time(cli, "idle", "idle_timeout", body, error))
        return NULL;
    return g_steal_pointer(&body);
}

static bool
read_env(Cli *cli, Json *body, GError **error)
{
    g_autoptr(GPtrArray) given = cli_option_all(cli, "env");
    g_autoptr(Json) env = json_object();

    for (guint i = 0; i < given->len; i++) {
        const char *text = given->pdata[i], *equals = strchr(text, '=');
        g_autofree char *name = g_strndup(text, equals != NULL ? (size_t)(equals - text) : strlen(text));
        const char *value = equals != NULL ? equals + 1 : g_getenv(name);

        if (name[0] == '\0')
            return err_set(error, ERR_INVALID, "option --env: '%s' has no name", text);
        if (value == NULL)
            return err_set(error, ERR_INVALID, "option --env: there is no variable %s to pass on", name);
        if (json_object_set_new(env, name, json_string(value)) < 0)
            return err_set(error, ERR_INVALID, "option --env: the value of %s is not UTF-8", name);
    }
    if (json_object_size(env) > 0)
        json_object_set(body, "env", env);
    return true;
}

static bool
set_words(Json *body, const char *const *words, guint n, GError **error)
{
    g_autoptr(Json) argv = json_array();

    for (guint i = 0; i < n; i++) {
        if (json_array_append_new(argv, json_string(words[i])) < 0)
            return err_set(error, ERR_INVALID, "argument %u of the command is not UTF-8", i + 1);
    }
    if (n == 1)
        json_object_set(body, "command", json_array_get(argv, 0));
    else
        json_object_set(body, "argv", argv);
    return true;
}

Json *
command_spec_body(Cli *cli, const char *const *words, guint n, GError **error)
{
    g_autoptr(Json) body = json_object();

    copy_text(cli, "user", "user", body);
    copy_text(cli, "workdir", "cwd", body);
    if (cli_option(cli, "root") != NULL)
        json_object_set_new(body, "root", json_true());
    json_object_set_new(body, "timeout", json_integer(0));
    if (!read_time(cli, "timeout", "timeout", body, error) || !read_env(cli, body, error) ||
        !set_words(body, words, n, error))
        return NULL;
    return g_steal_pointer(&body);
}
