/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "store/events.h"

/* What the commands in an agent's box print, line by line, between the events of its work.
 *
 * command.started opens what it prints, and command.ended waits until all of it was told.  Lines are in no
 * log of events, so they have no seq: the id of everything in the stream is the seq of the last event, and
 * behind it where each command is that still prints, "123;7:2048.0,9:0.17" (run, standard output, standard
 * error).  A reader that comes back with it goes on exactly there.
 *
 * Nobody waits for a reader: what it is too slow for is read from the files, and what is not there any
 * more is told as missing. */
typedef struct StreamLines StreamLines;

enum { STREAM_LINES_RUNS_MAX = 8, STREAM_LINES_ID_MAX = 512 };

/* `wake`: there may be more. */
StreamLines *stream_lines_new(ApiCall *call, void (*wake)(void *data), void *data);
void stream_lines_free(StreamLines *lines);

/* The box of the work, if it is known; events say so too.  `run` > 0: what it prints from now on. */
void stream_lines_begin(StreamLines *lines, const char *box_id, gint64 run);
/* `places`: what stood behind the ';' of an id. */
bool stream_lines_resume(StreamLines *lines, const char *box_id, const char *places, GError **error);

/* Of the stream, as it is now. */
void stream_lines_format_id(const StreamLines *lines, gint64 seq, char ret_id[STREAM_LINES_ID_MAX]);

/* False: lines come before this event, which has to be shown here again. */
bool stream_lines_take(StreamLines *lines, const Event *event);
/* One event with some lines; `*ret_lines` counts them. */
HttpPull stream_lines_pull(StreamLines *lines, Buf *out, gint64 seq, guint64 *ret_lines);
/* Now and then: commands of a server that was started again are found. */
void stream_lines_beat(StreamLines *lines);
