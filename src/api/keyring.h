/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "api/scope.h"
#include "base/id.h"
#include "base/rate.h"
#include "store/db.h"

/* The API keys.  A key is "e2b_" + 40 hex digits: 160 random bits, so a plain hash is enough
 * to store it by.  All keys are held in memory, of the revoked ones the newest; every change
 * is written first, together with its event, and takes effect when it is on the disk. */
enum {
    KEY_SECRET_LEN = 44,
    KEY_HASH_LEN = 32,
    KEY_NAME_MAX = 100,
    KEY_RING_MAX = 10000,     /* that are not revoked */
    KEY_REVOKED_SHOWN = 1000, /* the rest is only in the database, so that none comes back */
};

typedef struct Key {
    char id[ID_UUID_LEN + 1];
    char *name;
    char prefix[12]; /* "e2b_1a2b3c4": enough to recognise it by */
    guint8 hash[KEY_HASH_LEN];
    Scopes scopes;
    gint64 created_us;
    gint64 last_used_us; /* 0: never */
    gint64 expires_us;   /* 0: never */
    gint64 revoked_us;   /* 0: not */
    RateBucket rate;
    guint streams; /* open now */
    bool used;     /* since the last flush */
} Key;

typedef struct KeyRing KeyRing;

bool key_secret_is_well_formed(const char *secret);
void key_secret_new(char ret_secret[KEY_SECRET_LEN + 1]);

KeyRing *key_ring_new(Db *db);
void key_ring_free(KeyRing *ring);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KeyRing, key_ring_free)

/* Reads the table anew (start, and after a restore).  Hold ids, not pointers, across the
 * loop. */
void key_ring_load(KeyRing *ring, DbDone done, void *data);

/* Neither revoked nor expired; false for NULL. */
bool key_is_live(const Key *key);

/* NULL: unknown, revoked or expired; `*ret_why` says which in a word for the log. */
Key *key_ring_find(KeyRing *ring, const char *secret, const char **ret_why);
Key *key_ring_by_id(KeyRing *ring, const char *id);
void key_ring_list(KeyRing *ring, void (*each)(const Key *key, void *data), void *data);
bool key_ring_has_admin(const KeyRing *ring); /* a live one */

typedef struct KeySpec {
    const char *name;
    const char *secret; /* NULL: a new one is made */
    Scopes scopes;
    gint64 expires_us; /* 0: never */
    const char *actor;
} KeySpec;

/* `secret` is shown this once.  A secret that is known already (revoked ones included) is
 * ERR_CONFLICT. */
typedef void (*KeyMadeFunc)(const char *secret, const Key *key, const GError *error, void *data);
void key_ring_create(KeyRing *ring, const KeySpec *spec, KeyMadeFunc done, void *data);

/* ERR_NOT_FOUND for an unknown id; revoking twice is fine.  Sessions opened with the key end
 * with it. */
void key_ring_revoke(KeyRing *ring, const char *id, const char *actor, DbDone done, void *data);

/* Writes down when keys were last used. */
void key_ring_flush_used(KeyRing *ring);
