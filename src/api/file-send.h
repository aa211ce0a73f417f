/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/file-call.h"

/* Bytes of a box on their way to a client, fetched when the client's socket has room: what is not
 * fetched stays in the box. */
typedef struct FileSend {
    FileCall *file; /* owned */
    BoxRead *read;  /* NULL: over */
    bool ranged;    /* first..last of the file were asked for */
    guint64 first, last;
    guint64 left; /* bytes of the answer that are still to come */
    bool sized;   /* … which the answer has promised */
    bool answered;
    bool failed;
} FileSend;

FileSend *file_send_new(FileCall *file); /* takes it */
/* Before the answer: with an error as the answer, unless it is NULL. */
void file_send_refuse(FileSend *send, const GError *error);

/* Answers; `length` < 0: not known.  The bytes follow, and it frees itself, perhaps at once. */
void file_send_answer(FileSend *send, int status, const char *type, gint64 length);

/* For BoxReadEvents, once answered. */
void file_send_ready(FileSend *send);
/* Its read is freed after this. */
void file_send_end(FileSend *send, const GError *error);
