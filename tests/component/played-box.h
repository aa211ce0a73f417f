/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/err.h"
#include "box/files.h"

/* A box that the test plays, in place of box/files.h: it fails, stalls and hurries when the test says
 * so. */
typedef struct Played {
    guint reads, writes; /* begun */
    guint cancelled;     /* of either */
    bool hungry;         /* nothing was there when somebody wanted to fetch */
    guint moved;         /* pieces that went past the server's memory */
    const BoxReadEvents *read;
    const BoxWriteEvents *write;
    void *read_ctx, *write_ctx;
    guint64 offset;
    gint64 length;
    int mode;
    GByteArray *offered; /* said by the box, and not fetched */
    GByteArray *written;
    size_t room;  /* what box_write_data() takes in all */
    guint ended;  /* box_write_end() was called */
    char *folder; /* that box_file_mkdir() was asked for */
    BoxFileFunc made;
    void *made_data;
    bool refuse;
    bool unknown; /* the caller's key is gone */
} Played;
extern Played played;

void played_init(void);
void played_clear(void); /* nothing is under way */

void tell_entry(guint64 size);
bool tell_data(const void *bytes, size_t n); /* false: it was not fetched */
void tell_read_end(ErrKind kind, const char *message);
void tell_room(size_t n);
void tell_write_end(ErrKind kind, const char *message);
void tell_made(ErrKind kind, const char *message);
