/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "init/tar.h"

/* The input is an archive: as it is, and with the sum of every block put right, since by chance
 * that never is.  What is read of it does not depend on the pieces it came in. */

enum { SUM_AT = 148, SUM_BYTES = 8, ENTRIES_MAX = 64 };

typedef struct Input {
    const guint8 *data;
    size_t n, at, cut;
} Input;

static ssize_t
read_input(void *ctx, void *bytes, size_t n)
{
    Input *in = ctx;
    size_t end = in->cut == FUZZ_EACH_BYTE ? in->at + 1 : in->at < in->cut ? in->cut : in->n;
    size_t part = MIN(MIN(end, in->n) - in->at, n);

    memcpy(bytes, in->data + in->at, part);
    in->at += part;
    return (ssize_t)part;
}

static void
check_name(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);

    g_assert(path[0] != '/');
    g_assert(g_strv_length(parts) <= TAR_DEPTH_MAX);
    for (guint i = 0; parts[i] != NULL; i++) {
        g_assert(strcmp(parts[i], "..") != 0 && strcmp(parts[i], ".") != 0);
        g_assert(strlen(parts[i]) <= TAR_NAME_MAX);
        g_assert(parts[i][0] != '\0' || path[0] == '\0');
    }
}

static void
read_data(TarReader *r, const TarEntry *entry, GString *log)
{
    TarPiece piece;
    uint64_t from = 0;
    int e;

    while ((e = tar_data(r, &piece)) == 0 && piece.n > 0) {
        g_assert(piece.offset >= from);
        from = piece.offset + piece.n;
        g_assert(from <= entry->size);
        for (size_t i = 0; i < piece.n; i++)
            g_string_append_printf(log, "%" G_GUINT64_FORMAT ":%02x ", piece.offset + i,
                                   ((const guint8 *)piece.bytes)[i]);
    }
    g_string_append_printf(log, "data %d\n", e);
}

static char *
read_all(const guint8 *data, size_t n, size_t cut)
{
    g_autofree TarReader *r = g_new(TarReader, 1);
    g_autofree TarEntry *entry = g_new(TarEntry, 1);
    Input in = {data, n, 0, cut};
    GString *log = g_string_new(NULL);
    int e = 0;

    tar_reader_init(r, read_input, &in);
    for (guint i = 0; i < ENTRIES_MAX && (e = tar_next(r, entry)) == 0; i++) {
        g_assert(memchr(entry->path, '\0', TAR_PATH_MAX) != NULL);
        g_assert(memchr(entry->target, '\0', TAR_PATH_MAX) != NULL);
        g_assert(entry->type <= TAR_SKIPPED && entry->mode <= 07777 && entry->size <= INT64_MAX);
        g_string_append_printf(log, "%d %o %" G_GUINT64_FORMAT " %s %s\n", entry->type, entry->mode,
                               entry->size, entry->path, entry->target);
        int name = tar_name_check(entry->path);

        if (name == 0) {
            check_name(entry->path);
            g_string_append_printf(log, "%d ", tar_target_check(entry->path, entry->target));
        }
        if (entry->type == TAR_FILE)
            read_data(r, entry, log);
    }
    g_assert(e == 0 || e == ENODATA || r->why[0] != '\0');
    g_string_append_printf(log, "end %d", e);
    return g_string_free(log, FALSE);
}

static void
check_numbers(const guint8 *data, size_t n)
{
    guint8 field[12];
    int64_t number, again;

    if (n < sizeof field || !tar_number_parse(data, sizeof field, &number))
        return;
    if (tar_number_format(field, sizeof field, number))
        g_assert(tar_number_parse(field, sizeof field, &again) && again == number);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    g_autofree guint8 *summed = g_memdup2(data, MAX(n, 1));
    g_autofree char *raw = read_all(data, n, n);
    g_autofree char *raw_cut = read_all(data, n, cut);

    g_assert_cmpstr(raw, ==, raw_cut);
    for (size_t at = 0; at + TAR_BLOCK <= n; at += TAR_BLOCK) {
        guint sum = SUM_BYTES * ' ';
        bool zero = true;

        for (size_t i = 0; i < TAR_BLOCK; i++) {
            sum += i >= SUM_AT && i < SUM_AT + SUM_BYTES ? 0 : summed[at + i];
            zero &= summed[at + i] == 0;
        }
        if (!zero)
            tar_number_format(summed + at + SUM_AT, SUM_BYTES, sum);
    }
    g_autofree char *good = read_all(summed, n, n);
    g_autofree char *good_cut = read_all(summed, n, cut);
    g_assert_cmpstr(good, ==, good_cut);
    check_numbers(data, n);
}
