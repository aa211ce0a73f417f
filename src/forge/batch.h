/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "forge/git.h"

/* Many objects from one child: `git cat-file --batch`. */

enum { BATCH_NAME_MAX = 5000, BATCH_MAX = 200 * 1000 };

/* A name is an object's name, "OID:path", or a ref that the caller has checked.  Objects come in
 * the order they were asked for.  Each call returns false to end it. */
typedef struct BatchSink {
    /* `oid` NULL: there is no such object. */
    bool (*object)(size_t index, const char *oid, const char *type, guint64 size, void *ctx);
    /* Its bytes; NULL: only what objects are is asked. */
    bool (*bytes)(size_t index, const guint8 *bytes, size_t n, void *ctx);
    guint timeout_ms; /* 0: GIT_TIMEOUT_MS */
} BatchSink;

bool batch_run(GitRepo *repo, const char *const *names, size_t n, const BatchSink *sink, void *ctx,
               GError **error);

typedef struct BatchObject {
    char oid[GIT_OID_LEN + 1]; /* "": there is none */
    char type[8];
    guint64 size;
    GByteArray *bytes; /* NULL: there are more than `max` */
} BatchObject;
/* BatchObject for each of `names`; `total` bounds what is kept in all. */
GPtrArray *
batch_read(GitRepo *repo, const char *const *names, size_t n, size_t max, size_t total, GError **error);

/* ---- what git answers ---- */

typedef struct BatchParser {
    const char *const *names;
    size_t n_names, index;
    const BatchSink *sink;
    void *ctx;
    GString *line;
    guint64 left; /* bytes of the object, and a newline */
    bool stopped, broken;
} BatchParser;

void batch_parser_init(BatchParser *p, const char *const *names, size_t n, const BatchSink *sink, void *ctx);
void batch_parser_clear(BatchParser *p);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BatchParser, batch_parser_clear)
/* False: the sink has enough, or this is no such answer (`broken`). */
bool batch_parser_feed(BatchParser *p, const guint8 *bytes, size_t n);
/* Whether every name was answered, or the sink had enough. */
bool batch_parser_is_done(const BatchParser *p);
