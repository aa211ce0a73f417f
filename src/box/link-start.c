/* SPDX-License-Identifier: Apache-2.0 */
/* How a run begins: the caller's wishes checked and packed. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "box/link-private.h"
#include "wire/channel.h"

static bool
take_args(const RunSpec *spec, FrameStart *start, GError **error)
{
    while (spec->argv != NULL && spec->argv[start->argc] != NULL) {
        if (start->argc == FRAME_ARGS_MAX)
            return err_set(error, ERR_INVALID, "more than %d arguments", FRAME_ARGS_MAX);
        start->argv[start->argc] = spec->argv[start->argc];
        start->argc++;
    }
    if (start->argc == 0 || start->argv[0][0] == '\0')
        return err_set(error, ERR_INVALID, "no program is named");
    return true;
}

static bool
take_env(const RunSpec *spec, FrameStart *start, GError **error)
{
    while (spec->env != NULL && spec->env[start->envc] != NULL) {
        const char *pair = spec->env[start->envc];
        const char *equals = strchr(pair, '=');

        if (start->envc == FRAME_ARGS_MAX)
            return err_set(error, ERR_INVALID, "more than %d variables", FRAME_ARGS_MAX);
        if (equals == NULL || equals == pair)
            return err_set(error, ERR_INVALID, "a variable needs a name and a '='");
        start->envp[start->envc++] = pair;
    }
    return true;
}

static GBytes *
pack(const RunSpec *spec, GError **error)
{
    g_autofree FrameStart *start = g_new0(FrameStart, 1);
    g_autofree guint8 *bytes = g_malloc(CHANNEL_PACKET_MAX);
    bool streamed = spec->sink != NULL;

    start->flags = (spec->flags & ~(unsigned)START_BLOCK) | (streamed ? START_BLOCK : 0u);
    start->timeout_ms = spec->timeout_ms;
    start->rows = spec->rows;
    start->columns = spec->columns;
    start->ring_bytes = streamed ? STREAMED_RING_BYTES : RUN_RING_BYTES;
    start->spill_bytes = streamed ? 0 : RUN_SPILL_BYTES;
    start->user = spec->user != NULL ? spec->user : "";
    start->cwd = spec->cwd != NULL ? spec->cwd : "";
    if (!take_args(spec, start, error) || !take_env(spec, start, error))
        return NULL;
    if (strlen(start->cwd) >= FRAME_PATH_MAX) {
        err_set(error, ERR_INVALID, "the working folder's name is too long");
        return NULL;
    }
    size_t n = frame_start_pack(start, bytes, CHANNEL_PACKET_MAX);
    if (n == 0) {
        err_set(error, ERR_INVALID, "arguments and environment are too long");
        return NULL;
    }
    return g_bytes_new(bytes, n);
}

Run *
box_link_start(BoxLink *link, const RunSpec *spec, GError **error)
{
    bool logged = spec->sink == NULL;

    if (link->closing || link->stopping) {
        err_set(error, ERR_UNAVAILABLE, "the box is gone");
        return NULL;
    }
    if (g_hash_table_size(link->runs) >= FRAME_RUNS_MAX) {
        err_set(error, ERR_LIMIT, "%d commands at once are the most", FRAME_RUNS_MAX);
        return NULL;
    }
    if ((logged ? link->last_run : link->last_streamed & ~RUN_ID_STREAMED) >= RUN_ID_STREAMED - 1) {
        err_set(error, ERR_LIMIT, "the box has had too many commands");
        return NULL;
    }
    GBytes *start = pack(spec, error);
    if (start == NULL)
        return NULL;
    Run *run = link_add(link, logged ? ++link->last_run : ++link->last_streamed, logged);

    run->start = start;
    run->fd = spec->fd != NULL ? g_steal_fd(spec->fd) : -1;
    run->terminal = (spec->flags & START_TTY) != 0;
    run->takes_input = (spec->flags & (START_TTY | START_STDIN)) != 0;
    run->started_us = clock_wall_us();
    run->sink = spec->sink;
    run->sink_ctx = spec->ctx;
    run->streams[0].begun = run->streams[1].begun = true;
    link_owe(run, OWE_START);
    return run_ref(run);
}
