/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "box/run.h"

/* What a run has written, from two offsets on, whether the run goes on, has ended or is known
 * only by its logs. */
typedef struct OutputReader OutputReader;

typedef struct OutputSpec {
    Loop *loop;
    Run *run;           /* NULL: it is not in memory any more, and the next two say where */
    const char *folder; /* of the box's logs */
    guint32 id;
    guint64 out_offset, err_offset;
    FrameStream only; /* 0: both */
    void (*wake)(void *data);
    void *data;
} OutputSpec;

OutputReader *output_reader_new(const OutputSpec *spec);
/* No wake after it. */
void output_reader_free(OutputReader *reader);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OutputReader, output_reader_free)

/* As run_follower_next(). */
RunStep output_reader_next(OutputReader *reader, RunPiece *ret_piece);
