/* SPDX-License-Identifier: Apache-2.0 */
#include "box/file-op.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"

void
file_place_hold(FilePlace *place, const FilePlace *from)
{
    *place = *from;
    place->user = g_strdup(from->user != NULL ? from->user : "");
    place->actor = g_strdup(from->actor);
    if (place->ref != NULL)
        place->ref(place->who);
}

void
file_place_clear(FilePlace *place)
{
    g_free((char *)(uintptr_t)place->user);
    g_free((char *)(uintptr_t)place->actor);
    if (place->unref != NULL)
        place->unref(place->who);
    *place = (FilePlace){0};
}

Run *
file_start(const FilePlace *place, const char *const *argv, unsigned flags, guint timeout_ms,
           const RunSink *sink, void *ctx, GError **error)
{
    RunSpec spec = {.flags = START_BUILTIN | flags,
                    .argv = argv,
                    .user = place->user,
                    .cwd = "",
                    .timeout_ms = timeout_ms,
                    .sink = sink,
                    .ctx = ctx};

    return place->start(place->who, &spec, place->actor, error);
}

Run *
file_start_piped(const FilePlace *place, const char *const *argv, FilePipeWay way, FilePipe *pipe,
                 const RunSink *sink, void *ctx, GError **error)
{
    autofd theirs = -1;
    RunSpec spec = {.flags = START_BUILTIN | (way == FILE_PIPE_IN ? START_IN_FD : START_OUT_FD),
                    .argv = argv,
                    .user = place->user,
                    .cwd = "",
                    .sink = sink,
                    .ctx = ctx,
                    .fd = &theirs};

    if (!file_pipe_open(pipe, place->loop, way, &theirs, error))
        return NULL;
    Run *run = place->start(place->who, &spec, place->actor, error);
    if (run == NULL)
        file_pipe_close(pipe);
    return run;
}

static ErrKind
kind_of(int error)
{
    switch (error) {
    case ENOENT:
    case ESRCH:
        return ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_DENIED;
    case EEXIST:
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY:
        return ERR_CONFLICT;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
        return ERR_FULL;
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
        return ERR_LIMIT;
    case EINVAL:
    case ELOOP:
    case ENAMETOOLONG:
    case EISDIR:
    case ENOTDIR:
    case EXDEV:
    case EBADMSG:
    case EPIPE:
        return ERR_INVALID;
    default:
        return ERR_INTERNAL;
    }
}

/* The first line, which names the entry of a tree that is meant. */
static char *
first_line(const Buf *words)
{
    size_t n = 0;
    const guint8 *bytes = words != NULL ? buf_peek(words, &n) : NULL;
    const guint8 *end = n > 0 ? memchr(bytes, '\n', n) : NULL;

    return n > 0 ? g_utf8_make_valid((const char *)bytes, end != NULL ? end - bytes : (gssize)n) : NULL;
}

GError *
file_end_error(const RunEnd *end, const char *path, const Buf *words)
{
    g_autofree char *shown = g_utf8_make_valid(path, -1);
    g_autofree char *line = first_line(words);

    if (end->reason == RUN_EXIT && end->code == 0)
        return NULL;
    if (end->reason == RUN_EXIT || end->reason == RUN_NOT_STARTED) {
        const char *why = line != NULL ? line : g_strerror(end->code);

        return g_error_new(ERR_DOMAIN, (gint)kind_of(end->code), "'%s': %s", shown, why);
    }
    g_autofree char *message = run_end_dup_message(end);
    ErrKind kind = end->reason == RUN_TIMEOUT ? ERR_TIMEOUT
                   : end->reason == RUN_OOM   ? ERR_FULL
                                              : ERR_UNAVAILABLE;
    return g_error_new(ERR_DOMAIN, (gint)kind, "'%s': %s", shown, message);
}

void
box_entry_clear(BoxEntry *entry)
{
    g_clear_pointer(&entry->name, g_free);
    g_clear_pointer(&entry->target, g_free);
}

/* Neither holds a NUL: a name that a box makes up must not look like another. */
static bool
is_text(const guint8 *bytes, size_t n)
{
    return n == 0 || memchr(bytes, '\0', n) == NULL;
}

gssize
file_entry_parse(const guint8 *bytes, size_t n, BoxEntry *ret_entry)
{
    BuiltinEntry head;

    if (n < sizeof head)
        return 0;
    memcpy(&head, bytes, sizeof head);
    size_t whole = sizeof head + head.name_bytes + head.target_bytes;
    const guint8 *name = bytes + sizeof head;
    const guint8 *target = name + head.name_bytes;

    if (head.name_bytes >= FRAME_PATH_MAX || head.target_bytes > FRAME_PATH_MAX || head.size > G_MAXINT64)
        return -1;
    if (n < whole)
        return 0;
    if (!is_text(name, head.name_bytes) || !is_text(target, head.target_bytes))
        return -1;
    *ret_entry = (BoxEntry){
        .name = g_strndup((const char *)name, head.name_bytes),
        .target = head.target_bytes > 0 ? g_strndup((const char *)target, head.target_bytes) : NULL,
        .size = head.size,
        .mtime_ns = head.mtime_ns,
        .mode = head.mode,
        .uid = head.uid,
        .gid = head.gid};
    return (gssize)whole;
}
