/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/host.h"
#include "box/rows.h"

/* What a caller wants of a box, checked before anything is made. */

enum {
    WISH_ID_MAX = 128, /* agent_id, task_id, squad_id */
    WISH_URL_MAX = 2048,
    WISH_LEASE_MAX = 255,
    WISH_ENV_BYTES_MAX = 32 * 1024, /* an environment travels in one packet, with the command */
    WISH_LIFE_MIN_MS = 1000,
};

/* Everything that needs no template. */
bool wish_check(const BoxSpec *spec, GError **error);

/* What the box gets: what was asked for, else the template's, else the server's; ERR_INVALID
 * when something asked for is more than the server gives or less than can work. */
bool wish_limits(const KeeperLimits *asked, const Template *template, const BoxHostSpec *host,
                 KeeperLimits *ret_limits, GError **error);

/* The facts of a box made of `spec` (checked) and `template`; `env` (NULL: none) is under theirs. */
void wish_facts(const BoxSpec *spec, const Template *template, const KeeperLimits *limits, char **env,
                BoxFacts *ret_facts);

/* `under` with the entries of `over` in their places or behind: no name twice.  Either may be
 * NULL. */
char **wish_merge_env(const char *const *under, const char *const *over);

/* A copy that can wait. */
typedef struct BoxWish BoxWish;
BoxWish *box_wish_new(const BoxSpec *spec);
const BoxSpec *box_wish_spec(const BoxWish *wish);
void box_wish_free(BoxWish *wish);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BoxWish, box_wish_free)
