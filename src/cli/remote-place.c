/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote-place.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "daemon/home.h"
#include "daemon/setting.h"

void
remote_place_clear(RemotePlace *place)
{
    g_free(place->url);
    g_free(place->socket);
    g_free(place->key);
    g_free(place->key_origin);
    *place = (RemotePlace){0};
}

bool
remote_socket_answers(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    autofd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof addr.sun_path)
        return false;
    memcpy(addr.sun_path, path, strlen(path) + 1);
    return connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0;
}

static bool
is_on_this_machine(const char *url)
{
    g_autoptr(GUri) uri = g_uri_parse(url, G_URI_FLAGS_NONE, NULL);
    const char *host = uri != NULL ? g_uri_get_host(uri) : NULL;
    struct in_addr v4;
    struct in6_addr v6;

    if (host == NULL)
        return false;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return g_ascii_strcasecmp(host, "localhost") == 0;
}

static char *
origin_of(const Config *config, const char *setting)
{
    g_autoptr(GPtrArray) entries = config_entries(config);

    for (guint i = 0; i < entries->len; i++) {
        ConfigEntry *entry = entries->pdata[i];

        if (strcmp(entry->setting->name, setting) == 0)
            return g_strdup(entry->origin);
    }
    return NULL;
}

static void
find_key(const Config *config, RemotePlace *place)
{
    if (config->server_key != NULL) {
        place->key = g_strdup(config->server_key);
        place->key_origin = origin_of(config, "server.key");
    } else if (config->key != NULL) {
        place->key = g_strdup(config->key);
        place->key_origin = origin_of(config, "auth.key");
    } else if (is_on_this_machine(place->url)) {
        place->key = home_read_key(config->home, NULL);
        place->key_origin = home_key_file(config->home);
    }
}

void
remote_place_find(const Config *config, RemotePlace *ret)
{
    g_autofree char *socket = home_control_socket(config->home);
    size_t n = strlen(config->server_url);

    *ret = (RemotePlace){0};
    if (!config->server_url_is_set && remote_socket_answers(socket)) {
        ret->url = g_strdup("http://localhost");
        ret->socket = g_steal_pointer(&socket);
        return;
    }
    while (n > 0 && config->server_url[n - 1] == '/')
        n--;
    ret->url = g_strndup(config->server_url, n);
    find_key(config, ret);
}
