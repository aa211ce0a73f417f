/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v3/text.h"

#include <errno.h>

#include "api/state.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/path.h"
#include "forge/diff.h"

enum { PATCHES_MAX = 250 }; /* commits */

typedef struct Sink {
    int fd;
    guint64 bytes;
    bool too_long;
    int problem; /* errno; 0: none */
} Sink;

static bool
take(const guint8 *bytes, size_t n, void *ctx)
{
    Sink *s = ctx;

    s->bytes += n;
    s->too_long = s->bytes > V3_TEXT_MAX;
    if (!s->too_long && !io_write_all(s->fd, bytes, n))
        s->problem = errno;
    return !s->too_long && s->problem == 0;
}

/* A message for each commit, as `git am` takes it. */
static bool
write_patches(GitRepo *git, const V3TextSpec *spec, Sink *sink, GError **error)
{
    g_autofree char *except = g_strconcat("^", spec->without, NULL);
    g_autofree char *most = g_strdup_printf("-%d", spec->without != NULL ? PATCHES_MAX : 1);
    const GitCall call = {
        .args = GIT_ARGS("format-patch", "--stdout", "--no-signature", "--no-ext-diff", "--no-textconv",
                         "--full-index", "--binary", "-M", most, spec->new,
                         spec->without != NULL ? except : "--"),
        .timeout_ms = DIFF_TIMEOUT_MS,
        .take = take,
        .ctx = sink,
    };

    return git_run(git, &call, NULL, error);
}

bool
v3_text_make(GitRepo *git, V3Work *work, V3Media media, const V3TextSpec *spec, GError **error)
{
    const DiffSpec diff = {.old = spec->old, .new = spec->new};
    g_autofree char *folder = g_build_filename(work->call->api->home, "tmp", NULL);
    autofd fd = path_open_nameless(folder, error);
    Sink sink = {.fd = fd};
    bool cut = false;

    if (fd < 0 || (media == V3_DIFF ? !diff_stream(git, &diff, take, &sink, &cut, error)
                                    : !write_patches(git, spec, &sink, error)))
        return false;
    errno = sink.problem;
    if (sink.problem != 0)
        return err_errno(error, "write patches to a temporary file");
    if (cut || sink.too_long) {
        work->error_status = 406;
        return err_set(error, ERR_LIMIT, "this is longer than %d bytes; ask for the files, page by page",
                       V3_TEXT_MAX);
    }
    work->type = media == V3_DIFF ? "application/vnd.github.diff; charset=utf-8"
                                  : "application/vnd.github.patch; charset=utf-8";
    work->fd = g_steal_fd(&fd);
    return true;
}
