/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Archives as server and boxes send them to each other: ustar, with a pax header where a name or a
 * number does not fit.  libc only. */

enum {
    TAR_BLOCK = 512,
    TAR_PATH_MAX = 4096, /* with its NUL */
    TAR_BUFFER = 64 * 1024,
};

typedef struct TarWriter {
    /* 0, or what went wrong; nothing is written after that. */
    int (*put)(void *ctx, const void *bytes, size_t n);
    void *ctx;
    int error;
    size_t n;
    uint8_t buffer[TAR_BUFFER];
} TarWriter;

/* Each does nothing after a failure; `error` is the first one. */
void tar_write_entry(TarWriter *w, const char *path, const char *target, const struct stat *st);
void tar_write_data(TarWriter *w, const void *bytes, size_t n);
void tar_write_padding(TarWriter *w, uint64_t size);
void tar_write_end(TarWriter *w);

/* tar-number.c: a header's field: octal, or GNU's base 256. */
bool tar_number_parse(const uint8_t *field, size_t n, int64_t *ret_number);
bool tar_number_format(uint8_t *field, size_t n, int64_t number);
