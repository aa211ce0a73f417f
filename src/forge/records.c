/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/records.h"

#include <string.h>

#include "base/err.h"

typedef struct Reader {
    const RecordsSpec *spec;
    GPtrArray *list;
    GString *partial;
    guint skipped;
    size_t bytes;
    bool more, too_long;
} Reader;

/* False: the page is full and there is one more. */
static bool
end_record(Reader *r)
{
    const RecordsSpec *spec = r->spec;

    if (spec->keep != NULL && !spec->keep(r->partial->str, spec->keep_ctx)) {
        /* not of this list */
    } else if (r->skipped < spec->skip) {
        r->skipped++;
    } else if (r->list->len == spec->max) {
        r->more = true;
        return false;
    } else {
        r->bytes += r->partial->len;
        g_ptr_array_add(r->list, g_strndup(r->partial->str, r->partial->len));
    }
    g_string_truncate(r->partial, 0);
    return true;
}

static bool
on_output(const guint8 *bytes, size_t n, void *ctx)
{
    Reader *r = ctx;

    while (n > 0) {
        const guint8 *end = memchr(bytes, r->spec->separator, n);
        size_t part = end != NULL ? (size_t)(end - bytes) : n;

        if (r->partial->len + part > RECORD_MAX ||
            (r->spec->bytes_max > 0 && r->bytes > r->spec->bytes_max)) {
            r->too_long = true;
            return false;
        }
        g_string_append_len(r->partial, (const char *)bytes, (gssize)part);
        if (end == NULL)
            break;
        if (!end_record(r))
            return false;
        bytes += part + 1;
        n -= part + 1;
    }
    return true;
}

GPtrArray *
records_read(GitRepo *repo, const RecordsSpec *spec, bool *ret_more, GError **error)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) partial = g_string_new(NULL);
    Reader reader = {.spec = spec, .list = list, .partial = partial};
    GitCall call = {
        .args = spec->args,
        .take = on_output,
        .ctx = &reader,
        .timeout_ms = spec->timeout_ms,
        .cancel = spec->cancel,
    };

    if (!git_run(repo, &call, NULL, error))
        return NULL;
    if (reader.too_long) {
        err_set(error, ERR_LIMIT, "a name of more than %d bytes, or too many names", RECORD_MAX);
        return NULL;
    }
    if (ret_more != NULL)
        *ret_more = reader.more;
    return g_steal_pointer(&list);
}
