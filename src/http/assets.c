/* SPDX-License-Identifier: Apache-2.0 */
#include "http/assets.h"

#include <string.h>

#include "http/negotiate.h"

const HttpAsset *
http_asset_find(const HttpAsset *table, const char *path)
{
    for (const HttpAsset *asset = table; asset->path != NULL; asset++) {
        if (strcmp(asset->path, path) == 0)
            return asset;
    }
    return NULL;
}

/* All lines of a header as the one list they stand for; NULL: none. */
static char *
joined_header(const HttpRequest *request, const char *name)
{
    g_autoptr(GString) all = NULL;

    for (guint i = 0; i < http_request_headers(request); i++) {
        const char *key;
        const char *value;

        http_request_header_at(request, i, &key, &value);
        if (g_ascii_strcasecmp(key, name) != 0)
            continue;
        if (all == NULL)
            all = g_string_new(value);
        else
            g_string_append_printf(all, ", %s", value);
    }
    return all != NULL ? g_strdup(all->str) : NULL;
}

/* The two forms are different bytes, so a strong tag must tell them apart. */
static char *
gzip_etag(const char *etag)
{
    return g_strdup_printf("%.*s-gz\"", (int)strlen(etag) - 1, etag);
}

void
http_respond_asset(HttpRequest *request, const HttpAsset *asset)
{
    g_autofree char *accepted = joined_header(request, "Accept-Encoding");
    g_autofree char *known = joined_header(request, "If-None-Match");
    bool gzip = asset->gzip != NULL && accepts_gzip(accepted);
    g_autofree char *etag = gzip ? gzip_etag(asset->etag) : g_strdup(asset->etag);

    http_response_header(request, "ETag", etag);
    /* Kept, but asked about each time: a new program brings new files under the same names. */
    http_response_header(request, "Cache-Control", "no-cache");
    if (asset->gzip != NULL)
        http_response_header(request, "Vary", "Accept-Encoding");
    if (etag_is_listed(known, etag)) {
        http_respond(request, 304, NULL, NULL, 0);
        return;
    }
    if (gzip)
        http_response_header(request, "Content-Encoding", "gzip");
    g_autoptr(GBytes) body = gzip ? g_bytes_new_static(asset->gzip, asset->gzip_size)
                                  : g_bytes_new_static(asset->data, asset->size);

    http_respond_bytes(request, 200, asset->type, body);
}
