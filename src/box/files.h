/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/box.h"
#include "wire/builtin.h"

/* Files in a box, by init's built-in operations, as the box's user: the kernel of the box
 * decides what that user may, and nothing is followed out of it.  Paths are absolute or
 * relative to the template's working folder. */

typedef struct BoxEntry {
    char *name;
    char *target; /* of a link; NULL: none */
    guint64 size;
    gint64 mtime_ns;
    guint32 mode, uid, gid;
} BoxEntry;
void box_entry_clear(BoxEntry *entry);

/* The error's kind follows from the errno: ERR_NOT_FOUND, ERR_DENIED, ERR_CONFLICT (it is there), ERR_FULL
 * (box disk or inodes), ERR_INVALID (not an ordinary file, a loop, a name too long). */
typedef void (*BoxFileFunc)(const GError *error, void *data);
typedef void (*BoxEntryFunc)(const BoxEntry *entry, const GError *error, void *data);
/* `next` 0: that was the last page. */
typedef void (*BoxListFunc)(const BoxEntry *entries, size_t n, guint64 next, const GError *error, void *data);

typedef struct BoxFileSpec {
    Box *box;
    const char *user; /* NULL: the template's */
    const char *actor;
} BoxFileSpec;

void box_file_stat(const BoxFileSpec *spec, const char *path, BoxEntryFunc func, void *data);
void box_file_list(const BoxFileSpec *spec, const char *path, guint64 cursor, guint max, BoxListFunc func,
                   void *data);
void box_file_mkdir(const BoxFileSpec *spec, const char *path, guint mode, BoxFileFunc func, void *data);
void box_file_move(const BoxFileSpec *spec, const char *from, const char *to, bool replace, BoxFileFunc func,
                   void *data);
void box_file_remove(const BoxFileSpec *spec, const char *path, bool tree, BoxFileFunc func, void *data);
void box_file_chmod(const BoxFileSpec *spec, const char *path, guint mode, BoxFileFunc func, void *data);
/* A small file at once, whole or not at all; missing parents are made. */
void box_file_put(const BoxFileSpec *spec, const char *path, const void *bytes, size_t n, BoxFileFunc func,
                  void *data);

/* ---- streams ---- */

typedef struct BoxRead BoxRead;
typedef struct BoxReadEvents {
    void (*entry)(BoxRead *read, const BoxEntry *entry, void *ctx); /* first; not for a tree */
    /* There are bytes to fetch: at first, and each time after a call below said EAGAIN.  NULL:
     * nobody wants any. */
    void (*ready)(BoxRead *read, void *ctx);
    /* Once, when all that came was fetched; `read` is freed after it. */
    void (*end)(BoxRead *read, const GError *error, void *ctx);
} BoxReadEvents;
/* `length` < 0: to the end. */
BoxRead *box_file_read(const BoxFileSpec *spec, const char *path, guint64 offset, gint64 length,
                       const BoxReadEvents *events, void *ctx, GError **error);
BoxRead *box_tree_read(const BoxFileSpec *spec, const char *path, const BoxReadEvents *events, void *ctx,
                       GError **error); /* tar */
/* How many bytes were fetched; -1: none for now (EAGAIN).  What is not fetched makes the writer in
 * the box wait. */
gssize box_read_bytes(BoxRead *read, void *bytes, size_t n) G_GNUC_WARN_UNUSED_RESULT;
/* The same straight to a socket, which is not waited for: ENOBUFS when it has no room, or what is
 * wrong with it. */
gssize box_read_splice(BoxRead *read, int fd, size_t n) G_GNUC_WARN_UNUSED_RESULT;
void box_read_cancel(BoxRead *read); /* no event any more */

typedef struct BoxWrite BoxWrite;
typedef struct BoxWriteEvents {
    void (*room)(BoxWrite *write, void *ctx);                     /* after a call below took less than all */
    void (*end)(BoxWrite *write, const GError *error, void *ctx); /* once; freed after it */
} BoxWriteEvents;
/* `length` < 0: until box_write_end(). `mode` < 0: as it was, or 0644. */
BoxWrite *box_file_write(const BoxFileSpec *spec, const char *path, int mode, gint64 length,
                         const BoxWriteEvents *events, void *ctx, GError **error);
BoxWrite *box_tree_write(const BoxFileSpec *spec, const char *path, const BoxWriteEvents *events, void *ctx,
                         GError **error); /* tar */
size_t box_write_data(BoxWrite *write, const void *bytes, size_t n) G_GNUC_WARN_UNUSED_RESULT;
/* Straight from a socket, where the length is known or it is a tree: how many bytes were moved; 0:
 * the socket is at its end; -1: it has none (EAGAIN), ENOBUFS, after which `room` follows, or what
 * is wrong with it. */
gssize box_write_splice(BoxWrite *write, int fd, size_t n) G_GNUC_WARN_UNUSED_RESULT;
void box_write_end(BoxWrite *write);    /* everything was given: `end` follows when it is in place */
void box_write_cancel(BoxWrite *write); /* nothing happens to the file; no event any more */
