/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "brain/provider.h"
#include "door/models-private.h"
#include "wire/door.h"

void
models_tell_provider(DoorModels *m, const StoredProvider *p)
{
    if (m->link != NULL)
        door_link_set_provider(m->link, p->provider, *p->sealed != '\0' ? p->sealed : NULL,
                               *p->script != '\0' ? p->script : NULL);
}

static guint
find_provider(const DoorModels *m, const char *name)
{
    guint i = 0;

    while (i < m->providers->len && strcmp(((StoredProvider *)m->providers->pdata[i])->name, name) != 0)
        i++;
    return i;
}

/* ---- changes ---- */

static void
free_provider(void *what)
{
    stored_provider_free(what);
}

static bool
put_work(DbTx *tx, void *what, GError **error)
{
    return provider_row_put(tx, what, error);
}

static void
put_apply(void *owner, void **what)
{
    DoorModels *m = owner;
    StoredProvider *p = g_steal_pointer(what);

    models_tell_provider(m, p);
    models_replace(m->providers, find_provider(m, p->name), p);
}

static const ChangeKind putting = {
    .work = put_work, .apply = put_apply, .free = free_provider, .unref = models_unref};

static bool
remove_work(DbTx *tx, void *what, GError **error)
{
    return provider_row_remove(tx, what, error);
}

static void
remove_apply(void *owner, void **what)
{
    DoorModels *m = owner;
    guint at = find_provider(m, *what);

    if (at < m->providers->len)
        g_ptr_array_remove_index(m->providers, at);
    if (m->link != NULL)
        door_link_remove_provider(m->link, *what);
}

static const ChangeKind removing = {
    .work = remove_work, .apply = remove_apply, .free = g_free, .unref = models_unref};

static bool
is_hex(const char *text)
{
    size_t n = strspn(text, "0123456789abcdef");

    return text[n] == '\0' && n % 2 == 0;
}

/* What the door would refuse is refused here, with its words. */
bool
door_models_check_provider(const DoorModels *m, const DoorProviderSpec *spec, GError **error)
{
    g_autoptr(Provider) tried = provider_new(spec->provider, error);

    if (tried == NULL)
        return false;
    bool scripted = provider_kind(tried) == PROVIDER_SCRIPT;

    if (scripted != (*spec->script != '\0'))
        return err_set(error, ERR_INVALID,
                       scripted ? "a scripted provider needs its 'script'"
                                : "only a scripted provider has a 'script'");
    if (strlen(spec->script) > DOOR_SCRIPT_MAX)
        return err_set(error, ERR_INVALID, "a script has at most %d bytes", DOOR_SCRIPT_MAX);
    if (strlen(spec->sealed) > MODELS_SEALED_MAX || !is_hex(spec->sealed))
        return err_set(error, ERR_INVALID, "'sealed_key' must be the hex digits of a sealed box");
    if (m->providers->len >= MODELS_PROVIDERS_MAX && !door_models_has_provider(m, provider_name(tried)))
        return err_set(error, ERR_LIMIT, "there are %d providers: remove one first", MODELS_PROVIDERS_MAX);
    return true;
}

static StoredProvider *
stored_new(const DoorProviderSpec *spec)
{
    StoredProvider *p = g_new(StoredProvider, 1);

    *p = (StoredProvider){.provider = json_deep_copy(spec->provider),
                          .name = g_strdup(json_string_value(json_object_get(spec->provider, "name"))),
                          .sealed = g_strdup(spec->sealed),
                          .script = g_strdup(spec->script),
                          .actor = g_strdup(spec->actor),
                          .created_us = clock_wall_us()};
    return p;
}

void
door_models_put_provider(DoorModels *m, const DoorProviderSpec *spec, DbDone done, void *data)
{
    GError *refused = NULL;
    StoredProvider *p = door_models_check_provider(m, spec, &refused) ? stored_new(spec) : NULL;
    ChangeSpec change = models_change(m, p, refused, done, data);

    door_change(&putting, &change);
}

void
door_models_remove_provider(DoorModels *m, const char *name, DbDone done, void *data)
{
    ChangeSpec change = models_change(m, g_strdup(name), NULL, done, data);

    door_change(&removing, &change);
}

bool
door_models_has_provider(const DoorModels *m, const char *name)
{
    return find_provider(m, name) < m->providers->len;
}

Json *
door_models_providers(const DoorModels *m)
{
    Json *list = json_array();

    for (guint i = 0; i < m->providers->len; i++) {
        const StoredProvider *p = m->providers->pdata[i];
        Json *o = json_deep_copy(p->provider);
        char at[CLOCK_ISO_LEN + 1];

        clock_format_iso(p->created_us, at);
        json_object_set_new(o, "key", json_boolean(*p->sealed != '\0'));
        json_object_set_new(o, "actor", json_string(p->actor));
        json_object_set_new(o, "created_at", json_string(at));
        json_array_append_new(list, o);
    }
    return list;
}
