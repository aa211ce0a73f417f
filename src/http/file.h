/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "http/request.h"

/* Disk never holds up the loop: reads and writes run in a small thread pool, one piece of
 * HTTP_PULL_ROOM bytes per transfer at a time. */

typedef struct HttpFileSpec {
    const char *type;
    const char *etag;        /* quoted; NULL: none, and no conditional answers */
    const char *disposition; /* Content-Disposition; NULL: none */
    bool whole;              /* no ranges: it is another file at every call */
} HttpFileSpec;

/* Answers with the file, honouring Range, If-Range, If-None-Match and HEAD.  `fd` is a
 * regular file; taken. */
void http_respond_file(HttpRequest *request, int fd, const HttpFileSpec *spec);

/* Reads the body into `fd` (borrowed until `done`), at most `max` bytes. */
typedef void (*HttpUploadFunc)(HttpRequest *request, guint64 bytes, const GError *error, void *data);
void http_request_read_to_file(HttpRequest *request, int fd, guint64 max, HttpUploadFunc done, void *data);
