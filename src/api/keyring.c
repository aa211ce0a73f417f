/* SPDX-License-Identifier: Apache-2.0 */
#include "api/keyring.h"

#include <sodium.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "store/events.h"
#include "json/json.h"

struct KeyRing {
    Db *db;
    GPtrArray *keys;     /* Key*, owned */
    GHashTable *by_hash; /* hash bytes -> Key*; keys that are not revoked */
    GHashTable *by_id;   /* id -> Key*; all */
};

bool
key_secret_is_well_formed(const char *secret)
{
    if (strlen(secret) != KEY_SECRET_LEN || !g_str_has_prefix(secret, "e2b_"))
        return false;
    return strspn(secret + 4, "0123456789abcdef") == KEY_SECRET_LEN - 4;
}

void
key_secret_new(char ret_secret[KEY_SECRET_LEN + 1])
{
    memcpy(ret_secret, "e2b_", 4);
    id_random_hex(ret_secret + 4, (KEY_SECRET_LEN - 4) / 2);
}

static void
hash_secret(const char *secret, guint8 ret_hash[KEY_HASH_LEN])
{
    crypto_generichash(ret_hash, KEY_HASH_LEN, (const guint8 *)secret, strlen(secret), NULL, 0);
}

static guint
hash_of_hash(gconstpointer hash)
{
    guint h;

    memcpy(&h, hash, sizeof h); /* it is uniform already */
    return h;
}

static gboolean
hash_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, KEY_HASH_LEN) == 0;
}

static void
key_free(gpointer data)
{
    Key *key = data;

    g_free(key->name);
    g_free(key);
}

KeyRing *
key_ring_new(Db *db)
{
    KeyRing *ring = g_new0(KeyRing, 1);

    ring->db = db;
    ring->keys = g_ptr_array_new_with_free_func(key_free);
    ring->by_hash = g_hash_table_new(hash_of_hash, hash_equal);
    ring->by_id = g_hash_table_new(g_str_hash, g_str_equal);
    return ring;
}

void
key_ring_free(KeyRing *ring)
{
    if (ring == NULL)
        return;
    g_hash_table_unref(ring->by_hash);
    g_hash_table_unref(ring->by_id);
    g_ptr_array_unref(ring->keys);
    g_free(ring);
}

/* Once somebody has made and revoked many, the oldest are left out. */
static void
forget_oldest_revoked(KeyRing *ring)
{
    const Key *oldest = NULL;
    guint at = 0;

    if (ring->keys->len - g_hash_table_size(ring->by_hash) <= KEY_REVOKED_SHOWN)
        return;
    for (guint i = 0; i < ring->keys->len; i++) {
        const Key *key = ring->keys->pdata[i];

        if (key->revoked_us != 0 && (oldest == NULL || key->revoked_us < oldest->revoked_us)) {
            oldest = key;
            at = i;
        }
    }
    g_hash_table_remove(ring->by_id, oldest->id);
    g_ptr_array_remove_index(ring->keys, at);
}

static void
add_key(KeyRing *ring, Key *key)
{
    g_ptr_array_add(ring->keys, key);
    g_hash_table_insert(ring->by_id, key->id, key);
    if (key->revoked_us == 0)
        g_hash_table_replace(ring->by_hash, key->hash, key);
}

/* ---- looking up ---- */

bool
key_is_live(const Key *key)
{
    return key != NULL && key->revoked_us == 0 && (key->expires_us == 0 || key->expires_us > clock_wall_us());
}

Key *
key_ring_find(KeyRing *ring, const char *secret, const char **ret_why)
{
    guint8 hash[KEY_HASH_LEN];

    *ret_why = "malformed";
    if (!key_secret_is_well_formed(secret))
        return NULL;
    hash_secret(secret, hash);
    Key *key = g_hash_table_lookup(ring->by_hash, hash);
    *ret_why = "unknown";
    if (key == NULL)
        return NULL;
    *ret_why = "expired";
    if (!key_is_live(key))
        return NULL;
    key->used = true;
    return key;
}

Key *
key_ring_by_id(KeyRing *ring, const char *id)
{
    return g_hash_table_lookup(ring->by_id, id);
}

void
key_ring_list(KeyRing *ring, void (*each)(const Key *key, void *data), void *data)
{
    for (guint i = 0; i < ring->keys->len; i++)
        each(ring->keys->pdata[i], data);
}

bool
key_ring_has_admin(const KeyRing *ring)
{
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, ring->by_hash);
    while (g_hash_table_iter_next(&iter, NULL, &key)) {
        if (key_is_live(key) && (((Key *)key)->scopes & SCOPE_ADMIN) != 0)
            return true;
    }
    return false;
}

/* ---- loading ---- */

typedef struct Load {
    KeyRing *ring;
    GPtrArray *keys;
    DbDone done;
    void *data;
} Load;

static Key *
read_key(DbRows *rows)
{
    Key *key = g_new0(Key, 1);
    size_t n;
    const void *hash = db_rows_blob(rows, 2, &n);

    g_strlcpy(key->id, db_rows_text(rows, 0), sizeof key->id);
    key->name = g_strdup(db_rows_text(rows, 1));
    memcpy(key->hash, hash, MIN(n, (size_t)KEY_HASH_LEN));
    g_strlcpy(key->prefix, db_rows_text(rows, 3), sizeof key->prefix);
    (void)scopes_parse(db_rows_text(rows, 4), &key->scopes, NULL); /* none is as good as no key */
    key->created_us = db_rows_int(rows, 5);
    key->last_used_us = db_rows_int(rows, 6);
    key->expires_us = db_rows_int(rows, 7);
    key->revoked_us = db_rows_int(rows, 8);
    return key;
}

static bool
load_work(DbTx *tx, void *data, GError **error)
{
    Load *load = data;
    g_autoptr(DbRows) rows = db_query(
        tx,
        "SELECT id, name, hash, prefix, scopes, created_us, last_used_us, expires_us, revoked_us "
        "FROM keys WHERE revoked_us = 0 OR id IN "
        "(SELECT id FROM keys WHERE revoked_us <> 0 ORDER BY revoked_us DESC LIMIT ?) "
        "ORDER BY created_us, id",
        DB_ARGS(db_int(KEY_REVOKED_SHOWN)), error);
    bool more = true;

    if (rows == NULL)
        return false;
    while (db_rows_next(rows, &more, error)) {
        if (!more)
            return true;
        g_ptr_array_add(load->keys, read_key(rows));
    }
    return false;
}

static void
load_done(void *data, const GError *error)
{
    Load *load = data;
    KeyRing *ring = load->ring;

    if (error == NULL) {
        g_hash_table_remove_all(ring->by_hash);
        g_hash_table_remove_all(ring->by_id);
        g_ptr_array_set_size(ring->keys, 0);
        g_ptr_array_set_free_func(load->keys, NULL);
        for (guint i = 0; i < load->keys->len; i++)
            add_key(ring, load->keys->pdata[i]);
    }
    load->done(load->data, error);
}

static void
load_free(gpointer data)
{
    Load *load = data;

    g_ptr_array_unref(load->keys);
    g_free(load);
}

void
key_ring_load(KeyRing *ring, DbDone done, void *data)
{
    Load *load = g_new0(Load, 1);

    *load = (Load){.ring = ring, .done = done, .data = data};
    load->keys = g_ptr_array_new_with_free_func(key_free);
    /* In the lane of the writes, so that it takes its turn among them: what was made before is
     * in the table, and what is made after is told after. */
    db_write(ring->db, load_work, load_done, load, load_free);
}

/* ---- making ---- */

typedef struct Make {
    KeyRing *ring;
    Key *key; /* handed over to the ring when it is written */
    char secret[KEY_SECRET_LEN + 1];
    char *actor;
    KeyMadeFunc done;
    void *data;
} Make;

static bool
append_key_event(DbTx *tx, const char *kind, const Key *key, const char *actor, GError **error)
{
    g_autofree char *scopes = scopes_format(key->scopes);
    g_autoptr(Json) object = json_pack("{s:s, s:s, s:s, s:s}", "id", key->id, "name", key->name, "prefix",
                                       key->prefix, "scopes", scopes);
    g_autofree char *text = json_encode(object);
    EventSpec event = {.kind = kind, .actor = actor, .data = text};

    return event_append(tx, &event, NULL, error);
}

static bool
make_work(DbTx *tx, void *data, GError **error)
{
    Make *make = data;
    const Key *k = make->key;
    g_autofree char *scopes = scopes_format(k->scopes);

    return db_exec(tx,
                   "INSERT INTO keys (id, name, hash, prefix, scopes, created_us, last_used_us, expires_us, "
                   "revoked_us) VALUES (?, ?, ?, ?, ?, ?, 0, ?, 0)",
                   DB_ARGS(db_text(k->id), db_text(k->name), db_blob(k->hash, KEY_HASH_LEN),
                           db_text(k->prefix), db_text(scopes), db_int(k->created_us), db_int(k->expires_us)),
                   error) &&
           append_key_event(tx, "key.created", k, make->actor, error);
}

static void
make_done(void *data, const GError *error)
{
    Make *make = data;
    const Key *key = make->key;

    if (error != NULL) {
        make->done(NULL, NULL, error, make->data);
        return;
    }
    add_key(make->ring, g_steal_pointer(&make->key));
    make->done(make->secret, key, NULL, make->data);
}

static void
make_free(gpointer data)
{
    Make *make = data;

    if (make->key != NULL)
        key_free(make->key);
    sodium_memzero(make->secret, sizeof make->secret);
    g_free(make->actor);
    g_free(make);
}

void
key_ring_create(KeyRing *ring, const KeySpec *spec, KeyMadeFunc done, void *data)
{
    Make *make = g_new0(Make, 1);
    Key *key = g_new0(Key, 1);
    g_autoptr(GError) error = NULL;

    if (g_hash_table_size(ring->by_hash) >= KEY_RING_MAX) {
        err_set(&error, ERR_LIMIT, "there are %d keys already: revoke some", KEY_RING_MAX);
        done(NULL, NULL, error, data);
        g_free(key);
        g_free(make);
        return;
    }
    if (spec->secret != NULL)
        g_strlcpy(make->secret, spec->secret, sizeof make->secret);
    else
        key_secret_new(make->secret);
    id_new_uuid(key->id);
    key->name = g_strdup(spec->name);
    hash_secret(make->secret, key->hash);
    g_strlcpy(key->prefix, make->secret, sizeof key->prefix);
    key->scopes = spec->scopes;
    key->created_us = clock_wall_us();
    key->expires_us = spec->expires_us;
    make->ring = ring;
    make->key = key;
    make->actor = g_strdup(spec->actor);
    make->done = done;
    make->data = data;
    db_write(ring->db, make_work, make_done, make, make_free);
}

/* ---- revoking ---- */

typedef struct Revoke {
    KeyRing *ring;
    char id[ID_UUID_LEN + 1];
    char *actor;
    gint64 at_us;
    DbDone done;
    void *data;
} Revoke;

static bool
revoke_work(DbTx *tx, void *data, GError **error)
{
    Revoke *r = data;
    g_autoptr(Json) object = json_pack("{s:s}", "id", r->id);
    g_autofree char *text = json_encode(object);
    EventSpec event = {.kind = "key.revoked", .actor = r->actor, .data = text};

    if (!db_exec(tx, "UPDATE keys SET revoked_us = ? WHERE id = ? AND revoked_us = 0",
                 DB_ARGS(db_int(r->at_us), db_text(r->id)), error))
        return false;
    if (db_changes(tx) == 0)
        return true;
    return db_exec(tx, "DELETE FROM sessions WHERE key_id = ?", DB_ARGS(db_text(r->id)), error) &&
           event_append(tx, &event, NULL, error);
}

static void
revoke_done(void *data, const GError *error)
{
    Revoke *r = data;
    Key *key = key_ring_by_id(r->ring, r->id);

    if (error == NULL && key != NULL && key->revoked_us == 0) {
        key->revoked_us = r->at_us;
        g_hash_table_remove(r->ring->by_hash, key->hash);
        forget_oldest_revoked(r->ring);
    }
    r->done(r->data, error);
}

static void
revoke_free(gpointer data)
{
    Revoke *r = data;

    g_free(r->actor);
    g_free(r);
}

void
key_ring_revoke(KeyRing *ring, const char *id, const char *actor, DbDone done, void *data)
{
    g_autoptr(GError) error = NULL;

    if (key_ring_by_id(ring, id) == NULL) {
        err_set(&error, ERR_NOT_FOUND, "there is no key '%.40s'", id);
        done(data, error);
        return;
    }
    Revoke *r = g_new0(Revoke, 1);
    *r = (Revoke){.ring = ring, .done = done, .data = data, .at_us = clock_wall_us()};
    g_strlcpy(r->id, id, sizeof r->id);
    r->actor = g_strdup(actor);
    db_write(ring->db, revoke_work, revoke_done, r, revoke_free);
}

/* ---- last use ---- */

typedef struct Used {
    gint64 at_us;
    GPtrArray *ids; /* char* */
} Used;

static bool
used_work(DbTx *tx, void *data, GError **error)
{
    Used *u = data;

    for (guint i = 0; i < u->ids->len; i++) {
        if (!db_exec(tx, "UPDATE keys SET last_used_us = ? WHERE id = ?",
                     DB_ARGS(db_int(u->at_us), db_text(u->ids->pdata[i])), error))
            return false;
    }
    return true;
}

static void
used_free(gpointer data)
{
    Used *u = data;

    g_ptr_array_unref(u->ids);
    g_free(u);
}

void
key_ring_flush_used(KeyRing *ring)
{
    Used *u = g_new0(Used, 1);

    u->at_us = clock_wall_us();
    u->ids = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < ring->keys->len; i++) {
        Key *key = ring->keys->pdata[i];

        if (!key->used)
            continue;
        key->used = false;
        key->last_used_us = u->at_us;
        g_ptr_array_add(u->ids, g_strdup(key->id));
    }
    if (u->ids->len == 0)
        used_free(u);
    else
        db_write(ring->db, used_work, NULL, u, used_free);
}
