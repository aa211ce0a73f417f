/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/identity.h"

#include <sodium.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/identity-key.h"
#include "forge/identity-private.h"

struct Identities {
    Forge *forge;
    Seal *seal;        /* NULL: nothing can be signed */
    GHashTable *by_id; /* id -> IdentityFull */
};

void
identity_full_free(IdentityFull *full)
{
    if (full == NULL)
        return;
    g_free(full->shown.id);
    g_free(full->shown.name);
    g_free(full->shown.email);
    g_free(full->shown.public_key);
    g_free(full->shown.agent_id);
    g_free(full->shown.squad_id);
    g_clear_pointer(&full->sealed, g_bytes_unref);
    g_clear_pointer(&full->rights, g_hash_table_unref);
    g_free(full);
}

IdentityFull *
identity_full_new(void)
{
    IdentityFull *full = g_new0(IdentityFull, 1);

    full->rights = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return full;
}

static const char *const access_names[] = {
    [IDENTITY_NONE] = "none", [IDENTITY_READ] = "read", [IDENTITY_WRITE] = "write"};

const char *
identity_access_name(IdentityAccess access)
{
    return access_names[access];
}

bool
identity_access_parse(const char *text, IdentityAccess *ret_access)
{
    for (size_t i = IDENTITY_READ; i < G_N_ELEMENTS(access_names); i++) {
        if (strcmp(access_names[i], text) == 0) {
            *ret_access = (IdentityAccess)i;
            return true;
        }
    }
    return false;
}

/* ---- looking ---- */

static IdentityFull *
find(Forge *forge, const char *id_or_name)
{
    Identities *all = forge->identities;
    IdentityFull *full = all != NULL ? g_hash_table_lookup(all->by_id, id_or_name) : NULL;
    GHashTableIter iter;
    gpointer item;

    if (full != NULL || all == NULL)
        return full;
    g_hash_table_iter_init(&iter, all->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &item)) {
        full = item;
        if (strcmp(full->shown.name, id_or_name) == 0)
            return full;
    }
    return NULL;
}

const Identity *
identity_find(Forge *forge, const char *id_or_name)
{
    const IdentityFull *full = find(forge, id_or_name);

    return full != NULL ? &full->shown : NULL;
}

const Identity *
identity_of_agent(Forge *forge, const char *agent_id)
{
    GHashTableIter iter;
    gpointer item;

    g_hash_table_iter_init(&iter, forge->identities->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &item)) {
        const Identity *who = &((IdentityFull *)item)->shown;

        if (who->revoked_us == 0 && g_strcmp0(who->agent_id, agent_id) == 0)
            return who;
    }
    return NULL;
}

IdentityAccess
identity_access(Forge *forge, const Identity *identity, const Repo *repo)
{
    const IdentityFull *full = find(forge, identity->id);
    RepoInfo info;

    if (full == NULL || identity->revoked_us != 0)
        return IDENTITY_NONE;
    repo_info(repo, &info);
    gpointer own = g_hash_table_lookup(full->rights, info.id);
    gpointer every = g_hash_table_lookup(full->rights, "*");

    return (IdentityAccess)MAX(GPOINTER_TO_INT(own), GPOINTER_TO_INT(every));
}

static Json *
rights_json(const IdentityFull *full)
{
    Json *rights = json_array();
    GHashTableIter iter;
    gpointer repository;
    gpointer access;

    g_hash_table_iter_init(&iter, full->rights);
    while (g_hash_table_iter_next(&iter, &repository, &access))
        json_array_append_new(rights,
                              json_pack("{s:s, s:s}", "repository", repository, "access",
                                        identity_access_name((IdentityAccess)GPOINTER_TO_INT(access))));
    return rights;
}

Json *
identity_json(Forge *forge, const Identity *identity)
{
    const IdentityFull *full = find(forge, identity->id);
    char created[CLOCK_ISO_LEN + 1];
    char revoked[CLOCK_ISO_LEN + 1];

    clock_format_iso(identity->created_us, created);
    clock_format_iso(identity->revoked_us, revoked);
    return json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s?, s:o, s:s, s:s?}", "id", identity->id, "name",
                     identity->name, "email", identity->email, "public_key", identity->public_key, "agent_id",
                     identity->agent_id, "squad_id", identity->squad_id, "rights", rights_json(full),
                     "created_at", created, "revoked_at", identity->revoked_us != 0 ? revoked : NULL);
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    const IdentityFull *const *left = a;
    const IdentityFull *const *right = b;

    return strcmp((*left)->shown.name, (*right)->shown.name);
}

static GPtrArray *
sorted(Forge *forge)
{
    GPtrArray *list = g_ptr_array_new();
    GHashTableIter iter;
    gpointer item;

    g_hash_table_iter_init(&iter, forge->identities->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &item))
        g_ptr_array_add(list, item);
    g_ptr_array_sort(list, compare_names);
    return list;
}

Json *
identities_json(Forge *forge)
{
    g_autoptr(GPtrArray) list = sorted(forge);
    Json *array = json_array();

    for (guint i = 0; i < list->len; i++)
        json_array_append_new(array, identity_json(forge, &((IdentityFull *)list->pdata[i])->shown));
    return array;
}

char *
identities_allowed_signers(Forge *forge)
{
    g_autoptr(GPtrArray) list = sorted(forge);
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < list->len; i++) {
        const Identity *who = &((IdentityFull *)list->pdata[i])->shown;

        g_string_append_printf(text, "%s namespaces=\"git\"", who->email);
        if (who->revoked_us != 0) {
            g_autoptr(GDateTime) at = g_date_time_new_from_unix_utc(who->revoked_us / G_USEC_PER_SEC);
            g_autofree char *stamp = g_date_time_format(at, "%Y%m%d%H%M%SZ");

            g_string_append_printf(text, ",valid-before=\"%s\"", stamp);
        }
        g_string_append_printf(text, " %s\n", who->public_key);
    }
    return g_string_free(text, FALSE);
}

/* ---- signing ---- */

char *
identity_sign(Forge *forge, const Identity *identity, const void *bytes, size_t n, GError **error)
{
    const IdentityFull *full = find(forge, identity->id);
    const Seal *seal = forge->identities->seal;
    g_autofree char *purpose = g_strconcat("identity:", identity->id, NULL);
    gsize sealed_len;
    size_t len;

    if (full == NULL || identity->revoked_us != 0) {
        err_set(error, ERR_DENIED, "the identity %s was revoked", identity->name);
        return NULL;
    }
    if (seal == NULL) {
        err_set(error, ERR_UNAVAILABLE, "the key of the forge cannot be read");
        return NULL;
    }
    const void *sealed = g_bytes_get_data(full->sealed, &sealed_len);
    char *secret = seal_unseal(seal, purpose, sealed, sealed_len, &len, error);

    if (secret == NULL)
        return NULL;
    char *signature = len == KEY_SECRET_LEN ? key_sign((const guint8 *)secret, bytes, n) : NULL;

    seal_wipe(secret, len);
    if (signature == NULL)
        err_set(error, ERR_INTERNAL, "the key of %s is damaged", identity->name);
    return signature;
}

/* ---- making ---- */

static bool
name_is_valid(const char *name, GError **error)
{
    if (*name == '\0' || strlen(name) > IDENTITY_NAME_MAX || !g_ascii_isalnum(*name))
        return err_set(error, ERR_INVALID, "a name has 1 to %d characters and begins with a letter or digit",
                       IDENTITY_NAME_MAX);
    for (const char *at = name; *at != '\0'; at++) {
        if (!g_ascii_isalnum(*at) && strchr("._-", *at) == NULL)
            return err_set(error, ERR_INVALID, "a name has letters, digits and '._-' only");
    }
    return true;
}

/* A signer is named by it, in a file whose words are parted by spaces and commas. */
static bool
email_is_valid(const char *email, GError **error)
{
    const char *at = strchr(email, '@');

    if (at == NULL || at == email || at[1] == '\0' || strchr(at + 1, '@') != NULL ||
        strlen(email) > IDENTITY_EMAIL_MAX)
        return err_set(error, ERR_INVALID, "'%s' is no e-mail address", email);
    for (; *email != '\0'; email++) {
        if (!g_ascii_isalnum(*email) && strchr("._+-@", *email) == NULL)
            return err_set(error, ERR_INVALID, "an e-mail address has letters, digits and '._+-' only");
    }
    return true;
}

static bool
email_is_free(Forge *forge, const char *email, GError **error)
{
    GHashTableIter iter;
    gpointer item;

    g_hash_table_iter_init(&iter, forge->identities->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &item)) {
        if (g_ascii_strcasecmp(((IdentityFull *)item)->shown.email, email) == 0)
            return err_set(error, ERR_CONFLICT, "the e-mail address %s is taken", email);
    }
    return true;
}

static bool
fill_rights(IdentityFull *full, const IdentitySpec *spec, GError **error)
{
    if (spec->n_rights > IDENTITY_RIGHTS_MAX)
        return err_set(error, ERR_LIMIT, "an identity has at most %d rights", IDENTITY_RIGHTS_MAX);
    for (size_t i = 0; i < spec->n_rights; i++)
        g_hash_table_insert(full->rights, g_strdup(spec->rights[i].repository),
                            GINT_TO_POINTER(spec->rights[i].access));
    if (spec->rights == NULL)
        g_hash_table_insert(full->rights, g_strdup("*"), GINT_TO_POINTER(IDENTITY_WRITE));
    return true;
}

static void
fill_key(Identities *all, IdentityFull *full)
{
    guint8 public_key[KEY_PUBLIC_LEN];
    guint8 secret[KEY_SECRET_LEN];
    g_autofree char *purpose = g_strconcat("identity:", full->shown.id, NULL);

    key_make(public_key, secret);
    full->shown.public_key = key_format(public_key);
    full->sealed = seal_close_over(all->seal, purpose, secret, sizeof secret);
    sodium_memzero(secret, sizeof secret);
}

/* "coder" with the prefix "team" is "team-coder", also if it was said in full. */
static char *
with_prefix(const char *prefix, const char *name)
{
    if (prefix == NULL || *prefix == '\0' || g_str_has_prefix(name, prefix))
        return g_strdup(name);
    bool ends = g_ascii_isalnum(prefix[strlen(prefix) - 1]);

    return g_strconcat(prefix, ends ? "-" : "", name, NULL);
}

static IdentityFull *
make(Forge *forge, const IdentitySpec *spec, GError **error)
{
    char id[ID_UUID_LEN + 1];
    g_autoptr(IdentityFull) full = identity_full_new();

    id_new_uuid(id);
    full->shown.id = g_strdup(id);
    full->shown.name = with_prefix(forge->spec.agent_prefix, spec->name);
    full->shown.email = spec->email != NULL ? g_strdup(spec->email)
                                            : g_strdup_printf("%s@coop.invalid", full->shown.name);
    full->shown.agent_id = g_strdup(spec->agent_id);
    full->shown.squad_id = g_strdup(spec->squad_id);
    full->shown.created_us = clock_wall_us();
    if (!name_is_valid(full->shown.name, error) || !email_is_valid(full->shown.email, error) ||
        !fill_rights(full, spec, error))
        return NULL;
    if (find(forge, full->shown.name) != NULL) {
        err_set(error, ERR_CONFLICT, "the name %s is taken", full->shown.name);
        return NULL;
    }
    if (!email_is_free(forge, full->shown.email, error))
        return NULL;
    if (g_hash_table_size(forge->identities->by_id) >= IDENTITIES_MAX) {
        err_set(error, ERR_LIMIT, "there are at most %d identities", IDENTITIES_MAX);
        return NULL;
    }
    if (forge->identities->seal == NULL) {
        err_set(error, ERR_UNAVAILABLE, "the key of the forge cannot be read");
        return NULL;
    }
    fill_key(forge->identities, full);
    return g_steal_pointer(&full);
}

typedef struct Change {
    Forge *forge;
    char *id;
    bool created;
    ForgeJsonFunc done;
    void *data;
} Change;

static void
on_changed(void *data, const GError *error)
{
    g_autofree Change *change = data;
    g_autofree char *id = change->id;
    Forge *forge = change->forge;

    /* What the disk does not have must not be believed. */
    if (error != NULL && change->created && forge->identities != NULL)
        g_hash_table_remove(forge->identities->by_id, id);
    const Identity *who = error == NULL ? identity_find(forge, id) : NULL;
    g_autoptr(Json) value = who != NULL ? identity_json(forge, who) : NULL;

    change->done(value, error, change->data);
    forge_unref(forge);
}

static Change *
change_new(Forge *forge, const char *id, bool created, ForgeJsonFunc done, void *data)
{
    Change *change = g_new0(Change, 1);

    *change = (Change){forge_ref(forge), g_strdup(id), created, done, data};
    return change;
}

void
identity_create(Forge *forge, const IdentitySpec *spec, ForgeJsonFunc done, void *data)
{
    g_autoptr(GError) error = NULL;
    IdentityFull *full = make(forge, spec, &error);

    if (full == NULL) {
        done(NULL, error, data);
        return;
    }
    g_hash_table_insert(forge->identities->by_id, full->shown.id, full);
    identity_row_add(forge, full, on_changed, change_new(forge, full->shown.id, true, done, data));
}

void
identity_revoke(Forge *forge, const char *id, const char *actor, ForgeJsonFunc done, void *data)
{
    IdentityFull *full = find(forge, id);

    if (full == NULL) {
        g_autoptr(GError) error = g_error_new(ERR_DOMAIN, ERR_NOT_FOUND, "there is no identity '%s'", id);

        done(NULL, error, data);
        return;
    }
    if (full->shown.revoked_us == 0)
        full->shown.revoked_us = clock_wall_us();
    log_info("forge", "an identity was revoked", log_str("name", full->shown.name), log_str("actor", actor));
    identity_row_revoke(forge, full, on_changed, change_new(forge, full->shown.id, false, done, data));
}

/* ---- life ---- */

Identities *
identities_new(Forge *forge, const ForgeSpec *spec)
{
    Identities *all = g_new0(Identities, 1);
    g_autoptr(GError) error = NULL;

    *all = (Identities){
        .forge = forge,
        .seal = seal_open(spec->home, &error),
        .by_id = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)identity_full_free)};
    if (all->seal == NULL)
        log_warn("forge", "nothing can be signed", log_gerror(error));
    return all;
}

void
identities_free(Identities *all)
{
    if (all == NULL)
        return;
    g_clear_pointer(&all->seal, seal_free);
    g_hash_table_unref(all->by_id);
    g_free(all);
}

void
identities_add(Identities *all, IdentityFull *full)
{
    g_hash_table_insert(all->by_id, full->shown.id, full);
}

void
identities_load(Identities *all, DbDone done, void *data)
{
    /* Those of before a restore are of another database, and their keys in the table are theirs. */
    g_hash_table_remove_all(all->by_id);
    identity_rows_load(all->forge, done, data);
}
