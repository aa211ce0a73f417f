/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* multipart/form-data as a stream: parts are handed on as their bytes come, nothing sits in
 * memory but a boundary's length and one part's head.  Lines end with CRLF alone; whatever
 * cannot be read, or passes a bound, is ERR_INVALID, and the reader is finished then. */
typedef struct Multipart Multipart;

/* Valid UTF-8; no control character but a tab. */
typedef struct MultipartPart {
    const char *name;         /* from Content-Disposition; never NULL */
    const char *filename;     /* NULL: a plain field.  As sent: never a path to trust */
    const char *content_type; /* NULL: none given */
} MultipartPart;

typedef struct MultipartHandler {
    /* False stops the reading with the error set.  A part that was begun and not ended when the
     * reading stops, or when multipart_finish() fails, is not whole. */
    bool (*part)(const MultipartPart *part, void *ctx, GError **error);
    bool (*data)(const guint8 *bytes, size_t n, void *ctx, GError **error);
    bool (*part_end)(void *ctx, GError **error);
} MultipartHandler;

enum { MULTIPART_PARTS_MAX = 1000, MULTIPART_HEAD_MAX = 8 * 1024 };

/* NULL with ERR_INVALID when `content_type` is not multipart/form-data with a boundary. */
Multipart *
multipart_new(const char *content_type, const MultipartHandler *handler, void *ctx, GError **error);
void multipart_free(Multipart *mp);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Multipart, multipart_free)
bool multipart_feed(Multipart *mp, const guint8 *bytes, size_t n, GError **error);
/* After the last byte: false when the closing boundary never came. */
bool multipart_finish(Multipart *mp, GError **error);
