/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/door-scope.h"

bool
door_scope_add(Cli *cli, Json *body)
{
    static const char *const scopes[] = {"box", "template", "squad"};
    const char *found = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(scopes); i++) {
        const char *id = cli_option(cli, scopes[i]);

        if (id == NULL)
            continue;
        if (found != NULL) {
            cli_fail(cli, EXIT_CODE_USAGE, "--%s and --%s cannot be given together", found, scopes[i]);
            return false;
        }
        found = scopes[i];
        json_object_set_new(body, "scope", json_string(found));
        json_object_set_new(body, "scope_id", json_string(id));
    }
    return true;
}

char *
door_scope_shown(Json *body)
{
    const char *scope = json_string_value(json_object_get(body, "scope"));

    return scope == NULL
               ? g_strdup("every box")
               : g_strdup_printf("%s %s", scope, json_string_value(json_object_get(body, "scope_id")));
}
