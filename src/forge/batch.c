/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/batch.h"

#include <string.h>

#include "base/err.h"

static bool
on_output(const guint8 *bytes, size_t n, void *ctx)
{
    return batch_parser_feed(ctx, bytes, n);
}

bool
batch_run(GitRepo *repo, const char *const *names, size_t n, const BatchSink *sink, void *ctx, GError **error)
{
    g_auto(BatchParser) parser = {0};
    g_autoptr(GByteArray) input = g_byte_array_new();

    if (n > BATCH_MAX)
        return err_set(error, ERR_LIMIT, "%zu objects are more than %d", n, BATCH_MAX);
    for (size_t i = 0; i < n; i++) {
        g_assert(strlen(names[i]) <= BATCH_NAME_MAX);
        g_byte_array_append(input, (const guint8 *)names[i], (guint)strlen(names[i]) + 1);
    }
    batch_parser_init(&parser, names, n, sink, ctx);
    GitCall call = {
        .args = GIT_ARGS("cat-file", sink->bytes != NULL ? "--batch" : "--batch-check", "--buffer", "-z"),
        .input = input->data,
        .input_len = input->len,
        .timeout_ms = sink->timeout_ms,
        .take = on_output,
        .ctx = &parser,
    };
    if (n == 0)
        return true;
    if (!git_run(repo, &call, NULL, error))
        return false;
    return batch_parser_is_done(&parser) ||
           err_set(error, ERR_INTERNAL, "git's answer about %zu objects is none", n);
}

typedef struct Collect {
    GPtrArray *objects;
    size_t max, room;
} Collect;

static void
batch_object_free(BatchObject *object)
{
    if (object->bytes != NULL)
        g_byte_array_unref(object->bytes);
    g_free(object);
}

static bool
collect_object(size_t index, const char *oid, const char *type, guint64 size, void *ctx)
{
    Collect *c = ctx;
    BatchObject *object = g_new0(BatchObject, 1);

    g_ptr_array_add(c->objects, object);
    if (oid == NULL)
        return true;
    g_strlcpy(object->oid, oid, sizeof object->oid);
    g_strlcpy(object->type, type, sizeof object->type);
    object->size = size;
    if (size > MIN(c->max, c->room))
        return true;
    c->room -= size;
    object->bytes = g_byte_array_sized_new((guint)size + 1);
    return true;
}

static bool
collect_bytes(size_t index, const guint8 *bytes, size_t n, void *ctx)
{
    Collect *c = ctx;
    BatchObject *object = c->objects->pdata[index];

    if (object->bytes != NULL)
        g_byte_array_append(object->bytes, bytes, (guint)n);
    return true;
}

GPtrArray *
batch_read(GitRepo *repo, const char *const *names, size_t n, size_t max, size_t total, GError **error)
{
    static const BatchSink sink = {.object = collect_object, .bytes = collect_bytes};
    g_autoptr(GPtrArray) objects = g_ptr_array_new_with_free_func((GDestroyNotify)batch_object_free);
    Collect c = {objects, max, total};

    if (!batch_run(repo, names, n, &sink, &c, error))
        return NULL;
    return g_steal_pointer(&objects);
}
