/* SPDX-License-Identifier: Apache-2.0 */
#include "api/origin.h"

#include <string.h>

static const char *const own_names[] = {"localhost", "127.0.0.1", "[::1]"};

struct OriginRules {
    char **hosts;
    char **origins;
};

OriginRules *
origin_rules_new(const char *const *hosts, const char *const *origins)
{
    static const char *const none[] = {NULL};
    OriginRules *r = g_new0(OriginRules, 1);

    r->hosts = g_strdupv((char **)(guintptr)(hosts != NULL ? hosts : none));
    r->origins = g_strdupv((char **)(guintptr)(origins != NULL ? origins : none));
    return r;
}

void
origin_rules_free(OriginRules *rules)
{
    if (rules == NULL)
        return;
    g_strfreev(rules->hosts);
    g_strfreev(rules->origins);
    g_free(rules);
}

/* Splits "name:port"; an IPv6 literal keeps its brackets.  No port: -1.  A port that is not
 * one to five digits: -2. */
static size_t
split_host(const char *host, int *ret_port)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    const char *colon = strchr(end != NULL ? end : host, ':');

    if (colon == NULL) {
        *ret_port = -1;
        return strlen(host);
    }
    size_t digits = strspn(colon + 1, "0123456789");
    bool good = digits >= 1 && digits <= 5 && colon[1 + digits] == '\0';
    *ret_port = good ? (int)g_ascii_strtoll(colon + 1, NULL, 10) : -2;
    return (size_t)(colon - host);
}

static bool
name_is(const char *host, size_t n, const char *name)
{
    return strlen(name) == n && g_ascii_strncasecmp(host, name, n) == 0;
}

bool
origin_host_allowed(const OriginRules *rules, const char *host, guint16 port)
{
    int given;
    size_t n = split_host(host, &given);
    /* Browsers leave the port out only where it is the scheme's own. */
    bool same_port = port == 0 ? given != -2 : given == port || (given == -1 && (port == 80 || port == 443));

    if (same_port) {
        for (size_t i = 0; i < G_N_ELEMENTS(own_names); i++) {
            if (name_is(host, n, own_names[i]))
                return true;
        }
    }
    for (char **h = rules->hosts; *h != NULL; h++) {
        if (g_ascii_strcasecmp(host, *h) == 0)
            return true;
        if (same_port && name_is(host, n, *h))
            return true;
    }
    return false;
}

/* What stands before the first dot. */
static bool
read_label(const char *label, size_t n, guint16 *ret_port, char ret_id[ID_BOX_LEN + 1])
{
    size_t digits = strspn(label, "0123456789");
    gint64 port = digits >= 1 && digits <= 5 && label[0] != '0' ? g_ascii_strtoll(label, NULL, 10) : 0;
    char id[ID_BOX_LEN + 1] = {0};

    if (port < 1 || port > G_MAXUINT16 || n != digits + 1 + ID_BOX_LEN || label[digits] != '-')
        return false;
    for (size_t i = 0; i < ID_BOX_LEN; i++)
        id[i] = g_ascii_tolower(label[digits + 1 + i]);
    if (!id_is_box(id))
        return false;
    *ret_port = (guint16)port;
    memcpy(ret_id, id, sizeof id);
    return true;
}

bool
origin_is_preview(const OriginRules *rules, const char *host, guint16 port, guint16 *ret_port,
                  char ret_id[ID_BOX_LEN + 1])
{
    const char *dot = strchr(host, '.');
    int given;

    if (dot == NULL || dot[1] == '[' || !origin_host_allowed(rules, dot + 1, port))
        return false;
    g_autofree char *name = g_strndup(dot + 1, split_host(dot + 1, &given));
    return !g_hostname_is_ip_address(name) && read_label(host, (size_t)(dot - host), ret_port, ret_id);
}

static bool
is_own_page(const char *origin, const char *host)
{
    const char *rest = g_str_has_prefix(origin, "http://")    ? origin + 7
                       : g_str_has_prefix(origin, "https://") ? origin + 8
                                                              : NULL;

    return rest != NULL && g_ascii_strcasecmp(rest, host) == 0;
}

OriginKind
origin_kind(const OriginRules *rules, const char *origin, const char *host)
{
    if (origin == NULL)
        return ORIGIN_NONE;
    if (is_own_page(origin, host))
        return ORIGIN_SELF;
    for (char **o = rules->origins; *o != NULL; o++) {
        if (strcmp(origin, *o) == 0)
            return ORIGIN_LISTED;
    }
    return ORIGIN_FOREIGN;
}

bool
origin_has_listed(const OriginRules *rules)
{
    return rules->origins[0] != NULL;
}
