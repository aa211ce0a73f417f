/* SPDX-License-Identifier: Apache-2.0 */
#include "api/scope.h"

#include <string.h>

#include "base/err.h"

static const struct {
    const char *name;
    Scope scope;
} names[] = {{"admin", SCOPE_ADMIN}, {"box", SCOPE_BOX}, {"read", SCOPE_READ}};

char *
scopes_format(Scopes scopes)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if ((scopes & names[i].scope) != 0)
            g_string_append_printf(text, "%s%s", text->len > 0 ? "," : "", names[i].name);
    }
    return g_string_free(text, FALSE);
}

static bool
parse_one(const char *word, Scopes *scopes)
{
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if (strcmp(word, names[i].name) == 0) {
            *scopes |= names[i].scope;
            return true;
        }
    }
    return false;
}

bool
scopes_parse(const char *text, Scopes *ret_scopes, GError **error)
{
    g_auto(GStrv) words = g_strsplit(text, ",", (int)G_N_ELEMENTS(names) + 1);
    Scopes scopes = 0;

    for (char **word = words; *word != NULL; word++) {
        if (!parse_one(g_strstrip(*word), &scopes))
            return err_set(error, ERR_INVALID, "unknown scope '%.32s': use admin, box or read", *word);
    }
    if (scopes == 0)
        return err_set(error, ERR_INVALID, "a key needs at least one scope: admin, box or read");
    *ret_scopes = scopes;
    return true;
}
