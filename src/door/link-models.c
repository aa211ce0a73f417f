/* SPDX-License-Identifier: Apache-2.0 */
/* Providers, budgets and tests of providers, as the server tells them to the door. */
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "door/link-private.h"

typedef struct LinkProvider {
    Json *message;
    char *script; /* NULL: none */
} LinkProvider;

typedef struct LinkTest {
    DoorTestFunc done;
    void *data;
} LinkTest;

static void
provider_free(gpointer data)
{
    LinkProvider *p = data;

    json_decref(p->message);
    g_free(p->script);
    g_free(p);
}

void
link_models_init(DoorLink *link)
{
    link->providers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, provider_free);
    link->budgets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)json_decref);
    link->tests = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
}

void
link_models_clear(DoorLink *link)
{
    g_hash_table_unref(link->providers);
    g_hash_table_unref(link->budgets);
    g_hash_table_unref(link->tests);
}

/* A script may be longer than a packet, so it goes as a file. */
static void
say_provider(DoorLink *link, const LinkProvider *p)
{
    autofd fd = -1;

    if (p->script != NULL) {
        fd = memfd_create("script", MFD_CLOEXEC);
        if (fd < 0 || !io_write_all(fd, p->script, strlen(p->script))) {
            log_warn("door", "a script could not be handed on");
            return;
        }
    }
    door_link_say(link, json_incref(p->message), fd);
}

void
link_models_sync(DoorLink *link)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, link->budgets);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        door_link_say(link, json_incref(value), -1);
    g_hash_table_iter_init(&iter, link->providers);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        say_provider(link, value);
}

void
door_link_set_provider(DoorLink *link, Json *provider, const char *sealed, const char *script)
{
    LinkProvider *p = g_new(LinkProvider, 1);
    const char *name = json_string_value(json_object_get(provider, "name"));

    *p = (LinkProvider){json_pack("{s:s, s:O, s:s?}", "do", "provider", "provider", provider, "key", sealed),
                        g_strdup(script)};
    g_hash_table_insert(link->providers, g_strdup(name), p);
    say_provider(link, p);
}

void
door_link_remove_provider(DoorLink *link, const char *name)
{
    door_link_say(link, json_pack("{s:s, s:s}", "do", "no-provider", "name", name), -1);
    g_hash_table_remove(link->providers, name);
}

void
door_link_set_budget(DoorLink *link, const char *scope, Json *bounds, Json *spent)
{
    Json *message = json_pack("{s:s, s:s, s:O, s:O}", "do", "budget", "scope", scope, "bounds", bounds,
                              "spent", spent);

    g_hash_table_insert(link->budgets, g_strdup(scope), message);
    door_link_say(link, json_incref(message), -1);
}

void
door_link_note_spent(DoorLink *link, const char *scope, Json *spent)
{
    Json *message = g_hash_table_lookup(link->budgets, scope);

    if (message != NULL)
        json_object_set(message, "spent", spent);
}

void
door_link_remove_budget(DoorLink *link, const char *scope)
{
    g_hash_table_remove(link->budgets, scope);
    door_link_say(link, json_pack("{s:s, s:s, s:{}}", "do", "budget", "scope", scope, "bounds"), -1);
}

const char *
door_link_public_key(const DoorLink *link)
{
    return link->public_key;
}

Json *
door_link_own_providers(const DoorLink *link)
{
    return link->own_providers;
}

/* ---- tests ---- */

static gboolean
fail_test(gpointer key, gpointer value, gpointer data)
{
    LinkTest *test = value;

    test->done(NULL, data, test->data);
    return TRUE;
}

void
link_models_lost(DoorLink *link)
{
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, "the door is away");

    g_hash_table_foreach_remove(link->tests, fail_test, error);
}

void
link_on_tested(DoorLink *link, Json *message)
{
    gint64 serial = json_integer_value(json_object_get(message, "serial"));
    const LinkTest *test = g_hash_table_lookup(link->tests, &serial);
    const char *text = json_string_value(json_object_get(message, "error"));

    if (test == NULL)
        return;
    LinkTest copy = *test;
    g_autoptr(GError) error = NULL;

    g_hash_table_remove(link->tests, &serial);
    if (!json_is_true(json_object_get(message, "ok")))
        err_set(&error, ERR_UNAVAILABLE, "%s", text != NULL ? text : "the provider does not answer");
    copy.done(error == NULL ? json_object_get(message, "result") : NULL, error, copy.data);
}

void
door_link_test_provider(DoorLink *link, const char *name, DoorTestFunc done, void *data)
{
    LinkTest *test = g_new(LinkTest, 1);
    gint64 *serial = g_new(gint64, 1);

    *test = (LinkTest){done, data};
    *serial = ++link->serial;
    g_hash_table_insert(link->tests, serial, test);
    if (link->state != LINK_UP) {
        link_models_lost(link);
        return;
    }
    door_link_say(link,
                  json_pack("{s:s, s:I, s:s}", "do", "test", "serial", (json_int_t)*serial, "provider", name),
                  -1);
}
