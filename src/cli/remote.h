/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"
#include "daemon/config.h"
#include "json/json.h"

/* How a command reaches the server:
 *
 *     1. the URL that was named (--server, server.url, SANDBOX_SERVICE_URL), with a key;
 *     2. else the control socket of the data folder, whose owner needs none;
 *     3. else the first address of the configuration, with a key.
 *
 * The key is that of COOP_API_KEY, else of E2B_API_KEY, else the first admin key in the data
 * folder.  That last one is shown to servers on this machine only.
 *
 * A call runs the default main context until its answer is there. */
typedef struct Remote Remote;

/* Says what is wrong and returns its code, or EXIT_CODE_OK. */
ExitCode remote_open(Cli *cli, Remote **ret_remote);
void remote_free(Remote *remote);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Remote, remote_free)

const Config *remote_config(const Remote *remote);
/* The URL, or the path of the socket. */
const char *remote_address(const Remote *remote);
/* False: neither a key nor the socket, so only what is public can be asked. */
bool remote_has_key(const Remote *remote);

typedef struct RemoteCall {
    const char *method;         /* NULL: GET */
    const char *path;           /* with its query */
    const char *const *headers; /* further ones, NULL-terminated; may be NULL */
    const Json *body;           /* NULL: none */
    int body_fd;                /* a regular file to send; -1: none */
    guint answer_ms;            /* until the answer begins; 0: as long as it takes */
    guint stall_ms;             /* without a byte of it; 0: the same */
    /* Takes the bytes of a good answer, in place of RemoteReply.body.  False: no more. */
    bool (*data)(const guint8 *bytes, size_t n, void *ctx);
    void *ctx;
} RemoteCall;
#define REMOTE_CALL_INIT                                                                                     \
    {                                                                                                        \
        .body_fd = -1, .answer_ms = 60000, .stall_ms = 60000                                                 \
    }

typedef struct RemoteReply {
    ExitCode code;
    int status;    /* 0: nothing came */
    char *message; /* of a failure, with what to do about it; NULL: none */
    Json *body;    /* NULL: it had none */
} RemoteReply;
void remote_reply_clear(RemoteReply *reply);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RemoteReply, remote_reply_clear)

void remote_try(Remote *remote, const RemoteCall *call, RemoteReply *ret_reply);
/* The same, but says what went wrong. */
ExitCode remote_run(Remote *remote, const RemoteCall *call, Json **ret_body);
/* A call of the usual kind; `body` and `ret_body` may be NULL. */
ExitCode remote_call(Remote *remote, const char *method, const char *path, const Json *body, Json **ret_body);

/* DELETE of `path`, which is called `name`; says so. */
ExitCode remote_remove(Cli *cli, const char *path, const char *name);

/* Sends bytes beside a call that is under way; `done` comes from the loop, with status 0 when no
 * answer came, and what is returned is gone then. */
typedef struct RemoteSend RemoteSend;
typedef void (*RemoteSentFunc)(int status, void *ctx);
RemoteSend *remote_send(Remote *remote, const char *path, const char *type, const void *bytes, size_t n,
                        RemoteSentFunc done, void *ctx);
void remote_send_cancel(RemoteSend *send); /* `done` is not called */

/* From a callback of the loop: the call or wait under way ends at once, and so do all that
 * follow, with EXIT_CODE_OK. */
void remote_cancel(Remote *remote);
bool remote_is_cancelled(const Remote *remote);
/* False: cancelled. */
bool remote_wait(Remote *remote, guint ms);
