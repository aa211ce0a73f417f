/* SPDX-License-Identifier: Apache-2.0 */
#include "played-box.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "api/call-box.h"
#include "api/gate.h"
#include "api/state.h"
#include "base/err.h"
#include "http-fixture.h"

Played played;

static guint8 a_box, a_read, a_write;

Box *
call_box(ApiCall *call)
{
    return (Box *)(void *)&a_box;
}

Box *
box_ref(Box *box)
{
    return box;
}

void
box_unref(Box *box)
{
}

Key *
caller_key(Api *api, const Caller *caller)
{
    return NULL;
}

bool
caller_is_still_known(ApiCall *call)
{
    return !played.unknown;
}

static bool
refused(GError **error)
{
    return played.refuse && !err_set(error, ERR_CONFLICT, "the box is paused");
}

void
box_file_mkdir(const BoxFileSpec *spec, const char *path, guint mode, BoxFileFunc func, void *data)
{
    g_assert_null(played.made);
    g_assert_cmpuint(mode, ==, 0755);
    g_free(played.folder);
    played.folder = g_strdup(path);
    played.made = func;
    played.made_data = data;
}

BoxRead *
box_file_read(const BoxFileSpec *spec, const char *path, guint64 offset, gint64 length,
              const BoxReadEvents *events, void *ctx, GError **error)
{
    if (refused(error))
        return NULL;
    played.reads++;
    played.read = events;
    played.read_ctx = ctx;
    played.offset = offset;
    played.length = length;
    played.hungry = true;
    g_byte_array_set_size(played.offered, 0);
    return (BoxRead *)(void *)&a_read;
}

BoxRead *
box_tree_read(const BoxFileSpec *spec, const char *path, const BoxReadEvents *events, void *ctx,
              GError **error)
{
    return box_file_read(spec, path, 0, -1, events, ctx, error);
}

static gssize
took(size_t n)
{
    g_assert_nonnull(played.read);
    played.hungry = n == 0;
    errno = EAGAIN;
    if (n > 0)
        g_byte_array_remove_range(played.offered, 0, (guint)n);
    return n > 0 ? (gssize)n : -1;
}

gssize
box_read_bytes(BoxRead *read, void *bytes, size_t n)
{
    n = MIN(n, played.offered->len);
    if (n > 0)
        memcpy(bytes, played.offered->data, n);
    return took(n);
}

gssize
box_read_splice(BoxRead *read, int fd, size_t n)
{
    n = MIN(n, played.offered->len);
    if (n == 0)
        return took(0);
    ssize_t sent = send(fd, played.offered->data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN)
        errno = ENOBUFS;
    played.moved += sent > 0;
    return sent > 0 ? took((size_t)sent) : -1;
}

void
box_read_cancel(BoxRead *read)
{
    g_assert_nonnull(played.read);
    played.read = NULL;
    played.cancelled++;
}

BoxWrite *
box_file_write(const BoxFileSpec *spec, const char *path, int mode, gint64 length,
               const BoxWriteEvents *events, void *ctx, GError **error)
{
    if (refused(error))
        return NULL;
    played.writes++;
    played.write = events;
    played.write_ctx = ctx;
    played.mode = mode;
    played.length = length;
    return (BoxWrite *)(void *)&a_write;
}

BoxWrite *
box_tree_write(const BoxFileSpec *spec, const char *path, const BoxWriteEvents *events, void *ctx,
               GError **error)
{
    return box_file_write(spec, path, -1, -1, events, ctx, error);
}

size_t
box_write_data(BoxWrite *write, const void *bytes, size_t n)
{
    g_assert_nonnull(played.write);
    n = MIN(n, played.room);
    played.room -= n;
    g_byte_array_append(played.written, bytes, (guint)n);
    return n;
}

gssize
box_write_splice(BoxWrite *write, int fd, size_t n)
{
    g_autofree guint8 *bytes = g_malloc(MIB);

    g_assert_nonnull(played.write);
    if (played.room == 0) {
        errno = ENOBUFS;
        return -1;
    }
    ssize_t got = recv(fd, bytes, MIN(MIN(n, (size_t)MIB), played.room), MSG_DONTWAIT);
    if (got <= 0)
        return got;
    played.moved++;
    g_assert_cmpuint(box_write_data(write, bytes, (size_t)got), ==, got);
    return got;
}

void
box_write_end(BoxWrite *write)
{
    g_assert_nonnull(played.write);
    played.ended++;
}

void
box_write_cancel(BoxWrite *write)
{
    g_assert_nonnull(played.write);
    played.write = NULL;
    played.cancelled++;
}

/* ---- what it does ---- */

void
tell_entry(guint64 size)
{
    BoxEntry entry = {.name = (char *)(guintptr) "f", .size = size, .mode = S_IFREG | 0644};

    played.read->entry((BoxRead *)(void *)&a_read, &entry, played.read_ctx);
}

bool
tell_data(const void *bytes, size_t n)
{
    g_byte_array_append(played.offered, bytes, (guint)n);
    if (played.hungry) {
        played.hungry = false;
        played.read->ready((BoxRead *)(void *)&a_read, played.read_ctx);
    }
    return played.read == NULL || played.offered->len == 0;
}

void
tell_read_end(ErrKind kind, const char *message)
{
    g_autoptr(GError) error = NULL;
    const BoxReadEvents *events = g_steal_pointer(&played.read);

    g_assert_cmpuint(played.offered->len, ==, 0);
    if (message != NULL)
        err_set(&error, kind, "%s", message);
    events->end((BoxRead *)(void *)&a_read, error, played.read_ctx);
}

void
tell_room(size_t n)
{
    played.room = n;
    played.write->room((BoxWrite *)(void *)&a_write, played.write_ctx);
}

void
tell_write_end(ErrKind kind, const char *message)
{
    g_autoptr(GError) error = NULL;
    const BoxWriteEvents *events = g_steal_pointer(&played.write);

    if (message != NULL)
        err_set(&error, kind, "%s", message);
    events->end((BoxWrite *)(void *)&a_write, error, played.write_ctx);
}

void
tell_made(ErrKind kind, const char *message)
{
    g_autoptr(GError) error = NULL;
    BoxFileFunc made = g_steal_pointer(&played.made);

    if (message != NULL)
        err_set(&error, kind, "%s", message);
    made(error, played.made_data);
}

void
played_init(void)
{
    played = (Played){.offered = g_byte_array_new(), .written = g_byte_array_new(), .room = SIZE_MAX};
}

void
played_clear(void)
{
    g_assert_null(played.read);
    g_assert_null(played.write);
    g_free(played.folder);
    g_byte_array_unref(played.offered);
    g_byte_array_unref(played.written);
}
