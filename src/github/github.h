/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "github/account.h"
#include "github/upstream.h"

/* Everything about GitHub that a server has: accounts, and what goes there and comes from there. */
typedef struct Github Github;

typedef struct GithubSpec {
    Loop *loop; /* borrowed, as are the next three */
    Db *db;
    EventLog *events;
    Forge *forge;
    const char *home; /* where the key of sealed secrets is */
    guint write_pause_ms;
    gint64 poll_ms;
    const char *token, *token_base; /* of the environment; NULL: none */
} GithubSpec;

Github *github_new(const GithubSpec *spec, GError **error);
/* After forge_load(). */
void github_load(Github *github, DbDone done, void *data);
/* Before the forge. */
void github_free(Github *github);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Github, github_free)

GithubAccounts *github_accounts(Github *github);
Upstream *github_upstream(Github *github);
