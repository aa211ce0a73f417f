/* SPDX-License-Identifier: Apache-2.0 */
/* The order matters for crashes: the first key is written to its file before the database
 * knows it, so whatever moment we die at, the next start finds either no key at all or one
 * whose owner can read it. */
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "api/state.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/path.h"

typedef struct Loading {
    Api *api;
    char *key_path;
    DbDone done;
    void *data;
} Loading;

static void
finish(Loading *l, const GError *error)
{
    l->done(l->data, error);
    g_free(l->key_path);
    g_free(l);
}

static void
on_extra_made(const char *secret, const Key *key, const GError *error, void *data)
{
    /* Known already: it was taken over at an earlier start, and perhaps revoked since. */
    finish(data, error != NULL && err_kind(error) == ERR_CONFLICT ? NULL : error);
}

static void
add_extra(Loading *l)
{
    KeySpec spec = {
        .name = "E2B_API_KEY",
        .secret = l->api->extra_secret,
        .scopes = SCOPE_READ | SCOPE_BOX,
        .actor = "coop",
    };

    if (l->api->extra_secret == NULL)
        finish(l, NULL);
    else
        key_ring_create(l->api->keys, &spec, on_extra_made, l);
}

static char *
read_key_file(const char *path)
{
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    g_strchomp(text);
    return key_secret_is_well_formed(text) ? g_steal_pointer(&text) : NULL;
}

static bool
make_key_file(const char *path, char ret_secret[KEY_SECRET_LEN + 1], GError **error)
{
    char line[KEY_SECRET_LEN + 2];

    key_secret_new(ret_secret);
    g_snprintf(line, sizeof line, "%s\n", ret_secret);
    bool ok = path_write_atomic(path, line, strlen(line), 0600, error);
    FAILPOINT("api.key.file");
    return ok;
}

static void make_admin(Loading *l);

static void
on_admin_made(const char *secret, const Key *key, const GError *error, void *data)
{
    Loading *l = data;

    if (error == NULL)
        add_extra(l);
    else if (err_kind(error) == ERR_CONFLICT && unlink(l->key_path) == 0)
        make_admin(l); /* the key in the file was revoked or has expired */
    else
        finish(l, error);
}

static void
make_admin(Loading *l)
{
    g_autofree char *kept = read_key_file(l->key_path);
    char secret[KEY_SECRET_LEN + 1];
    g_autoptr(GError) error = NULL;
    KeySpec spec = {.name = "first", .scopes = SCOPE_ADMIN, .actor = "coop"};

    if (kept == NULL && !make_key_file(l->key_path, secret, &error)) {
        finish(l, error);
        return;
    }
    spec.secret = kept != NULL ? kept : secret;
    key_ring_create(l->api->keys, &spec, on_admin_made, l);
}

static void
ensure_admin(Loading *l)
{
    if (key_ring_has_admin(l->api->keys))
        add_extra(l);
    else
        make_admin(l);
}

static void
on_sessions(void *data, const GError *error)
{
    Loading *l = data;

    if (error != NULL)
        finish(l, error);
    else
        ensure_admin(l);
}

static void
on_keys(void *data, const GError *error)
{
    Loading *l = data;

    if (error != NULL)
        finish(l, error);
    else
        session_book_load(l->api->sessions, on_sessions, l);
}

void
api_reload(Api *api, DbDone done, void *data)
{
    Loading *l = g_new0(Loading, 1);

    *l = (Loading){.api = api, .done = done, .data = data};
    l->key_path = g_build_filename(api->home, "key", NULL);
    key_ring_load(api->keys, on_keys, l);
}

void
api_load(Api *api, const char *extra_secret, DbDone done, void *data)
{
    g_assert(api->extra_secret == NULL);
    api->extra_secret = g_strdup(extra_secret);
    api_reload(api, done, data);
}

bool
api_key_file_is_valid(Api *api)
{
    g_autofree char *path = g_build_filename(api->home, "key", NULL);
    g_autofree char *secret = read_key_file(path);
    const char *why;
    const Key *key = secret != NULL ? key_ring_find(api->keys, secret, &why) : NULL;

    return key != NULL && (key->scopes & SCOPE_ADMIN) != 0;
}
