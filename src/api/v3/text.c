/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/text.h"

#include "base/err.h"
#include "forge/diff.h"

enum { PATCHES_MAX = 250 }; /* commits */

typedef struct Collector {
    GByteArray *bytes;
    bool too_long;
} Collector;

static bool
take(const guint8 *bytes, size_t n, void *ctx)
{
    Collector *c = ctx;

    c->too_long = c->bytes->len + n > V3_TEXT_MAX;
    if (!c->too_long)
        g_byte_array_append(c->bytes, bytes, (guint)n);
    return !c->too_long;
}

/* A message for each commit, as `git am` takes it. */
static bool
collect_patches(GitRepo *git, const V3TextSpec *spec, Collector *c, GError **error)
{
    g_autofree char *except = g_strconcat("^", spec->without, NULL);
    g_autofree char *most = g_strdup_printf("-%d", spec->without != NULL ? PATCHES_MAX : 1);
    const GitCall call = {
        .args = GIT_ARGS("format-patch", "--stdout", "--no-signature", "--no-ext-diff", "--no-textconv",
                         "--full-index", "--binary", "-M", most, spec->new,
                         spec->without != NULL ? except : "--"),
        .timeout_ms = DIFF_TIMEOUT_MS,
        .take = take,
        .ctx = c,
    };

    return git_run(git, &call, NULL, error);
}

bool
v3_text_make(GitRepo *git, V3Work *work, V3Media media, const V3TextSpec *spec, GError **error)
{
    const DiffSpec diff = {.old = spec->old, .new = spec->new};
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    Collector c = {.bytes = bytes};
    bool cut = false;

    if (media == V3_DIFF ? !diff_stream(git, &diff, take, &c, &cut, error)
                         : !collect_patches(git, spec, &c, error))
        return false;
    if (cut || c.too_long) {
        work->error_status = 406;
        return err_set(error, ERR_LIMIT, "this is longer than %d bytes; ask for the files, page by page",
                       V3_TEXT_MAX);
    }
    work->type = media == V3_DIFF ? "application/vnd.github.diff; charset=utf-8"
                                  : "application/vnd.github.patch; charset=utf-8";
    work->bytes = g_byte_array_free_to_bytes(g_steal_pointer(&bytes));
    return true;
}
