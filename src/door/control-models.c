/* SPDX-License-Identifier: Apache-2.0 */
/* What `coop serve` says about models. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "door/control-private.h"
#include "wire/door.h"

/* ---- providers ---- */

/* The text behind `fd`, from its start; NULL: it cannot be read, or is too long. */
static char *
read_script(int fd, GError **error)
{
    g_autofree char *text = g_malloc(DOOR_SCRIPT_MAX + 1);
    size_t n = 0;

    for (;;) {
        ssize_t got = pread(fd, text + n, DOOR_SCRIPT_MAX + 1 - n, (off_t)n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            err_errno(error, "read the script");
            return NULL;
        }
        if (got == 0)
            break;
        n += (size_t)got;
        if (n > DOOR_SCRIPT_MAX) {
            err_set(error, ERR_LIMIT, "a script has at most %d bytes", DOOR_SCRIPT_MAX);
            return NULL;
        }
    }
    return g_strndup(text, n);
}

/* What a message says about a provider, with its key in its place. */
typedef struct Told {
    Provider *provider;
    char *script; /* NULL: none */
} Told;

static void
told_clear(Told *told)
{
    provider_unref(told->provider);
    g_free(told->script);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Told, told_clear)

static bool
read_provider(ControlCall *call, Told *ret, GError **error)
{
    Json *object = json_object_get(call->message, "provider");

    if (!json_is_object(object))
        return err_set(error, ERR_INVALID, "'provider' is missing");
    ret->provider = provider_new(object, error);
    if (ret->provider == NULL)
        return false;
    call->id = json_string_value(json_object_get(object, "name"));
    if (call->fd >= 0)
        ret->script = read_script(call->fd, error);
    return call->fd < 0 || ret->script != NULL;
}

static bool
open_key(ControlCall *call, Provider *provider, GError **error)
{
    Json *sealed = json_object_get(call->message, "key");
    const char *base_url = provider_base_url(provider);

    if (!json_is_string(sealed))
        return true;
    char *key = door_vault_unseal(call->control->spec.vault, json_string_value(sealed),
                                  base_url != NULL ? base_url : "", error);

    if (key == NULL)
        return false;
    provider_take_key(provider, key);
    return true;
}

bool
control_provider(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    g_auto(Told) told = {0};

    if (!read_provider(call, &told, error))
        return false;
    const char *name = provider_name(told.provider);

    if (!open_key(call, told.provider, error)) {
        /* What the server shows now is not to be answered by the one before. */
        g_hash_table_remove(c->providers, name);
        gate_remove_provider(c->spec.gate, name);
        return false;
    }
    if (!gate_set_provider(c->spec.gate, told.provider, told.script, error))
        return false;
    g_hash_table_insert(c->providers, g_strdup(name), GSIZE_TO_POINTER(c->visit));
    return true;
}

static bool
is_own(const DoorControl *c, const char *name)
{
    return g_strv_contains((const char *const *)c->own_providers, name);
}

bool
control_no_provider(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    const char *name = json_string_value(json_object_get(call->message, "name"));

    if (name == NULL)
        return err_set(error, ERR_INVALID, "'name' is missing");
    call->id = name;
    if (is_own(c, name) && !g_hash_table_contains(c->providers, name))
        return err_set(error, ERR_CONFLICT, "'%s' is of the environment Coop was started with", name);
    g_hash_table_remove(c->providers, name);
    gate_remove_provider(c->spec.gate, name);
    return true;
}

/* Takes out of `named` what was not named in this visit, after `forget` has had it. */
static void
drop_unnamed(DoorControl *c, GHashTable *named, void (*forget)(DoorControl *control, const char *name))
{
    GHashTableIter iter;
    gpointer name, visit;

    g_hash_table_iter_init(&iter, named);
    while (g_hash_table_iter_next(&iter, &name, &visit)) {
        if (GPOINTER_TO_SIZE(visit) == c->visit)
            continue;
        forget(c, name);
        g_hash_table_iter_remove(&iter);
    }
}

static void
forget_provider(DoorControl *c, const char *name)
{
    gate_remove_provider(c->spec.gate, name);
}

static void
forget_budget(DoorControl *c, const char *scope)
{
    budgets_forget(c->spec.budgets, scope);
}

void
control_drop_models(DoorControl *c)
{
    drop_unnamed(c, c->providers, forget_provider);
    drop_unnamed(c, c->budgets, forget_budget);
}

/* ---- budgets ---- */

static bool
read_numbers(Json *object, const char *const *names, guint64 *ret, size_t n, GError **error)
{
    for (size_t i = 0; i < n; i++) {
        Json *value = json_object_get(object, names[i]);

        if (value != NULL && (!json_is_integer(value) || json_integer_value(value) < 0))
            return err_set(error, ERR_INVALID, "'%s' is no number", names[i]);
        ret[i] = (guint64)json_integer_value(value);
    }
    return true;
}

bool
control_budget(ControlCall *call, GError **error)
{
    static const char *const names[] = {"tokens",        "microusd",      "calls", "microusd_per_hour",
                                        "calls_per_min", "tokens_per_min"};
    guint64 b[G_N_ELEMENTS(names)], s[3];
    const char *scope = NULL;
    Json *bounds = NULL, *spent = NULL;
    const JsonField fields[] = {
        {"do", JSON_KIND_STRING, &(const char *){NULL}, true, 1, CONTROL_VERB_MAX},
        {"scope", JSON_KIND_STRING, &scope, true, 1, BUDGET_SCOPE_LEN_MAX},
        {"bounds", JSON_KIND_OBJECT, &bounds, true},
        {"spent", JSON_KIND_OBJECT, &spent},
        {NULL},
    };

    if (!json_read(call->message, fields, error))
        return false;
    call->id = scope;
    if (json_object_size(bounds) == 0) {
        g_hash_table_remove(call->control->budgets, scope);
        budgets_forget(call->control->spec.budgets, scope);
        return true;
    }
    if (!read_numbers(bounds, names, b, G_N_ELEMENTS(b), error) ||
        (spent != NULL && !read_numbers(spent, names, s, G_N_ELEMENTS(s), error)))
        return false;
    BudgetBounds set = {.tokens = b[0],
                        .microusd = b[1],
                        .calls = b[2],
                        .microusd_per_hour = b[3],
                        .calls_per_min = (guint)MIN(b[4], G_MAXUINT),
                        .tokens_per_min = (guint)MIN(b[5], G_MAXUINT)};
    BudgetSpent used = {.tokens = s[0], .microusd = s[1], .calls = s[2]};

    budgets_set(call->control->spec.budgets, scope, &set, spent != NULL ? &used : NULL);
    g_hash_table_insert(call->control->budgets, g_strdup(scope), GSIZE_TO_POINTER(call->control->visit));
    return true;
}

/* ---- a test ---- */

typedef struct Test {
    DoorControl *control;
    guint64 visit;
    json_int_t serial;
} Test;

static void
on_tested(Json *result, const GError *error, void *data)
{
    g_autofree Test *test = data;
    DoorControl *c = test->control;

    /* Whoever asked may have gone meanwhile. */
    if (c->peer == NULL || c->visit != test->visit)
        return;
    (void)door_peer_send(c->peer,
                         json_pack("{s:s, s:I, s:b, s:s?, s:O?}", "say", "tested", "serial", test->serial,
                                   "ok", error == NULL, "error", error != NULL ? error->message : NULL,
                                   "result", result),
                         -1);
}

bool
control_test(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    const char *name = json_string_value(json_object_get(call->message, "provider"));
    Test *test;

    if (name == NULL)
        return err_set(error, ERR_INVALID, "'provider' is missing");
    test = g_new(Test, 1);
    *test = (Test){c, c->visit, json_integer_value(json_object_get(call->message, "serial"))};
    gate_test_provider(c->spec.gate, name, on_tested, test);
    return true;
}

bool
control_try(ControlCall *call, GError **error)
{
    DoorControl *c = call->control;
    g_auto(Told) told = {0};
    Test *test = g_new(Test, 1);
    g_autoptr(GError) refused = NULL;

    *test = (Test){c, c->visit, json_integer_value(json_object_get(call->message, "serial"))};
    if (read_provider(call, &told, &refused) && open_key(call, told.provider, &refused))
        (void)gate_check_provider(c->spec.gate, told.provider, told.script, &refused); /* `refused` says it */
    if (refused != NULL)
        log_warn("door", "would refuse a provider", log_str("id", call->id), log_gerror(refused));
    on_tested(NULL, refused, test);
    return true;
}
