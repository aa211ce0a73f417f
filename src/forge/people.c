/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/people.h"

#include <sodium.h>
#include <string.h>

#include "base/err.h"

enum {
    LOGIN_MAX = 39,
    ID_BITS = 40, /* faces read numbers as doubles */
    PART_LEN = 8, /* of an id, in a login */
};

static const char bot_suffix[] = "[bot]";

struct People {
    DbTx *tx;
    GHashTable *known; /* actor -> Json */
};

People *
people_new(DbTx *tx)
{
    People *people = g_new0(People, 1);

    people->tx = tx;
    people->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)json_decref);
    return people;
}

void
people_free(People *people)
{
    if (people == NULL)
        return;
    g_hash_table_unref(people->known);
    g_free(people);
}

gint64
person_id(const char *actor)
{
    guint8 hash[crypto_generichash_BYTES_MIN];
    gint64 id = 0;

    crypto_generichash(hash, sizeof hash, (const guint8 *)actor, strlen(actor), NULL, 0);
    for (guint i = 0; i < ID_BITS / 8; i++)
        id = id << 8 | hash[i];
    return MAX(id, 1);
}

static char *
dup_slug(const char *name)
{
    g_autoptr(GString) slug = g_string_new(NULL);

    for (const char *p = name; *p != '\0' && slug->len < LOGIN_MAX; p++) {
        char c = g_ascii_tolower(*p);

        if (g_ascii_isalnum(c))
            g_string_append_c(slug, c);
        else if (slug->len > 0 && slug->str[slug->len - 1] != '-')
            g_string_append_c(slug, '-');
    }
    while (slug->len > 0 && slug->str[slug->len - 1] == '-')
        g_string_truncate(slug, slug->len - 1);
    return g_strdup(slug->len > 0 ? slug->str : "user");
}

/* `shared`: somebody older has the name. */
static char *
dup_login(const char *name, const char *id, bool shared)
{
    g_autofree char *slug = dup_slug(name);

    if (!shared && strcmp(slug, name) == 0)
        return g_steal_pointer(&slug);
    return g_strdup_printf("%s-%.*s", slug, PART_LEN, id);
}

/* The two columns of the first row; both NULL: there is none. */
static bool
ask(People *people, const char *sql, const char *arg, char **ret_name, bool *ret_shared, GError **error)
{
    g_autoptr(DbRows) rows = db_query(people->tx, sql, DB_ARGS(db_text(arg), db_text(arg)), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    if (found) {
        *ret_name = g_strdup(db_rows_text(rows, 0));
        *ret_shared = db_rows_int(rows, 1) > 0;
    }
    return true;
}

static char *
login_of_key(People *people, const char *id, GError **error)
{
    g_autofree char *name = NULL;
    bool shared = false;

    if (!ask(people,
             "SELECT k.name, (SELECT COUNT(*) FROM keys o WHERE o.name = k.name AND o.id <> k.id AND "
             "(o.created_us < k.created_us OR (o.created_us = k.created_us AND o.id < k.id))) "
             "FROM keys k WHERE k.id = ? AND k.id = ?",
             id, &name, &shared, error))
        return NULL;
    return dup_login(name != NULL ? name : "Key", id, shared);
}

static char *
login_of_agent(People *people, const char *id, GError **error)
{
    g_autofree char *name = NULL;
    bool shared = false;

    if (!ask(people,
             "SELECT name, 0 FROM identities WHERE id = ? OR agent_id = ? ORDER BY created_us, id LIMIT 1",
             id, &name, &shared, error))
        return NULL;
    g_autofree char *login = dup_login(name != NULL ? name : id, id, false);

    return g_strconcat(login, bot_suffix, NULL);
}

static char *
login_of(People *people, const char *actor, GError **error)
{
    if (g_str_has_prefix(actor, "key:"))
        return login_of_key(people, actor + strlen("key:"), error);
    if (g_str_has_prefix(actor, "agent:"))
        return login_of_agent(people, actor + strlen("agent:"), error);
    if (g_str_has_prefix(actor, "github:"))
        return g_strconcat(actor + strlen("github:"), "@github", NULL);
    if (strcmp(actor, "coop") == 0)
        return g_strconcat(actor, bot_suffix, NULL);
    return dup_slug(actor);
}

Json *
people_json(People *people, const char *actor, GError **error)
{
    Json *person = g_hash_table_lookup(people->known, actor);

    if (person == NULL) {
        g_autofree char *login = login_of(people, actor, error);

        if (login == NULL)
            return NULL;
        person = json_pack("{s:s, s:s, s:I, s:s}", "actor", actor, "login", login, "id",
                           (json_int_t)person_id(actor), "type",
                           g_str_has_suffix(login, bot_suffix) ? "Bot" : "User");
        g_hash_table_insert(people->known, g_strdup(actor), person);
    }
    return json_incref(person);
}

/* Those whose login cannot be turned back: one by one. */
static bool
search(People *people, const char *sql, const char *prefix, const char *login, char **ret_actor,
       GError **error)
{
    g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(DbRows) rows = db_query(people->tx, sql, DB_NO_ARGS, error);
    bool more = true;

    while (rows != NULL && more) {
        if (!db_rows_next(rows, &more, error))
            return false;
        if (more)
            g_ptr_array_add(ids, g_strconcat(prefix, db_rows_text(rows, 0), NULL));
    }
    if (rows == NULL)
        return false;
    g_clear_pointer(&rows, db_rows_free);
    for (guint i = 0; i < ids->len && *ret_actor == NULL; i++) {
        g_autoptr(Json) person = people_json(people, ids->pdata[i], error);

        if (person == NULL)
            return false;
        if (g_ascii_strcasecmp(json_string_value(json_object_get(person, "login")), login) == 0)
            *ret_actor = g_strdup(ids->pdata[i]);
    }
    return true;
}

/* "bob@github" and "github:bob" are the same; NULL: it is neither. */
static char *
find_there(const char *login)
{
    enum { THEIR_LOGIN_MAX = 100 };
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_[]";
    bool is_actor = g_str_has_prefix(login, "github:");

    if (!is_actor && !g_str_has_suffix(login, "@github"))
        return NULL;
    g_autofree char *name = is_actor ? g_strdup(login + strlen("github:"))
                                     : g_strndup(login, strlen(login) - strlen("@github"));
    size_t n = strlen(name);

    return n > 0 && n <= THEIR_LOGIN_MAX && strspn(name, letters) == n ? g_strconcat("github:", name, NULL)
                                                                       : NULL;
}

char *
people_find(People *people, const char *login, GError **error)
{
    bool is_bot = g_str_has_suffix(login, bot_suffix);
    char *actor = NULL;

    if (g_str_has_prefix(login, "key:") || g_str_has_prefix(login, "agent:") || strcmp(login, "local") == 0)
        return g_strdup(login);
    actor = find_there(login);
    if (actor != NULL)
        return actor;
    if (is_bot ? !search(people, "SELECT COALESCE(agent_id, id) FROM identities ORDER BY created_us, id",
                         "agent:", login, &actor, error)
               : !search(people, "SELECT id FROM keys ORDER BY created_us, id", "key:", login, &actor, error))
        return NULL;
    if (actor == NULL)
        err_set(error, ERR_INVALID, "there is no user '%s'", login);
    return actor;
}
