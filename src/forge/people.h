/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/db.h"
#include "json/json.h"

/* Actors ("local", "coop", "key:ID", "agent:ID", "github:LOGIN") as the users that faces show:
 *
 *     {"actor": "key:…", "login": "ci-robot", "id": 81234, "type": "User" | "Bot"}
 *
 * The login is the name of the key or of the agent's identity, in lower-case letters, digits and "-";
 * agents carry "[bot]" behind it.  Where the name had to be changed, or an older key has the same, a
 * part of the id follows.  People of another place are shown as "LOGIN@github".  The number is made of the
 * actor, so that it outlives the key. */
typedef struct People People;

/* Within one job.  Whoever was looked up is kept. */
People *people_new(DbTx *tx);
void people_free(People *people);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(People, people_free)

Json *people_json(People *people, const char *actor, GError **error);
/* The actor behind a login, or an actor that is one already; ERR_INVALID: nobody's. */
char *people_find(People *people, const char *login, GError **error);

gint64 person_id(const char *actor);
