/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "daemon/config.h"
#include "github/github.h"

/* What of GitHub this server has, made from its configuration. */
typedef struct ServeGithubSpec {
    const Config *config; /* borrowed, as is everything */
    Loop *loop;
    Db *db;
    EventLog *events;
    Forge *forge;
} ServeGithubSpec;
Github *serve_github_new(const ServeGithubSpec *spec, GError **error);

/* Tokens that were in the environment are overwritten where they stand (/proc shows that place): whoever
 * needs them has a copy.  What was there, as "NAME=value" and ended by NULL, for a program that is
 * started again and again. */
typedef char *GithubEnv;
GithubEnv *github_take_environment(void);
void github_env_free(GithubEnv *env);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GithubEnv, github_env_free)
