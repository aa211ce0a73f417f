/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "daemon/config.h"

typedef struct ServeOptions {
    const char *user; /* NULL: see run_as_find() */
    bool supervised;  /* end when the process that started us ends */
    /* Told once, when requests are served: address of the page, and the one-time link. */
    void (*ready)(const char *address, const char *link, void *data);
    void *data;
} ServeOptions;

/* Runs the server until it is told to stop (SIGTERM, SIGINT).  One loop; nothing in it
 * blocks once it is ready. */
bool serve_run(const Config *config, const ServeOptions *options, GError **error);
