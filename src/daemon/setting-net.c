/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/setting-net.h"

#include <arpa/inet.h>
#include <string.h>

enum { NET_PORT_MAX = 65535, NET_NAME_MAX = 253, NET_LABEL_MAX = 63 };

/* Splits "HOST:PORT" or "[V6]:PORT" at the last colon outside brackets; without a port
 * `ret_port` is -1. */
static bool
split_port(const char *text, char **ret_host, int *ret_port)
{
    const char *bracket = strrchr(text, ']');
    const char *colon = strrchr(bracket != NULL ? bracket : text, ':');
    guint64 port;

    *ret_port = -1;
    if (colon != NULL) {
        if (strlen(colon + 1) > 5 || !g_ascii_string_to_unsigned(colon + 1, 10, 0, NET_PORT_MAX, &port, NULL))
            return false;
        *ret_port = (int)port;
    }
    *ret_host = colon != NULL ? g_strndup(text, (gsize)(colon - text)) : g_strdup(text);
    return true;
}

/* The canonical text of an address, in brackets if it is an IPv6 one. */
static char *
canonical_ip(const char *host)
{
    char text[INET6_ADDRSTRLEN];
    size_t len = strlen(host);
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, host, &v4) == 1)
        return g_strdup(inet_ntop(AF_INET, &v4, text, sizeof text));
    if (len < 2 || host[0] != '[' || host[len - 1] != ']')
        return NULL;
    g_autofree char *inner = g_strndup(host + 1, len - 2);
    if (inet_pton(AF_INET6, inner, &v6) != 1)
        return NULL;
    return g_strdup_printf("[%s]", inet_ntop(AF_INET6, &v6, text, sizeof text));
}

bool
net_parse_listen(const char *text, GPtrArray *items)
{
    g_autofree char *host = NULL;
    int port;

    if (!split_port(text, &host, &port) || port < 0)
        return false;
    bool local = g_ascii_strcasecmp(host, "localhost") == 0;
    if (local || strcmp(host, "*") == 0) {
        g_ptr_array_add(items, g_strdup_printf("%s:%d", local ? "127.0.0.1" : "0.0.0.0", port));
        g_ptr_array_add(items, g_strdup_printf("%s:%d", local ? "[::1]" : "[::]", port));
        return true;
    }
    g_autofree char *ip = canonical_ip(host);
    if (ip == NULL)
        return false;
    g_ptr_array_add(items, g_strdup_printf("%s:%d", ip, port));
    return true;
}

static bool
is_host_name(const char *name)
{
    size_t label = 0;

    if (name[0] == '\0' || strlen(name) > NET_NAME_MAX)
        return false;
    for (const char *p = name; *p != '\0'; p++) {
        if (*p == '.' ? label == 0 : !(g_ascii_isalnum(*p) || *p == '-' || *p == '_'))
            return false;
        label = *p == '.' ? 0 : label + 1;
        if (label > NET_LABEL_MAX)
            return false;
    }
    return label > 0 && name[0] != '-';
}

static char *
canonical_host(const char *host)
{
    char *ip = canonical_ip(host);

    if (ip != NULL)
        return ip;
    return is_host_name(host) ? g_ascii_strdown(host, -1) : NULL;
}

bool
net_parse_host(const char *text, GPtrArray *items)
{
    g_autofree char *host = NULL;
    int port;

    if (!split_port(text, &host, &port) || port == 0)
        return false;
    g_autofree char *canonical = canonical_host(host);
    if (canonical == NULL)
        return false;
    g_ptr_array_add(items, port > 0 ? g_strdup_printf("%s:%d", canonical, port) : g_strdup(canonical));
    return true;
}

/* A browser leaves the scheme's own port out of the Origin header. */
static bool
is_default_port(const char *scheme, int port)
{
    return port < 0 || port == (strcmp(scheme, "https") == 0 ? 443 : 80);
}

bool
net_parse_origin(const char *text, GPtrArray *items)
{
    const char *after = strstr(text, "://");
    g_autofree char *host = NULL;
    int port;

    if (after == NULL)
        return false;
    g_autofree char *raw = g_strndup(text, (gsize)(after - text));
    g_autofree char *scheme = g_ascii_strdown(raw, -1);
    if ((strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) ||
        !split_port(after + 3, &host, &port) || port == 0)
        return false;
    g_autofree char *canonical = canonical_host(host);
    if (canonical == NULL)
        return false;
    g_ptr_array_add(items, is_default_port(scheme, port)
                               ? g_strdup_printf("%s://%s", scheme, canonical)
                               : g_strdup_printf("%s://%s:%d", scheme, canonical, port));
    return true;
}

bool
net_parse_url(const char *text, const char *schemes, GPtrArray *items)
{
    g_autoptr(GUri) uri = g_uri_parse(text, G_URI_FLAGS_HAS_PASSWORD | G_URI_FLAGS_ENCODED, NULL);
    g_auto(GStrv) allowed = g_strsplit(schemes, ",", -1);

    if (uri == NULL || !g_strv_contains((const char *const *)allowed, g_uri_get_scheme(uri)) ||
        g_uri_get_host(uri) == NULL || g_uri_get_host(uri)[0] == '\0')
        return false;
    g_ptr_array_add(items, g_strdup(text));
    return true;
}

/* SQLAlchemy writes a relative file as sqlite:///name and an absolute one as sqlite:////name;
 * both, and the plain sqlite:FILE, become sqlite:FILE. */
static bool
parse_sqlite(const char *file, GPtrArray *items)
{
    if (g_str_has_prefix(file, "///"))
        file += 3;
    else if (g_str_has_prefix(file, "//"))
        return false;
    if (file[0] == '\0' || file[0] == ':' || strchr(file, '?') != NULL || g_str_has_suffix(file, "/"))
        return false;
    g_auto(GStrv) parts = g_strsplit(file, "/", -1);
    if (g_strv_contains((const char *const *)parts, ".."))
        return false;
    g_ptr_array_add(items, g_strconcat("sqlite:", file, NULL));
    return true;
}

bool
net_parse_database(const char *text, GPtrArray *items)
{
    static const char *const prefixes[] = {"postgresql://", "postgres://", "postgresql+asyncpg://"};

    if (g_str_has_prefix(text, "sqlite:"))
        return parse_sqlite(text + strlen("sqlite:"), items);
    if (g_str_has_prefix(text, "sqlite+aiosqlite:"))
        return parse_sqlite(text + strlen("sqlite+aiosqlite:"), items);
    for (size_t i = 0; i < G_N_ELEMENTS(prefixes); i++) {
        if (!g_str_has_prefix(text, prefixes[i]))
            continue;
        g_autofree char *url = g_strconcat("postgresql://", text + strlen(prefixes[i]), NULL);
        if (strchr(url, ' ') != NULL ||
            !g_uri_is_valid(url, G_URI_FLAGS_HAS_PASSWORD | G_URI_FLAGS_ENCODED, NULL))
            return false;
        g_ptr_array_add(items, g_steal_pointer(&url));
        return true;
    }
    return false;
}

void
net_address(const char *canonical, struct sockaddr_storage *ret_addr, socklen_t *ret_len)
{
    g_autofree char *host = NULL;
    int port;
    bool ok = split_port(canonical, &host, &port) && port >= 0;

    *ret_addr = (struct sockaddr_storage){0};
    if (ok && host[0] == '[') {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret_addr;

        host[strlen(host) - 1] = '\0';
        *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((guint16)port)};
        ok = inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1;
        *ret_len = sizeof *v6;
    } else if (ok) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)ret_addr;

        *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((guint16)port)};
        ok = inet_pton(AF_INET, host, &v4->sin_addr) == 1;
        *ret_len = sizeof *v4;
    }
    g_assert(ok);
}

guint
net_port(const char *canonical)
{
    g_autofree char *host = NULL;
    int port;

    g_assert(split_port(canonical, &host, &port) && port >= 0);
    return (guint)port;
}

char *
net_dup_with_port(const char *canonical, guint port)
{
    const char *colon = strrchr(canonical, ':');

    g_assert(colon != NULL);
    return g_strdup_printf("%.*s:%u", (int)(colon - canonical), canonical, port);
}

char *
net_dup_without_password(const char *url)
{
    const char *start = strstr(url, "://");

    if (start == NULL)
        return g_strdup(url);
    start += strlen("://");
    GString *shown = g_string_new(NULL);
    size_t authority = strcspn(start, "/?#");
    const char *at = memrchr(start, '@', authority);
    g_string_append_len(shown, url, start - url);
    if (at != NULL) {
        const char *colon = memchr(start, ':', (size_t)(at - start));

        /* Without a colon it may be a token. */
        if (colon != NULL)
            g_string_append_len(shown, start, colon + 1 - start);
        g_string_append(shown, "***");
        start = at;
    }
    size_t plain = strcspn(start, "?#");
    g_string_append_len(shown, start, (gssize)plain);
    if (start[plain] != '\0')
        g_string_append_printf(shown, "%c***", start[plain]);
    return g_string_free(shown, FALSE);
}
