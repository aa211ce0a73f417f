/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tar-write.h"

#include <string.h>

#include "wire/decimal.h"
#include "wire/utf8.h"

enum {
    NAME_AT = 0,
    NAME_BYTES = 100,
    MODE_AT = 100,
    UID_AT = 108,
    GID_AT = 116,
    ID_BYTES = 8,
    SIZE_AT = 124,
    MTIME_AT = 136,
    LONG_BYTES = 12,
    SUM_AT = 148,
    SUM_BYTES = 8,
    TYPE_AT = 156,
    TARGET_AT = 157,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_BYTES = 155,
    PAX_TEXT_MAX = 2 * TAR_PATH_MAX + 256,
    ID_MAX = 07777777,
};

static void
flush(TarWriter *w)
{
    if (w->error == 0)
        w->error = w->put(w->ctx, w->buffer, w->n);
    w->n = 0;
}

void
tar_write_data(TarWriter *w, const void *bytes, size_t n)
{
    const uint8_t *at = bytes;

    while (n > 0 && w->error == 0) {
        size_t part = sizeof w->buffer - w->n < n ? sizeof w->buffer - w->n : n;

        memcpy(w->buffer + w->n, at, part);
        w->n += part;
        at += part;
        n -= part;
        if (w->n == sizeof w->buffer)
            flush(w);
    }
}

void
tar_write_padding(TarWriter *w, uint64_t size)
{
    static const uint8_t zeros[TAR_BLOCK];

    tar_write_data(w, zeros, (size_t)(-size & (TAR_BLOCK - 1)));
}

void
tar_write_end(TarWriter *w)
{
    static const uint8_t zeros[2 * TAR_BLOCK];

    tar_write_data(w, zeros, sizeof zeros);
    flush(w);
}

/* Name, or prefix and name with a slash between them.  False: it fits into neither. */
static bool
put_path(uint8_t *h, const char *path)
{
    size_t n = strlen(path);
    const char *slash = NULL;

    if (n <= NAME_BYTES) {
        memcpy(h + NAME_AT, path, n);
        return true;
    }
    /* The last one that leaves something behind it. */
    for (const char *at = path + n - 2; at > path && slash == NULL; at--) {
        if (*at == '/' && at - path <= PREFIX_BYTES)
            slash = at;
    }
    if (slash == NULL || n - (size_t)(slash + 1 - path) > NAME_BYTES)
        return false;
    memcpy(h + PREFIX_AT, path, (size_t)(slash - path));
    memcpy(h + NAME_AT, slash + 1, n - (size_t)(slash + 1 - path));
    return true;
}

static bool
put_target(uint8_t *h, const char *target)
{
    size_t n = strlen(target);

    if (n > NAME_BYTES)
        return false;
    memcpy(h + TARGET_AT, target, n);
    return true;
}

static void
write_header(TarWriter *w, uint8_t *h)
{
    uint32_t sum = 0;

    memcpy(h + MAGIC_AT, "ustar\00000", 8);
    memset(h + SUM_AT, ' ', SUM_BYTES);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += h[i];
    (void)tar_number_format(h + SUM_AT, SUM_BYTES - 1, sum);
    tar_write_data(w, h, TAR_BLOCK);
}

typedef struct PaxText {
    size_t n;
    char text[PAX_TEXT_MAX];
} PaxText;

/* "LENGTH KEY=VALUE\n": the length counts its own digits. */
static void
pax_add(PaxText *pax, const char *key, const char *value)
{
    char digits[DECIMAL_MAX];
    size_t rest = strlen(key) + strlen(value) + 3;
    size_t length = rest;

    while (length != rest + (size_t)(decimal_put(digits, length) - digits))
        length = rest + (size_t)(decimal_put(digits, length) - digits);
    char *at = stpcpy(pax->text + pax->n, digits);
    *at++ = ' ';
    at = stpcpy(stpcpy(stpcpy(at, key), "="), value);
    *at++ = '\n';
    pax->n = (size_t)(at - pax->text);
}

static void
pax_add_number(PaxText *pax, const char *key, int64_t number)
{
    char text[DECIMAL_MAX + 1] = "-";

    (void)decimal_put(number < 0 ? text + 1 : text, number < 0 ? -(uint64_t)number : (uint64_t)number);
    pax_add(pax, key, text);
}

/* A header of which the next one's contents are the text behind it. */
static void
write_extra(TarWriter *w, uint8_t type, const char *text, size_t n)
{
    uint8_t h[TAR_BLOCK] = "././@LongLink";

    h[TYPE_AT] = type;
    (void)tar_number_format(h + MODE_AT, ID_BYTES, 0644);
    (void)tar_number_format(h + UID_AT, ID_BYTES, 0);
    (void)tar_number_format(h + GID_AT, ID_BYTES, 0);
    (void)tar_number_format(h + SIZE_AT, LONG_BYTES, (int64_t)n);
    (void)tar_number_format(h + MTIME_AT, LONG_BYTES, 0);
    write_header(w, h);
    tar_write_data(w, text, n);
    tar_write_padding(w, n);
}

/* pax is UTF-8, and readers differ in what they make of other bytes there.  GNU's header for long
 * names is older, and bytes to all of them. */
static void
add_name(TarWriter *w, PaxText *pax, const char *key, const char *name)
{
    if (utf8_is_valid(name, strlen(name)))
        pax_add(pax, key, name);
    else
        write_extra(w, strcmp(key, "path") == 0 ? 'L' : 'K', name, strlen(name) + 1);
}

static void
put_number(PaxText *pax, uint8_t *field, const char *key, int64_t number)
{
    if (tar_number_format(field, LONG_BYTES, number))
        return;
    pax_add_number(pax, key, number);
    (void)tar_number_format(field, LONG_BYTES, 0);
}

void
tar_write_entry(TarWriter *w, const char *path, const char *target, const struct stat *st)
{
    uint8_t h[TAR_BLOCK] = {0};
    PaxText pax = {.n = 0};
    bool folder = S_ISDIR(st->st_mode);

    h[TYPE_AT] = folder ? '5' : S_ISLNK(st->st_mode) ? '2' : '0';
    (void)tar_number_format(h + MODE_AT, ID_BYTES, st->st_mode & 07777);
    (void)tar_number_format(h + UID_AT, ID_BYTES, st->st_uid & ID_MAX);
    (void)tar_number_format(h + GID_AT, ID_BYTES, st->st_gid & ID_MAX);
    bool path_fits = put_path(h, path);
    bool target_fits = put_target(h, target);
    if (!path_fits)
        add_name(w, &pax, "path", path);
    if (!target_fits)
        add_name(w, &pax, "linkpath", target);
    put_number(&pax, h + SIZE_AT, "size", S_ISREG(st->st_mode) ? st->st_size : 0);
    put_number(&pax, h + MTIME_AT, "mtime", st->st_mtim.tv_sec);
    if (!path_fits)
        memcpy(h, path, NAME_BYTES);
    if (pax.n > 0)
        write_extra(w, 'x', pax.text, pax.n);
    write_header(w, h);
}
