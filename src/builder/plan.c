/* SPDX-License-Identifier: Apache-2.0 */
#include "builder/plan.h"

#include <string.h>

#include "base/err.h"
#include "base/io.h"

static const char *const actions[] = {[PLAN_BUILD] = "build", [PLAN_TRY] = "try", [PLAN_REMOVE] = "remove"};

static char **
texts_of(Json *array)
{
    size_t n = json_array_size(array);
    char **texts = g_new0(char *, n + 1);

    for (size_t i = 0; i < n; i++)
        texts[i] = g_strdup(json_string_value(json_array_get(array, i)));
    return texts;
}

/* One component below the store. */
static bool
is_plain_name(const char *name)
{
    return *name != '\0' && *name != '.' && strchr(name, '/') == NULL;
}

static bool
all_plain(char **names)
{
    for (guint i = 0; names[i] != NULL; i++) {
        if (!is_plain_name(names[i]))
            return false;
    }
    return true;
}

static bool
read_fields(Plan *p, GError **error)
{
    enum { MANY = 10000 };
    const char *action = NULL;
    Json *lowers = NULL, *packages = NULL, *npm = NULL, *pip = NULL, *commands = NULL, *env = NULL;
    Json *names = NULL;
    const JsonField fields[] = {
        {"action", JSON_KIND_STRING, &action, true, 1, MANY},
        {"store", JSON_KIND_STRING, &p->store, true, 1, MANY},
        {"key", JSON_KIND_STRING, &p->key, false, 1, MANY},
        {"work", JSON_KIND_STRING, &p->work, false, 1, MANY},
        {"root", JSON_KIND_STRING, &p->root, false, 1, MANY},
        {"folder", JSON_KIND_STRING, &p->folder, false, 1, MANY},
        {"lowers", JSON_KIND_ARRAY, &lowers, false, 0, MANY},
        {"packages", JSON_KIND_ARRAY, &packages, false, 0, MANY},
        {"npm", JSON_KIND_ARRAY, &npm, false, 0, MANY},
        {"pip", JSON_KIND_ARRAY, &pip, false, 0, MANY},
        {"commands", JSON_KIND_ARRAY, &commands, false, 0, MANY},
        {"env", JSON_KIND_ARRAY, &env, false, 0, MANY},
        {"names", JSON_KIND_ARRAY, &names, false, 0, MANY},
        {"node", JSON_KIND_STRING, &p->node, false, 1, MANY},
        {"go", JSON_KIND_STRING, &p->go, false, 1, MANY},
        {"go_sum", JSON_KIND_STRING, &p->go_sum, false, 1, MANY},
        {"files", JSON_KIND_ARRAY, &p->files, false, 0, MANY},
        {"verify", JSON_KIND_ARRAY, &p->verify, false, 0, MANY},
        {"user", JSON_KIND_STRING, &p->user, false, 1, MANY},
        {"workdir", JSON_KIND_STRING, &p->workdir, false, 1, MANY},
        {"sudo", JSON_KIND_STRING, &p->sudo, false, 1, MANY},
        {"fresh", JSON_KIND_BOOL, &p->fresh, false, 0, 0},
        {NULL},
    };

    if (!json_read(p->json, fields, error))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(actions); i++) {
        if (strcmp(action, actions[i]) == 0)
            p->action = (PlanAction)i;
    }
    p->lowers = texts_of(lowers);
    p->packages = texts_of(packages);
    p->npm = texts_of(npm);
    p->pip = texts_of(pip);
    p->commands = texts_of(commands);
    p->env = texts_of(env);
    p->names = texts_of(names);
    return true;
}

static bool
check(const Plan *p, GError **error)
{
    bool needs_work = p->action != PLAN_REMOVE;

    if (p->store[0] != '/' || !all_plain(p->lowers) || !all_plain(p->names) ||
        (needs_work && (p->key == NULL || p->work == NULL || !is_plain_name(p->work))))
        return err_set(error, ERR_INVALID, "the plan names no folder that can be worked in");
    if (needs_work && (p->root == NULL) == (p->lowers[0] == NULL))
        return err_set(error, ERR_INVALID, "the plan needs either a root or layers");
    return true;
}

Plan *
plan_read(int fd, GError **error)
{
    g_autofree char *text = g_malloc(PLAN_MAX);
    ssize_t n = io_read_full(fd, text, PLAN_MAX);
    g_autoptr(Plan) p = g_new0(Plan, 1);

    if (n < 0 || n == PLAN_MAX) {
        err_set(error, ERR_INVALID, "the plan cannot be read");
        return NULL;
    }
    p->json = json_decode(text, (size_t)n, error);
    return p->json != NULL && read_fields(p, error) && check(p, error) ? g_steal_pointer(&p) : NULL;
}

void
plan_free(Plan *p)
{
    if (p == NULL)
        return;
    char **lists[] = {p->lowers, p->packages, p->npm, p->pip, p->commands, p->env, p->names};

    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
        g_strfreev(lists[i]);
    json_decref(p->json);
    g_free(p);
}
