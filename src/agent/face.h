/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "json/json.h"

/* The server's face for agents (docs/design/18-team.md), behind the door of the box.  Every call waits a
 * while for a door or a server that is away, and then fails. */
typedef struct Face Face;

enum {
    FACE_PATIENCE_MS = 10 * 60 * 1000, /* how long it may be away */
    FACE_REPORT_MS = 2000,             /* what is only told is not worth more */
    FACE_ANSWER_MS = 30 * 1000,        /* of one call */
    FACE_ASK_MS = 24 * 60 * 60 * 1000, /* for a person's answer */
    FACE_ASK_WAIT_MS = 25 * 1000,      /* of one look for an answer */
};

/* From COOP_AGENT_URL, else where the models are. */
Face *face_new(int cancel_fd, GError **error);
void face_free(Face *face);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Face, face_free)
void face_set_patience(Face *face, gint64 ms);

/* Waits; false with ERR_CANCELLED: we are to end. */
bool face_pause(Face *face, gint64 ms, GError **error);

Json *face_brief(Face *face, GError **error);
/* `events` is borrowed.  Asked once, for FACE_REPORT_MS at most. */
bool face_report(Face *face, Json *events, GError **error);
bool face_done(Face *face, Json *report, GError **error);
/* `task` NULL: that of the box. */
char *face_plan(Face *face, const char *task, GError **error);

/* The question's id; `options` NULL: none. */
char *face_ask(Face *face, const char *question, Json *options, GError **error);
/* Waits for an answer, for FACE_ASK_MS at most: ERR_TIMEOUT. */
char *face_answer(Face *face, const char *question_id, GError **error);

/* `priority` NULL: normal. */
bool face_room_post(Face *face, const char *room_id, const char *text, const char *priority, GError **error);
Json *face_room_read(Face *face, const char *room_id, GError **error);
