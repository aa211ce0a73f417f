/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "wire/tar-write.h"

/* Archives as `tar-in` and `tar-out` (wire/builtin.h) speak them.  Read is what GNU tar, bsdtar
 * and Python's tarfile write when nobody asks for more: v7, ustar, pax, GNU's long names, large
 * numbers and version 1.0 of its sparse files.  What is written is in wire/tar-write.h.
 *
 * The reader takes nothing on trust and creates nothing: it gives names as they are, and
 * tar_name_check() says which of them may become a path. */

enum {
    TAR_NAME_MAX = 255,
    TAR_DEPTH_MAX = 64,
    TAR_EXTRA_MAX = 64 * 1024, /* bytes of one extended header */
    TAR_EXTRAS_MAX = 16,       /* extended headers before an entry */
    TAR_HOLES_MAX = 4096,      /* pieces of a sparse file */
};

typedef enum TarType {
    TAR_FILE,
    TAR_FOLDER,
    TAR_LINK,
    TAR_HARD_LINK,
    TAR_SKIPPED, /* devices, FIFOs, and what only its writer understands */
} TarType;

/* A run of bytes of a sparse file. */
typedef struct TarRange {
    uint64_t offset, bytes;
} TarRange;

typedef struct TarEntry {
    TarType type;
    mode_t mode;
    struct timespec mtime;
    uint64_t size; /* of the file it becomes */
    char path[TAR_PATH_MAX];
    char target[TAR_PATH_MAX];
} TarEntry;

/* Up to n bytes; 0: the end; -1 with errno. */
typedef ssize_t (*TarRead)(void *ctx, void *bytes, size_t n);

typedef struct TarReader {
    TarRead read;
    void *ctx;
    const char *why; /* of the last error; static */
    size_t from, to; /* in buffer */
    uint64_t left;   /* bytes of the entry that are still in the stream */
    size_t padding;  /* behind them */
    uint64_t offset; /* where the next of them goes */
    bool sparse;
    size_t n_ranges, range;
    TarRange ranges[TAR_HOLES_MAX];
    uint8_t buffer[TAR_BUFFER];
    uint8_t extra[TAR_EXTRA_MAX + 1];
} TarReader;

/* A piece of a file's content; n == 0: there is no more.  Valid until the next call. */
typedef struct TarPiece {
    const void *bytes;
    size_t n;
    uint64_t offset;
} TarPiece;

void tar_reader_init(TarReader *r, TarRead read, void *ctx);
/* 0: an entry; what was left of the one before is skipped.  ENODATA: the archive has ended as it
 * should.  EPIPE: too soon.  EBADMSG: this is no archive.  Else what read() said, or a bound. */
int tar_next(TarReader *r, TarEntry *entry);
int tar_data(TarReader *r, TarPiece *ret_piece);

/* tar-pax.c: what extended headers say of the next entry. */
typedef struct TarExtra {
    bool has_path, has_target, has_size, has_mtime, has_real_size, unknown_sparse;
    uint32_t sparse_major;
    uint64_t size, real_size;
    struct timespec mtime;
    char path[TAR_PATH_MAX];
    char target[TAR_PATH_MAX];
} TarExtra;

/* 0, EBADMSG, or ENAMETOOLONG.  `text` is `n` bytes and a NUL. */
int tar_pax_parse(const char *text, size_t n, TarExtra *extra);
/* tar-name.c: `path` without empty and "." parts, in place.  0; EXDEV: it leads out; EINVAL: it
 * has no name; ENAMETOOLONG, ELOOP: too long, too deep.  What is left may be "": the folder that
 * is unpacked to. */
int tar_name_check(char *path);
/* Whether a symbolic link at `path`, which was checked, may lead to `target`.  An absolute one
 * names a place of the box; a relative one must not climb out of the tree. */
int tar_target_check(const char *path, const char *target);

/* "OPERATION: NAME: WHY" on standard error. */
void tar_complain(const char *operation, const char *name, const char *why);
