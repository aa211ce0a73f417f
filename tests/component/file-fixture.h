/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "http-fixture.h"
#include "http/file.h"

/* Every request is answered with `file`, or, if it is a PUT, read into it. */
typedef struct FileTest {
    Fixture f;
    int file;
    HttpFileSpec spec;
    guint64 max;
    guint uploads; /* that ended */
    guint64 bytes;
    int kind;  /* of the last one's error; -1: none */
    int fds;   /* of this process before */
    bool wait; /* the next answer is the test's to give: file_answer() */
    HttpRequest *kept;
} FileTest;

enum { FILE_LARGE = 64 * MIB };

void file_test_init(FileTest *t, const HttpLimits *limits);
/* Whatever the test opened after the init is closed by then. */
void file_test_clear(FileTest *t);

/* Answers the request that was kept, with the file or with the fate of its body. */
void file_answer(FileTest *t);

void file_fill(int fd, size_t n, GChecksum *sum /* NULL: none */);

/* Every disk thread waits, so that what is started stays in flight until the fd that is
 * returned is closed. */
int file_block_disk(FileTest *t);
