/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/err.h"
#include "github/client.h"
#include "http-script.h"

/* A client against a server that answers as a table says, one connection a try.  Time stands still; what
 * the client would wait is jumped over and counted. */
typedef struct GithubWorld {
    Loop *loop;
    Script *script;
    GPtrArray *scripts; /* ScriptStep[] */
    GithubClient *client;
    gint64 now_us, waited_us;
    /* of the last call */
    bool has_come;
    int status;
    Json *json;
    char *next;
    bool cached, found;
    gint64 wait_us;
    GError *error;
} GithubWorld;

#define WORLD_TOKEN "ghp_not-to-be-seen-0123456789"

/* Answers as bytes; %s in one is the server's own URL.  The last one is NULL. */
GithubWorld *github_world_new(const char *const *answers);
void github_world_free(GithubWorld *world);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GithubWorld, github_world_free)

void on_github_answer(const GithubAnswer *answer, const GError *error, void *world); /* a GithubFunc */
void github_world_wait(GithubWorld *world);
void github_world_call(GithubWorld *world, const GithubRequest *request);
/* NULL `text`: any. */
void github_world_fails(GithubWorld *world, ErrKind kind, const char *text);

/* A whole answer; `more` are headers with their ends of lines. */
#define GITHUB_ANSWER(status, more, body) "HTTP/1.1 " status "\r\nConnection: close\r\n" more "\r\n" body
