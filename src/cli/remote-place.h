/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "daemon/config.h"

/* Where a server is looked for, and what is shown to it. */
typedef struct RemotePlace {
    char *url;        /* without a slash at its end */
    char *socket;     /* NULL: by TCP */
    char *key;        /* NULL: none */
    char *key_origin; /* for messages */
} RemotePlace;

void remote_place_find(const Config *config, RemotePlace *ret_place);
void remote_place_clear(RemotePlace *place);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RemotePlace, remote_place_clear)

/* Whether the server of the data folder takes connections there. */
bool remote_socket_answers(const char *path);
