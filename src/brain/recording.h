/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "brain/ask.h"
#include "brain/tape.h"

/* Answers kept in a folder, one file each, found again by the digest of what was asked.  Since a
 * request has the whole conversation up to it, a folder of them is the conversation. */
typedef struct RecordingLabel { /* for who reads the file; not looked at again */
    const char *provider, *model, *path, *request;
} RecordingLabel;

enum {
    RECORDING_VERSION = 1,
    RECORDING_FILE_MAX = 2 * TAPE_BYTES_MAX,
    RECORDING_WAIT_MAX_MS = 50, /* between two pieces of a replay; they came when they came */
};

char *recording_encode(const Tape *tape, const RecordingLabel *label);
Tape *recording_decode(const char *text, size_t n, GError **error);

/* Both read and write files, and so belong in a thread.  ERR_NOT_FOUND: nothing was recorded. */
bool
recording_store(const char *folder, const guint8 digest[ASK_DIGEST_LEN], const char *text, GError **error);
Tape *recording_load(const char *folder, const guint8 digest[ASK_DIGEST_LEN], GError **error);
