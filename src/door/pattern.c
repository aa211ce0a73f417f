/* SPDX-License-Identifier: Apache-2.0 */
#include "door/pattern.h"

#include <string.h>

#include "base/err.h"

/* Names under which anybody can have a place: a wildcard over one lets everybody in. */
static const char *const shared_suffixes[] = {
    "ac.uk",
    "akamaihd.net",
    "akamaized.net",
    "amazonaws.com",
    "appspot.com",
    "azureedge.net",
    "azurefd.net",
    "azurewebsites.net",
    "b-cdn.net",
    "blob.core.windows.net",
    "cloudapp.net",
    "cloudflare.net",
    "cloudfront.net",
    "co.jp",
    "co.uk",
    "com.au",
    "com.br",
    "edgekey.net",
    "edgesuite.net",
    "fastly.net",
    "firebaseapp.com",
    "fly.dev",
    "github.io",
    "gitlab.io",
    "googleapis.com",
    "googleusercontent.com",
    "herokuapp.com",
    "netlify.app",
    "ngrok.io",
    "onrender.com",
    "org.uk",
    "pages.dev",
    "r2.dev",
    "run.app",
    "trycloudflare.com",
    "vercel.app",
    "web.app",
    "windows.net",
    "workers.dev",
};

/* The name of a pattern: without the star, and a v6 address in brackets as names have it. */
static bool
read_name(const char *pattern, DoorName *ret, GError **error)
{
    bool bare_v6 = pattern[0] != '[' && strchr(pattern, ':') != strrchr(pattern, ':');
    g_autofree char *bracketed = bare_v6 ? g_strdup_printf("[%s]", pattern) : NULL;
    DoorName name;

    if (!door_name_read(bare_v6 ? bracketed : pattern, G_MAXUINT16, &name, error))
        return false;
    if (name.port != G_MAXUINT16)
        return err_set(error, ERR_INVALID, "a pattern has no port; the rule has 'ports'");
    *ret = name;
    return true;
}

bool
policy_pattern_check(const char *pattern, GError **error)
{
    DoorName name;
    bool wild = g_str_has_prefix(pattern, "*.");

    if (strcmp(pattern, "*") == 0)
        return true;
    if (!read_name(wild ? pattern + 2 : pattern, &name, error)) {
        g_prefix_error(error, "pattern '%s': ", pattern);
        return false;
    }
    if (wild && name.is_address)
        return err_set(error, ERR_INVALID, "pattern '%s': an address has no wildcard", pattern);
    return true;
}

char *
pattern_canonical(const char *pattern)
{
    bool wild = g_str_has_prefix(pattern, "*.");
    DoorName name;
    bool ok = read_name(wild ? pattern + 2 : pattern, &name, NULL);

    g_assert(ok); /* was checked */
    return g_strconcat(wild ? "*." : "", name.host, NULL);
}

const char *
policy_pattern_warning(const char *pattern)
{
    DoorName name;

    if (strcmp(pattern, "*") == 0)
        return "every name is allowed: the box can send anything anywhere";
    if (!g_str_has_prefix(pattern, "*.") || !read_name(pattern + 2, &name, NULL))
        return NULL;
    if (strchr(name.host, '.') == NULL)
        return "this is a whole top-level domain: anybody can have a name there";
    for (size_t i = 0; i < G_N_ELEMENTS(shared_suffixes); i++) {
        if (strcmp(name.host, shared_suffixes[i]) == 0)
            return "anybody can have a name there: name the hosts that are meant";
    }
    return NULL;
}
