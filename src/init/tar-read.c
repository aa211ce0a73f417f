/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "init/tar.h"

enum { SUM_AT = 148, SUM_BYTES = 8, MAP_DIGITS_MAX = 20 };

/* As it lies in the archive. */
typedef struct Header {
    uint8_t name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, target[100];
    uint8_t magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], unused[12];
} Header;
_Static_assert(sizeof(Header) == TAR_BLOCK, "a header is a block");

void
tar_reader_init(TarReader *r, TarRead read, void *ctx)
{
    r->read = read;
    r->ctx = ctx;
    r->why = "";
    r->from = r->to = 0;
    r->left = 0;
    r->padding = 0;
    r->sparse = false;
}

static int
fail(TarReader *r, int error, const char *why)
{
    r->why = why;
    return error;
}

/* At least one byte is in the buffer.  EPIPE: there is none any more. */
static int
fill(TarReader *r)
{
    if (r->from < r->to)
        return 0;
    ssize_t n = r->read(r->ctx, r->buffer, sizeof r->buffer);
    if (n < 0)
        return fail(r, errno, "the input cannot be read");
    if (n == 0)
        return fail(r, EPIPE, "the archive ends too soon");
    r->from = 0;
    r->to = (size_t)n;
    return 0;
}

static int
take(TarReader *r, void *out, uint64_t n)
{
    while (n > 0) {
        int e = fill(r);
        size_t part = r->to - r->from < n ? r->to - r->from : (size_t)n;

        if (e != 0)
            return e;
        if (out != NULL) {
            memcpy(out, r->buffer + r->from, part);
            out = (uint8_t *)out + part;
        }
        r->from += part;
        n -= part;
    }
    return 0;
}

static size_t
padding_of(uint64_t size)
{
    return (size_t)(-size & (TAR_BLOCK - 1));
}

/* Some old programs added the bytes up as signed ones. */
static bool
sum_is_right(const Header *h)
{
    const uint8_t *bytes = (const uint8_t *)h;
    int64_t want, sum = 0, signed_sum = 0;

    if (!tar_number_parse(h->sum, sizeof h->sum, &want))
        return false;
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        uint8_t byte = i >= SUM_AT && i < SUM_AT + SUM_BYTES ? ' ' : bytes[i];

        sum += byte;
        signed_sum += (int8_t)byte;
    }
    return want == sum || want == signed_sum;
}

static bool
is_zero(const Header *h)
{
    const uint8_t *bytes = (const uint8_t *)h;

    for (size_t i = 0; i < TAR_BLOCK; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

static size_t
copy_field(char *out, const uint8_t *field, size_t n)
{
    size_t length = strnlen((const char *)field, n);

    memcpy(out, field, length);
    out[length] = '\0';
    return length;
}

/* Only POSIX has a prefix; where it is, GNU's own format keeps other things. */
static void
copy_path(const Header *h, char *out)
{
    if (memcmp(h->magic, "ustar", sizeof h->magic) == 0 && h->prefix[0] != '\0') {
        out += copy_field(out, h->prefix, sizeof h->prefix);
        *out++ = '/';
    }
    (void)copy_field(out, h->name, sizeof h->name);
}

static int
take_extra(TarReader *r, const Header *h, uint64_t size, TarExtra *extra)
{
    bool pax = h->type == 'x';
    char *out = h->type == 'L' ? extra->path : extra->target;

    /* What it says of all that follows (git puts a commit's name there) concerns nobody here. */
    if (size > (h->type == 'x' || h->type == 'g' ? TAR_EXTRA_MAX : TAR_PATH_MAX))
        return fail(r, ENAMETOOLONG, "an extended header is too long");
    int e = take(r, r->extra, size);
    if (e == 0)
        e = take(r, NULL, padding_of(size));
    if (e != 0 || h->type == 'g')
        return e;
    r->extra[size] = '\0';
    if (pax) {
        e = tar_pax_parse((const char *)r->extra, (size_t)size, extra);
        return e != 0 ? fail(r, e, "an extended header is malformed or too long") : 0;
    }
    size_t n = strlen((const char *)r->extra);
    if (n >= TAR_PATH_MAX)
        return fail(r, ENAMETOOLONG, "the name is too long");
    memcpy(out, r->extra, n + 1);
    *(h->type == 'L' ? &extra->has_path : &extra->has_target) = true;
    return 0;
}

static TarType
type_of(const Header *h, const TarExtra *extra, const char *path)
{
    size_t n = strlen(path);

    if (extra->unknown_sparse || (extra->sparse_major == 1 && !extra->has_real_size))
        return TAR_SKIPPED;
    switch (h->type) {
    case '\0': /* which in v7 is a folder too */
    case '0':
        return n > 0 && path[n - 1] == '/' ? TAR_FOLDER : TAR_FILE;
    case '7':
        return TAR_FILE;
    case '1':
        return TAR_HARD_LINK;
    case '2':
        return TAR_LINK;
    case '5':
        return TAR_FOLDER;
    default:
        return TAR_SKIPPED;
    }
}

/* The next of the numbers, each with a newline behind it, that lie before a sparse file's bytes. */
static int
take_map_number(TarReader *r, uint64_t *ret_number)
{
    uint64_t number = 0;
    uint8_t c;

    for (int i = 0; i < MAP_DIGITS_MAX; i++) {
        int e = r->left > 0 ? take(r, &c, 1) : EBADMSG;

        if (e != 0)
            return e == EBADMSG ? fail(r, e, "the map of a sparse file is malformed") : e;
        r->left--;
        if (c == '\n' && i > 0) {
            *ret_number = number;
            return 0;
        }
        if (c < '0' || c > '9' || number > ((uint64_t)INT64_MAX - 9) / 10)
            break;
        number = number * 10 + (c - '0');
    }
    return fail(r, EBADMSG, "the map of a sparse file is malformed");
}

static int
take_map(TarReader *r, uint64_t real_size)
{
    uint64_t before = r->left;
    uint64_t n, from = 0;
    int e = take_map_number(r, &n);

    if (e == 0 && n > TAR_HOLES_MAX)
        e = fail(r, EFBIG, "a sparse file has too many pieces");
    r->n_ranges = r->range = 0;
    while (e == 0 && r->n_ranges < n) {
        TarRange *range = &r->ranges[r->n_ranges++];

        e = take_map_number(r, &range->offset);
        if (e == 0)
            e = take_map_number(r, &range->bytes);
        if (e == 0 &&
            (range->offset < from || range->offset > real_size || range->bytes > real_size - range->offset))
            e = fail(r, EBADMSG, "the map of a sparse file is malformed");
        from = range->offset + range->bytes;
    }
    size_t rest = padding_of(before - r->left);
    if (e == 0 && rest > r->left)
        e = fail(r, EBADMSG, "the map of a sparse file is malformed");
    if (e == 0)
        e = take(r, NULL, rest);
    r->left -= e == 0 ? rest : 0;
    return e;
}

static int
make_entry(TarReader *r, const Header *h, const TarExtra *extra, uint64_t size, TarEntry *entry)
{
    int64_t mode, mtime;

    if (!tar_number_parse(h->mode, sizeof h->mode, &mode) ||
        !tar_number_parse(h->mtime, sizeof h->mtime, &mtime))
        return fail(r, EBADMSG, "a number in the header is malformed");
    if (extra->has_path)
        memcpy(entry->path, extra->path, strlen(extra->path) + 1);
    else
        copy_path(h, entry->path);
    if (extra->has_target)
        memcpy(entry->target, extra->target, strlen(extra->target) + 1);
    else
        (void)copy_field(entry->target, h->target, sizeof h->target);
    entry->type = type_of(h, extra, entry->path);
    entry->mode = (mode_t)(mode & 07777);
    entry->mtime = extra->has_mtime ? extra->mtime : (struct timespec){.tv_sec = (time_t)mtime};
    entry->size = extra->has_size ? extra->size : size;
    /* Links and folders have nothing behind them, whatever they say. */
    bool bare = h->type >= '1' && h->type <= '6';
    r->left = bare ? 0 : entry->size;
    r->padding = padding_of(r->left);
    r->offset = 0;
    r->sparse = entry->type == TAR_FILE && extra->sparse_major == 1;
    if (!r->sparse)
        return 0;
    entry->size = extra->real_size;
    return take_map(r, extra->real_size);
}

int
tar_next(TarReader *r, TarEntry *entry)
{
    TarExtra extra = {0};
    Header h;
    int64_t size;
    int e = take(r, NULL, r->left);

    if (e == 0)
        e = take(r, NULL, r->padding);
    r->left = r->padding = 0;
    for (int i = 0; e == 0 && i <= TAR_EXTRAS_MAX; i++) {
        e = take(r, &h, sizeof h);
        if (e != 0 || is_zero(&h))
            return e != 0 ? e : ENODATA;
        if (!sum_is_right(&h))
            return fail(r, EBADMSG, "this is no tar archive, or it is damaged");
        if (!tar_number_parse(h.size, sizeof h.size, &size) || size < 0)
            return fail(r, EBADMSG, "a size is malformed");
        if (memchr("xgLK", h.type, 4) == NULL || h.type == '\0')
            return make_entry(r, &h, &extra, (uint64_t)size, entry);
        e = take_extra(r, &h, (uint64_t)size, &extra);
    }
    return e != 0 ? e : fail(r, EBADMSG, "too many extended headers");
}

int
tar_data(TarReader *r, TarPiece *ret_piece)
{
    uint64_t room = r->left;

    ret_piece->n = 0;
    if (r->sparse) {
        while (r->range < r->n_ranges && r->ranges[r->range].bytes == 0)
            r->range++;
        if (r->range == r->n_ranges)
            return 0;
        r->offset = r->ranges[r->range].offset;
        room = r->ranges[r->range].bytes;
        if (r->left < room)
            return fail(r, EBADMSG, "a sparse file has less bytes than its map");
    }
    if (room == 0)
        return 0;
    int e = fill(r);
    if (e != 0)
        return e;
    size_t n = r->to - r->from < room ? r->to - r->from : (size_t)room;
    *ret_piece = (TarPiece){.bytes = r->buffer + r->from, .n = n, .offset = r->offset};
    r->from += n;
    r->left -= n;
    r->offset += n;
    if (r->sparse) {
        r->ranges[r->range].offset += n;
        r->ranges[r->range].bytes -= n;
    }
    return 0;
}
