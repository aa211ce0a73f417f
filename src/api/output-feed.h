/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "api/output-reader.h"

/* The output of a command as server-sent events, byte for byte:
 *
 *   sandbox  the box, when both were asked for
 *   started  the command, when its start is what was asked for
 *   output   {"stream", "offset", "text"}, or "base64" where the bytes are not UTF-8
 *   gap      {"stream", "offset", "bytes"}: so many are not there any more
 *   end      how it ended
 *
 * The id of each is "OUT.ERR", the offsets behind it: a client that comes back with it goes on
 * exactly there.  A piece of text is not cut inside a character. */

typedef struct OutputOffsets {
    guint64 out, err;
} OutputOffsets;

/* From the Last-Event-ID header; zeros without one. */
bool output_offsets_read(const char *last_id, OutputOffsets *ret_offsets, GError **error);

typedef struct OutputFeedSpec {
    Run *run; /* NULL: known by its logs only, as in OutputSpec */
    const char *folder;
    guint32 id;
    OutputOffsets offsets;
    Json *sandbox, *started; /* taken; NULL: not told */
    Json *end;               /* taken; of a run that is not in memory */
} OutputFeedSpec;

/* Answers with the stream; the caller may go away at any time, and the command goes on. */
void call_respond_output_feed(ApiCall *call, const OutputFeedSpec *spec);
