/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that are answered at once: one run each, whose output is gathered up to a bound and
 * read when it has ended.
 */
#include <string.h>

#include "base/err.h"
#include "box/file-op.h"

enum {
    ANSWER_MAX = 64 * 1024,
    LIST_BYTES_MAX = BUILTIN_LIST_MAX * (int)(sizeof(BuiltinEntry) + 256 + 4096),
};

typedef struct FileOp {
    FilePlace place;
    Run *run; /* NULL: it did not start */
    char *path;
    Buf out, words;
    bool too_much;
    GError *refusal; /* told from the loop */
    LoopTimer timer;
    void (*finish)(struct FileOp *op, const GError *error);
    BoxFileFunc func;
    BoxEntryFunc entry_func;
    BoxListFunc list_func;
    void *data;
    /* of put */
    guint8 *bytes;
    size_t n, given;
    bool made_parent;
} FileOp;

static void
op_free(FileOp *op)
{
    g_clear_pointer(&op->run, run_unref);
    buf_clear(&op->out);
    buf_clear(&op->words);
    g_clear_error(&op->refusal);
    file_place_clear(&op->place);
    g_free(op->path);
    g_free(op->bytes);
    g_free(op);
}

static bool
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    FileOp *op = ctx;

    if (stream == STREAM_STDERR)
        (void)!buf_put(&op->words, bytes, MIN(n, buf_room(&op->words)));
    else if (!op->too_much)
        op->too_much = !buf_put(&op->out, bytes, n);
    return true;
}

static void
on_ended(Run *run, const RunEnd *end, void *ctx)
{
    FileOp *op = ctx;
    g_autoptr(GError) error = file_end_error(end, op->path, &op->words);

    if (error == NULL && op->too_much)
        err_set(&error, ERR_INTERNAL, "'%s': the box says too much", op->path);
    op->finish(op, error);
}

static void
give(FileOp *op)
{
    op->given += run_write(op->run, op->bytes + op->given, op->n - op->given);
    if (op->given == op->n)
        run_close_input(op->run);
}

static void
on_room(Run *run, void *ctx)
{
    give(ctx);
}

static const RunSink op_sink = {on_output, on_ended, on_room};

static void
on_refused(LoopTimer *timer)
{
    FileOp *op = (FileOp *)(void *)((char *)timer - offsetof(FileOp, timer));
    g_autoptr(GError) error = g_steal_pointer(&op->refusal);

    op->finish(op, error);
}

static FileOp *
op_new(const FilePlace *place, const char *path, size_t answer_max)
{
    FileOp *op = g_new0(FileOp, 1);

    file_place_hold(&op->place, place);
    op->path = g_strdup(path);
    op->timer.expired = on_refused;
    buf_init(&op->out, answer_max);
    buf_init(&op->words, FILE_WORDS_MAX);
    return op;
}

static void
op_start(FileOp *op, const char *const *argv, unsigned flags)
{
    g_clear_pointer(&op->run, run_unref);
    op->run = file_start(&op->place, argv, flags, FILE_TIMEOUT_MS, &op_sink, op, &op->refusal);
    if (op->run == NULL)
        loop_timer_set(op->place.loop, &op->timer, 0);
}

/* ---- those that say nothing ---- */

static void
finish_plain(FileOp *op, const GError *error)
{
    op->func(error, op->data);
    op_free(op);
}

void
file_do(const FilePlace *place, const char *const *argv, BoxFileFunc func, void *data)
{
    FileOp *op = op_new(place, argv[1], ANSWER_MAX);

    op->finish = finish_plain;
    op->func = func;
    op->data = data;
    op_start(op, argv, 0);
}

/* ---- stat and list ---- */

static void
finish_stat(FileOp *op, const GError *error)
{
    g_autoptr(GError) nonsense = NULL;
    BoxEntry entry = {0};
    size_t n;
    const guint8 *bytes = buf_peek(&op->out, &n);

    if (error == NULL && (n == 0 || file_entry_parse(bytes, n, &entry) != (gssize)n)) {
        err_set(&nonsense, ERR_INTERNAL, "'%s': the box talks nonsense", op->path);
        error = nonsense;
    }
    op->entry_func(error == NULL ? &entry : NULL, error, op->data);
    box_entry_clear(&entry);
    op_free(op);
}

void
file_stat(const FilePlace *place, const char *path, BoxEntryFunc func, void *data)
{
    const char *const argv[] = {"stat", path, NULL};
    FileOp *op = op_new(place, path, ANSWER_MAX);

    op->finish = finish_stat;
    op->entry_func = func;
    op->data = data;
    op_start(op, argv, 0);
}

/* The last one has no name and says where the next page begins. */
static bool
parse_list(const guint8 *bytes, size_t n, GArray *entries, guint64 *ret_next)
{
    while (n > 0) {
        BoxEntry entry = {0};
        gssize used = file_entry_parse(bytes, n, &entry);

        if (used <= 0)
            return false;
        bytes += used;
        n -= (size_t)used;
        if (entry.name[0] == '\0') {
            *ret_next = entry.size;
            box_entry_clear(&entry);
            return n == 0;
        }
        g_array_append_val(entries, entry);
    }
    return false;
}

static void
finish_list(FileOp *op, const GError *error)
{
    g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(BoxEntry));
    g_autoptr(GError) nonsense = NULL;
    guint64 next = 0;
    size_t n;
    const guint8 *bytes = buf_peek(&op->out, &n);

    g_array_set_clear_func(entries, (GDestroyNotify)box_entry_clear);
    if (error == NULL && !parse_list(bytes, n, entries, &next)) {
        err_set(&nonsense, ERR_INTERNAL, "'%s': the box talks nonsense", op->path);
        error = nonsense;
    }
    op->list_func((const BoxEntry *)(void *)entries->data, error == NULL ? entries->len : 0,
                  error == NULL ? next : 0, error, op->data);
    op_free(op);
}

void
file_list(const FilePlace *place, const char *path, guint64 cursor, guint max, BoxListFunc func, void *data)
{
    g_autofree char *from = g_strdup_printf("%" G_GUINT64_FORMAT, cursor);
    g_autofree char *most = g_strdup_printf("%u", CLAMP(max, 1, (guint)BUILTIN_LIST_MAX));
    const char *const argv[] = {"list", path, from, most, NULL};
    FileOp *op = op_new(place, path, LIST_BYTES_MAX);

    op->finish = finish_list;
    op->list_func = func;
    op->data = data;
    op_start(op, argv, 0);
}

/* ---- put ---- */

static void
put_start(FileOp *op)
{
    g_autofree char *length = g_strdup_printf("%zu", op->n);
    const char *const argv[] = {"write", op->path, "-", length, NULL};

    op->given = 0;
    op_start(op, argv, START_STDIN);
    if (op->run != NULL)
        give(op);
}

static void put_end(FileOp *op, const GError *error);

static void
put_parent_made(FileOp *op, const GError *error)
{
    if (error != NULL) {
        finish_plain(op, error);
        return;
    }
    op->finish = put_end;
    put_start(op);
}

/* Most files have their folder, so it is made only when it was missing. */
static void
put_end(FileOp *op, const GError *error)
{
    g_autofree char *parent = g_path_get_dirname(op->path);
    const char *const argv[] = {"mkdir", parent, "755", NULL};

    if (error == NULL || err_kind(error) != ERR_NOT_FOUND || op->made_parent || op->path[0] == '\0') {
        finish_plain(op, error);
        return;
    }
    op->made_parent = true;
    op->finish = put_parent_made;
    op_start(op, argv, 0);
}

void
file_put(const FilePlace *place, const char *path, const void *bytes, size_t n, BoxFileFunc func, void *data)
{
    FileOp *op = op_new(place, path, ANSWER_MAX);

    op->bytes = g_malloc(MAX(n, 1));
    memcpy(op->bytes, bytes, n);
    op->n = n;
    op->finish = put_end;
    op->func = func;
    op->data = data;
    put_start(op);
}
