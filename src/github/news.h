/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"
#include "github/account.h"

/* What is told of there becomes events here, each once, whether a webhook or a poll tells first:
 * the same kinds as our own forge's, with "source": "github" in their data and the actor
 * "github:login".  What is told of a pull request that was opened from here becomes rows instead (arrive.h),
 * whose own events have that actor. */

enum {
    GITHUB_HOOK_BODY_MAX = 4 << 20,
    GITHUB_DELIVERY_DAYS = 7, /* how long one is known to have been here */
    GITHUB_GUID_MAX = 100,
};

typedef struct GithubNews {
    const char *base_url;
    const char *name;    /* of the event there: "pull_request" */
    const char *guid;    /* of the delivery; NULL: a poll found it */
    const Json *payload; /* with `repository`; borrowed */
    bool is_quiet;       /* rows only: it is no news */
} GithubNews;

typedef enum GithubTaken {
    GITHUB_TAKEN,
    GITHUB_TAKEN_BEFORE, /* the same delivery, or the same thing */
    GITHUB_NOT_OURS,     /* a repository that nobody mirrors, or a kind that means nothing here */
} GithubTaken;
typedef void (*GithubNewsFunc)(GithubTaken taken, const GError *error, void *data);
/* A push begins a fetch of the mirror. */
void github_news_take(GithubAccounts *accounts, Forge *forge, Db *db, const GithubNews *news,
                      GithubNewsFunc done, void *data);
