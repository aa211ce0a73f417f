/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "github/upstream-private.h"

/* Labels and requests for reviews of a pull request there, made what they are here.
 *
 * Only what was changed here since both sides were last alike is changed there: so what somebody adds there
 * stays, and comes here by itself.  What is so already is not sent, whoever did it. */
typedef struct UpstreamNames {
    Upstream *upstream;
    Repo *repo;
    gint64 number;      /* there */
    const Json *before; /* {"labels": […], "reviewers": […]}, as they were last alike; NULL: never */
    const Json *wanted; /* the same, as they are here */
    const Json *there;  /* the pull request */
} UpstreamNames;

/* `n_sent`: calls that were made.  `problems`: what was refused for good, as texts; borrowed. */
typedef void (*UpstreamNamesFunc)(guint n_sent, const Json *problems, gint64 wait_us, const GError *error,
                                  void *data);
void upstream_names(const UpstreamNames *names, UpstreamNamesFunc done, void *data);

/* What both sides are alike in once `there` is as it is: `wanted` without what could not be put there. */
void upstream_names_settle(Json *wanted, const Json *before, const Json *there);
