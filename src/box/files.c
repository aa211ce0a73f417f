/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of files.h on a box, each as the words that init knows. */
#include "box/files.h"

#include "box/box-private.h"
#include "box/file-op.h"
#include "box/host-private.h"

/* More no box's disk has; the disk itself is the bound. */
#define TREE_BYTES_MAX (G_GUINT64_CONSTANT(1) << 43)

static Run *
start_in_box(void *who, const RunSpec *spec, const char *actor, GError **error)
{
    return box_start(who, spec, actor, error);
}

static void
hold_box(void *who)
{
    (void)box_ref(who);
}

static void
release_box(void *who)
{
    box_unref(who);
}

static FilePlace
place_of(const BoxFileSpec *spec)
{
    return (FilePlace){.loop = spec->box->host->spec.loop,
                       .who = spec->box,
                       .start = start_in_box,
                       .ref = hold_box,
                       .unref = release_box,
                       .user = spec->user,
                       .actor = spec->actor};
}

void
box_file_stat(const BoxFileSpec *spec, const char *path, BoxEntryFunc func, void *data)
{
    FilePlace place = place_of(spec);

    file_stat(&place, path, func, data);
}

void
box_file_list(const BoxFileSpec *spec, const char *path, guint64 cursor, guint max, BoxListFunc func,
              void *data)
{
    FilePlace place = place_of(spec);

    file_list(&place, path, cursor, max, func, data);
}

static void
do_in_box(const BoxFileSpec *spec, const char *const *argv, BoxFileFunc func, void *data)
{
    FilePlace place = place_of(spec);

    file_do(&place, argv, func, data);
}

void
box_file_mkdir(const BoxFileSpec *spec, const char *path, guint mode, BoxFileFunc func, void *data)
{
    g_autofree char *octal = g_strdup_printf("%o", mode);

    do_in_box(spec, (const char *const[]){"mkdir", path, octal, NULL}, func, data);
}

void
box_file_move(const BoxFileSpec *spec, const char *from, const char *to, bool replace, BoxFileFunc func,
              void *data)
{
    do_in_box(spec, (const char *const[]){"move", from, to, replace ? "replace" : "keep", NULL}, func, data);
}

void
box_file_remove(const BoxFileSpec *spec, const char *path, bool tree, BoxFileFunc func, void *data)
{
    do_in_box(spec, (const char *const[]){"remove", path, tree ? "tree" : "one", NULL}, func, data);
}

void
box_file_chmod(const BoxFileSpec *spec, const char *path, guint mode, BoxFileFunc func, void *data)
{
    g_autofree char *octal = g_strdup_printf("%o", mode);

    do_in_box(spec, (const char *const[]){"chmod", path, octal, NULL}, func, data);
}

void
box_file_put(const BoxFileSpec *spec, const char *path, const void *bytes, size_t n, BoxFileFunc func,
             void *data)
{
    FilePlace place = place_of(spec);

    file_put(&place, path, bytes, n, func, data);
}

BoxRead *
box_file_read(const BoxFileSpec *spec, const char *path, guint64 offset, gint64 length,
              const BoxReadEvents *events, void *ctx, GError **error)
{
    g_autofree char *from = g_strdup_printf("%" G_GUINT64_FORMAT, offset);
    g_autofree char *most = length < 0 ? g_strdup("-") : g_strdup_printf("%" G_GINT64_FORMAT, length);
    const char *const argv[] = {"read", path, from, most, NULL};
    FilePlace place = place_of(spec);

    return file_read(&place, argv, true, events, ctx, error);
}

BoxRead *
box_tree_read(const BoxFileSpec *spec, const char *path, const BoxReadEvents *events, void *ctx,
              GError **error)
{
    const char *const argv[] = {"tar-out", path, NULL};
    FilePlace place = place_of(spec);

    return file_read(&place, argv, false, events, ctx, error);
}

BoxWrite *
box_file_write(const BoxFileSpec *spec, const char *path, int mode, gint64 length,
               const BoxWriteEvents *events, void *ctx, GError **error)
{
    g_autofree char *octal = mode < 0 ? g_strdup("-") : g_strdup_printf("%o", (guint)mode);
    g_autofree char *most = length < 0 ? g_strdup("-") : g_strdup_printf("%" G_GINT64_FORMAT, length);
    const char *const argv[] = {"write", path, octal, most, NULL};
    FilePlace place = place_of(spec);

    return file_write(&place, argv, length >= 0, events, ctx, error);
}

BoxWrite *
box_tree_write(const BoxFileSpec *spec, const char *path, const BoxWriteEvents *events, void *ctx,
               GError **error)
{
    g_autofree char *entries = g_strdup_printf("%d", BUILTIN_TAR_ENTRIES_MAX);
    g_autofree char *bytes = g_strdup_printf("%" G_GUINT64_FORMAT, TREE_BYTES_MAX);
    const char *const argv[] = {"tar-in", path, entries, bytes, NULL};
    FilePlace place = place_of(spec);

    return file_write(&place, argv, true, events, ctx, error);
}
