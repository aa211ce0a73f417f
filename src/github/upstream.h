/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"
#include "github/account.h"

/* What boxes do in a mirror, done there too by the host, which alone has the token: a branch that a box
 * pushed is pushed there, and a pull request of such a branch is opened and kept there.
 *
 * The event log is the source.  A follower makes rows of upstream_work out of events and moves its own
 * place in the same transaction; a row is marked before anything is sent, and whoever finds it marked
 * after a crash looks first.  Pushes never use force, never go to protected branches, and name commit and
 * branch by the row: nothing that a repository says decides where.  What is told of pull requests there
 * comes back by webhooks and, slowly, by asking (news.h). */
typedef struct Upstream Upstream;

typedef struct UpstreamSpec {
    Forge *forge; /* borrowed, as is all */
    GithubAccounts *accounts;
    Loop *loop;
    Db *db;
    EventLog *events;
    gint64 poll_ms; /* how often open pull requests are asked for */
} UpstreamSpec;

Upstream *upstream_new(const UpstreamSpec *spec);
void upstream_start(Upstream *upstream); /* after forge_load() and github_accounts_load() */
void upstream_free(Upstream *upstream);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Upstream, upstream_free)

/* There may be something to do. */
void upstream_wake(Upstream *upstream);
/* work.h */
void upstream_list(Upstream *upstream, ForgeJsonFunc done, void *data);
