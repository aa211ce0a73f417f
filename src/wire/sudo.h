/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

/* How coop-sudo, inside a box, asks for a command as another user.  Nothing inside can gain rights
 * by exec (no_new_privs), so the command is started by somebody who has them: a process between
 * init and the caller's run, to which init hands the connection.
 *
 * The socket is SOCK_SEQPACKET with an abstract name: it lives in the box's network namespace, so
 * nobody else's processes reach it, and it leaves nothing on the disk.  Whether it is init that
 * listens there the client sees by SO_PEERCRED (pid 1, uid 0).
 *
 * The client sends a SudoRequest with its standard descriptors, then its texts, each with a NUL,
 * in packets of up to SUDO_PACKET_MAX: the user, the directory, argv, the environment.  From then
 * on both send SudoSay.  The end of the connection is the end of the command and of all it
 * started; after EXITED what it left in the background stays. */

#define SUDO_SOCKET "coop/sudo"

enum {
    SUDO_VERSION = 1,
    SUDO_FDS = 3,
    SUDO_PACKET_MAX = 32 * 1024,
    SUDO_TEXT_MAX = 2 * 1024 * 1024, /* bytes of all texts */
    SUDO_TEXTS_MAX = 64 * 1024,      /* argv and environment */
    SUDO_REQUEST_MS = 5000,          /* for the whole of it to come */
};

typedef enum SudoFlags {
    SUDO_TTY = 1 << 0,   /* standard input and output are a terminal: the command gets its own */
    SUDO_SHELL = 1 << 1, /* the user's shell; argv is nothing, or one line for it */
    SUDO_LOGIN = 1 << 2, /* the same as at a login, in the user's home */
} SudoFlags;

typedef struct SudoRequest {
    uint32_t version, flags;
    uint32_t bytes; /* of the texts */
    uint32_t argc, envc;
} SudoRequest;

typedef enum SudoKind {
    SUDO_SIGNAL = 1, /* from the client: value */
    SUDO_STARTED,    /* with SUDO_TTY the terminal's other end comes along */
    SUDO_FAILED,     /* stage (FrameStage), value: errno */
    SUDO_STOPPED,    /* value: the signal */
    SUDO_EXITED,     /* value: as wait() gives it */
} SudoKind;

typedef struct SudoSay {
    uint32_t kind, stage;
    int32_t value;
} SudoSay;
