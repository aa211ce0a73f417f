/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/file-call.h"
#include "base/buf.h"

/* Bytes of a box on their way to a client.  What was read waits here in a bounded queue; when
 * that is full the reader in the box waits too. */
typedef struct FileSend {
    FileCall *file; /* owned */
    BoxRead *read;  /* NULL: over */
    Buf waiting;
    bool ranged; /* first..last of the file were asked for */
    guint64 first, last;
    guint64 left; /* bytes of the answer that are still to come */
    bool sized;   /* … which the answer has promised */
    bool answered;
    bool failed;
    bool stopped; /* the box waits for box_read_resume() */
    bool held;    /* a function up the stack still needs us */
    bool closed;  /* the answer is over */
} FileSend;

FileSend *file_send_new(FileCall *file); /* takes it */
/* Before the answer: with an error as the answer, unless it is NULL. */
void file_send_refuse(FileSend *send, const GError *error);

/* Answers; `length` < 0: not known.  The bytes follow, and it frees itself, perhaps at once. */
void file_send_answer(FileSend *send, int status, const char *type, gint64 length);

/* For BoxReadEvents, once answered. */
bool file_send_data(FileSend *send, const guint8 *bytes, size_t n);
/* Its read is freed after this. */
void file_send_end(FileSend *send, const GError *error);
