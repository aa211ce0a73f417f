/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/db.h"
#include "json/json.h"

/* Actors ("local", "coop", "key:ID", "agent:ID") as the users that faces show:
 *
 *     {"actor": "key:…", "login": "ci-robot", "id": 81234, "type": "User" | "Bot"}
 *
 * The login is made of the name of the key or identity, in lower-case letters, digits and "-"; of
 * several alike the oldest has it alone and the others carry a part of their id.  The id is made of
 * the actor, so that both outlive the key. */
typedef struct People People;

People *people_load(DbTx *tx, GError **error);
void people_free(People *people);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(People, people_free)

Json *people_json(const People *people, const char *actor); /* null for NULL */
/* The actor of a login or of an actor that is known; NULL: nobody's.  Borrowed. */
const char *people_find(const People *people, const char *login);

/* All of this outside of a job: `actor` copied. */
gint64 person_id(const char *actor);
