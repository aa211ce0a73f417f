/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "json/json.h"

/* A webhook's payload, or an object that a poll has found put in the same form, as an event of ours. */
typedef struct GithubMapped {
    const char *kind; /* of the event */
    char *actor;      /* "github:login" */
    Json *data;       /* without the repository */
    char *seen;       /* the same for the same thing, whoever tells of it */
    gint64 number;    /* of the pull request or issue there; 0: none */
} GithubMapped;
void github_mapped_clear(GithubMapped *mapped);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(GithubMapped, github_mapped_clear)

/* False: nothing of ours follows from it, or it makes no sense. */
bool github_map(const char *name, const Json *payload, GithubMapped *ret_mapped);
