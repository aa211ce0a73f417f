/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/squad-file.h"

#include <string.h>

#include "base/err.h"
#include "cli/team-call.h"
#include "json/yaml-json.h"

enum { DEPTH_MAX = 6, VALUES_MAX = 2000, TEXT_MAX = 64 * 1024 };

static Json *
parse(const char *text, GError **error)
{
    static const YamlLimits limits = {.depth = DEPTH_MAX, .values = VALUES_MAX, .text_max = TEXT_MAX};
    static const char *const typed[] = {"config", "is_active", NULL};
    g_auto(YamlProblem) problem = {0};

    if (text[strspn(text, " \t\r\n")] == '{')
        return json_decode(text, strlen(text), error);
    g_autoptr(YamlNode) top = yaml_read(text, strlen(text), &limits, "a squad is a map", &problem);

    if (problem.message != NULL)
        err_set(error, ERR_INVALID, "line %u: %s", problem.place.line, problem.message);
    else if (top == NULL || top->kind != YAML_MAP)
        err_set(error, ERR_INVALID, "there is no squad in it");
    else
        return yaml_json(top, typed);
    return NULL;
}

Json *
squad_file_read(Cli *cli, const char *path)
{
    g_autofree char *text = team_read_file(cli, path);
    g_autoptr(GError) error = NULL;
    Json *squad = text != NULL ? parse(text, &error) : NULL;

    if (error != NULL)
        cli_fail(cli, EXIT_CODE_USAGE, "%s: %s", path, error->message);
    return squad;
}
