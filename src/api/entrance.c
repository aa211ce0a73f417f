/* SPDX-License-Identifier: Apache-2.0 */
#include "api/entrance.h"

#include <unistd.h>

#include "api/api.h"
#include "api/state.h"
#include "base/cleanup.h"
#include "base/log.h"

enum { BOX_CONNECTIONS = 32 };

static void
entrance_free(gpointer data)
{
    BoxEntrance *entrance = data;

    g_free(entrance->id);
    g_free(entrance);
}

GHashTable *
box_entrances_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entrance_free);
}

static BoxEntrance *
entrance_for(Api *api, const char *box_id, GError **error)
{
    BoxEntrance *entrance = g_hash_table_lookup(api->entrances, box_id);

    if (entrance != NULL)
        return entrance;
    entrance = g_new0(BoxEntrance, 1);
    *entrance = (BoxEntrance){.id = g_strdup(box_id)};
    entrance->listener = http_server_listen_to_none(
        api->server,
        &(HttpListenerSpec){.name = entrance->id, .data = entrance, .connections = BOX_CONNECTIONS}, error);
    if (entrance->listener == NULL) {
        entrance_free(entrance);
        return NULL;
    }
    g_hash_table_insert(api->entrances, entrance->id, entrance);
    return entrance;
}

void
api_adopt_box(Api *api, const char *box_id, int fd)
{
    autofd owned = fd;
    g_autoptr(GError) error = NULL;

    if (api->server == NULL)
        return; /* not served yet: the box finds it closed and asks again */
    BoxEntrance *entrance = entrance_for(api, box_id, &error);

    if (entrance == NULL || !http_server_adopt(api->server, g_steal_fd(&owned), entrance->listener, &error))
        log_warn("api", "a request of a box was not taken", log_str("box", box_id), log_gerror(error));
}

void
api_forget_box(Api *api, const char *box_id)
{
    BoxEntrance *entrance = g_hash_table_lookup(api->entrances, box_id);

    if (entrance == NULL)
        return;
    http_server_unlisten(api->server, entrance->listener);
    g_hash_table_remove(api->entrances, box_id);
}
