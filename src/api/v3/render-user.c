/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/render.h"
#include "forge/people.h"
#include "http/url.h"

static Json *
user_json(const V3Place *place, const char *login, gint64 id, const char *type)
{
    g_autofree char *name = url_encode_path(login);
    g_autofree char *url = g_strdup_printf("%s/users/%s", place->root, name);
    g_autofree char *html = g_strdup_printf("%s/%s", place->server, name);
    g_autofree char *repos = g_strdup_printf("%s/users/%s/repos", place->root, name);
    g_autofree char *node = g_strdup_printf("%s-%" G_GINT64_FORMAT, type, id);

    return json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "login", login, "id",
                     (json_int_t)id, "node_id", node, "avatar_url", "", "gravatar_id", "", "url", url,
                     "html_url", html, "repos_url", repos, "type", type, "site_admin", false);
}

Json *
v3_user(const V3Place *place, const Json *person)
{
    if (!json_is_object(person))
        return json_null();
    return user_json(place, json_string_value(json_object_get(person, "login")),
                     json_integer_value(json_object_get(person, "id")),
                     json_string_value(json_object_get(person, "type")));
}

Json *
v3_owner(const V3Place *place, const char *owner)
{
    g_autofree char *folded = g_ascii_strdown(owner, -1);
    g_autofree char *actor = g_strconcat("owner:", folded, NULL);

    return user_json(place, owner, person_id(actor), "Organization");
}
