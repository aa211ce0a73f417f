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

enum { TRY_MS = 5000 };

typedef struct LinkTest {
    LoopTimer timer; /* of a try; first: the loop hands back its address */
    DoorLink *link;
    gint64 serial;
    ErrKind no; /* what it means that the door says no */
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

static void test_free(gpointer data);

void
link_models_init(DoorLink *link)
{
    link->providers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, provider_free);
    link->budgets = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)json_decref);
    link->tests = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, test_free);
}

void
link_models_clear(DoorLink *link)
{
    g_hash_table_unref(link->providers);
    g_hash_table_unref(link->budgets);
    g_hash_table_unref(link->tests);
}

/* A script may be longer than a packet, so it goes as a file.  Takes `message`. */
static void
say_with_script(DoorLink *link, Json *message, const char *script)
{
    autofd fd = -1;

    if (script != NULL) {
        fd = memfd_create("script", MFD_CLOEXEC);
        if (fd < 0 || !io_write_all(fd, script, strlen(script))) {
            log_warn("door", "a script could not be handed on");
            json_decref(message);
            return;
        }
    }
    door_link_say(link, message, fd);
}

static void
say_provider(DoorLink *link, const LinkProvider *p)
{
    say_with_script(link, json_incref(p->message), p->script);
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

/* ---- tests and tries ---- */

static void
test_free(gpointer data)
{
    LinkTest *test = data;

    loop_timer_cancel(test->link->spec.loop, &test->timer);
    g_free(test);
}

/* Takes it out, so that whatever `done` does finds it gone. */
static void
finish_test(LinkTest *test, Json *result, const GError *error)
{
    DoorTestFunc done = test->done;
    void *data = test->data;

    g_hash_table_remove(test->link->tests, &test->serial);
    done(result, error, data);
}

static void
on_silence(LoopTimer *timer)
{
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, "the door does not answer");

    finish_test((LinkTest *)(void *)timer, NULL, error);
}

void
link_models_lost(DoorLink *link, const GError *error)
{
    g_autoptr(GList) tests = g_hash_table_get_values(link->tests);

    for (GList *l = tests; l != NULL; l = l->next)
        finish_test(l->data, NULL, error);
}

void
link_on_tested(DoorLink *link, Json *message)
{
    gint64 serial = json_integer_value(json_object_get(message, "serial"));
    LinkTest *test = g_hash_table_lookup(link->tests, &serial);
    const char *text = json_string_value(json_object_get(message, "error"));
    g_autoptr(GError) error = NULL;

    if (test == NULL)
        return;
    if (!json_is_true(json_object_get(message, "ok")))
        err_set(&error, test->no, "%s", text != NULL ? text : "the provider does not answer");
    finish_test(test, error == NULL ? json_object_get(message, "result") : NULL, error);
}

/* NULL: there is no door, and `done` has been told. */
static LinkTest *
test_new(DoorLink *link, ErrKind no, DoorTestFunc done, void *data)
{
    if (link->state != LINK_UP) {
        g_autoptr(GError) away = g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, "the door is away");

        done(NULL, away, data);
        return NULL;
    }
    LinkTest *test = g_new0(LinkTest, 1);

    *test = (LinkTest){.timer = {.expired = on_silence},
                       .link = link,
                       .serial = ++link->serial,
                       .no = no,
                       .done = done,
                       .data = data};
    g_hash_table_insert(link->tests, &test->serial, test);
    return test;
}

void
door_link_test_provider(DoorLink *link, const char *name, DoorTestFunc done, void *data)
{
    const LinkTest *test = test_new(link, ERR_UNAVAILABLE, done, data);

    if (test != NULL)
        door_link_say(
            link,
            json_pack("{s:s, s:I, s:s}", "do", "test", "serial", (json_int_t)test->serial, "provider", name),
            -1);
}

void
door_link_try_provider(DoorLink *link, Json *provider, const char *sealed, const char *script,
                       DoorTestFunc done, void *data)
{
    LinkTest *test = test_new(link, ERR_INVALID, done, data);

    if (test == NULL)
        return;
    loop_timer_set(link->spec.loop, &test->timer, TRY_MS);
    say_with_script(link,
                    json_pack("{s:s, s:I, s:O, s:s?}", "do", "try", "serial", (json_int_t)test->serial,
                              "provider", provider, "key", sealed),
                    script);
}
