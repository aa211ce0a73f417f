/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "http/request.h"

/* Static files that are compiled into the program (tools/embed writes the table), each with
 * its gzip form where that is smaller, and an ETag of its content. */
typedef struct HttpAsset {
    const char *path; /* "/app.js"; NULL ends the table */
    const char *type;
    const char *etag; /* quoted */
    const guint8 *data;
    size_t size;
    const guint8 *gzip; /* NULL: not worth it */
    size_t gzip_size;
} HttpAsset;

const HttpAsset *http_asset_find(const HttpAsset *table, const char *path);

/* 200 or 304, compressed if the client takes it. */
void http_respond_asset(HttpRequest *request, const HttpAsset *asset);
