/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/buf.h"
#include "box/file-pipe.h"
#include "box/files.h"

/* What the files of file operations share; private to this folder.
 *
 * A place is where an operation is done, and how a run is started there: a box, or in tests a
 * link alone.  An operation holds a reference to it until it has ended. */
typedef struct FilePlace {
    Loop *loop;
    void *who;
    Run *(*start)(void *who, const RunSpec *spec, const char *actor, GError **error);
    void (*ref)(void *who); /* both may be NULL */
    void (*unref)(void *who);
    const char *user, *actor; /* NULL: the template's; nobody in particular */
} FilePlace;

void file_place_hold(FilePlace *place, const FilePlace *from); /* strings are copied */
void file_place_clear(FilePlace *place);

enum {
    FILE_TIMEOUT_MS = 60 * 1000, /* of what is answered at once */
    FILE_WORDS_MAX = 512,        /* kept of what the operation says about an error */
    FILE_ENTRY_MAX = sizeof(BuiltinEntry) + 2 * FRAME_PATH_MAX,
};

/* Starts a streamed built-in run. */
Run *file_start(const FilePlace *place, const char *const *argv, unsigned flags, guint timeout_ms,
                const RunSink *sink, void *ctx, GError **error);
/* The same, its input or output through a pipe of its own, which is closed when this fails. */
Run *file_start_piped(const FilePlace *place, const char *const *argv, FilePipeWay way, FilePipe *pipe,
                      const RunSink *sink, void *ctx, GError **error);

/* NULL: it ended well.  `words` may be NULL. */
GError *file_end_error(const RunEnd *end, const char *path, const Buf *words);

/* One entry at the beginning of the bytes: how many it takes; 0: it is not whole yet; -1: it is
 * none. */
gssize file_entry_parse(const guint8 *bytes, size_t n, BoxEntry *ret_entry);

/* As the calls of files.h. */
void file_stat(const FilePlace *place, const char *path, BoxEntryFunc func, void *data);
void
file_list(const FilePlace *place, const char *path, guint64 cursor, guint max, BoxListFunc func, void *data);
/* argv[1] is the path that errors name. */
void file_do(const FilePlace *place, const char *const *argv, BoxFileFunc func, void *data);
void
file_put(const FilePlace *place, const char *path, const void *bytes, size_t n, BoxFileFunc func, void *data);
BoxRead *file_read(const FilePlace *place, const char *const *argv, bool has_entry,
                   const BoxReadEvents *events, void *ctx, GError **error);
/* `piped`: the operation itself sees whether all of it came. */
BoxWrite *file_write(const FilePlace *place, const char *const *argv, bool piped,
                     const BoxWriteEvents *events, void *ctx, GError **error);
