/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/db.h"
#include "json/json.h"

/* What was told of a pull request that was opened from here, made into rows of the forge (forge/arrival.h).
 * What we have written there ourselves comes back too, and is known again by its id or its marker. */
typedef struct GithubArrive {
    const char *repository_id;
    const char *name, *action; /* of the event there */
    const char *actor;         /* "github:login" */
    const char *login;         /* ours there; "": not known */
    const Json *object;        /* the comment, review or pull request */
    gint64 upstream_number;
} GithubArrive;

typedef struct GithubArrived {
    gint64 number; /* ours; 0: it is of no pull request of ours */
    bool is_part;  /* something said: rows tell of it, and nothing else does */
    bool has_changed;
    bool is_merged;
} GithubArrived;

bool github_arrive(DbTx *tx, const GithubArrive *arrive, GithubArrived *ret_arrived, GError **error);
/* The member of a payload that it is about; NULL: nothing of this kind comes as rows. */
const char *github_arrive_member(const char *name);
