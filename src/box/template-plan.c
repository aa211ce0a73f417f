/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/utsname.h>

#include "box/template-private.h"

/* Goes up when the builder makes something else of the same recipe. */
enum { BUILD_FORMAT = 1 };

static Json *
array_of(char *const *texts)
{
    Json *array = json_array();

    for (guint i = 0; texts[i] != NULL; i++)
        json_array_append_new(array, json_string(texts[i]));
    return array;
}

static void
set_text(Json *object, const char *name, const char *text)
{
    if (text != NULL)
        json_object_set_new(object, name, json_string(text));
}

static Json *
files_of(const Recipe *recipe)
{
    Json *array = json_array();

    for (guint i = 0; i < recipe->files->len; i++) {
        const RecipeFile *f = recipe->files->pdata[i];

        json_array_append_new(array, json_pack("{s:s, s:s, s:i}", "path", f->path, "content", f->content,
                                               "mode", (int)f->mode));
    }
    return array;
}

static Json *
checks_of(const Recipe *recipe)
{
    Json *array = json_array();

    for (guint i = 0; i < recipe->verify->len; i++) {
        const RecipeCheck *c = recipe->verify->pdata[i];

        json_array_append_new(array, json_pack("{s:s, s:s}", "command", c->command, "want", c->want));
    }
    if (recipe->node != NULL) {
        g_autofree char *want = g_strdup_printf("v%s.", recipe->node);

        json_array_append_new(array, json_pack("{s:s, s:s}", "command", "node --version", "want", want));
    }
    return array;
}

static bool
is_arm(void)
{
    struct utsname name;

    return uname(&name) == 0 && strcmp(name.machine, "aarch64") == 0;
}

/* What the recipe itself says, in the form of a plan. */
static Json *
contents_of(const Recipe *recipe)
{
    Json *plan = json_object();

    set_text(plan, "root", recipe->root);
    set_text(plan, "folder", recipe->folder);
    json_object_set_new(plan, "packages", array_of(recipe->packages));
    json_object_set_new(plan, "npm", array_of(recipe->npm));
    json_object_set_new(plan, "pip", array_of(recipe->pip));
    json_object_set_new(plan, "commands", array_of(recipe->commands));
    json_object_set_new(plan, "files", files_of(recipe));
    json_object_set_new(plan, "verify", checks_of(recipe));
    set_text(plan, "node", recipe->node);
    set_text(plan, "go", recipe->go);
    if (recipe->go != NULL)
        set_text(plan, "go_sum", is_arm() ? recipe->go_arm64 : recipe->go_amd64);
    return plan;
}

char *
template_key(const Recipe *recipe, const char *const *lowers, const char *sudo)
{
    g_autoptr(Json) all = contents_of(recipe);
    g_autofree char *id = g_get_os_info(G_OS_INFO_KEY_ID);
    g_autofree char *version = g_get_os_info(G_OS_INFO_KEY_VERSION_ID);
    struct utsname name;

    json_object_set_new(all, "lowers", array_of((char *const *)(guintptr)lowers));
    json_object_set_new(all, "env", array_of(recipe->env));
    json_object_set_new(all, "format", json_integer(BUILD_FORMAT));
    set_text(all, "sudo", recipe->sudo == RECIPE_ON ? sudo : NULL);
    set_text(all, "machine", uname(&name) == 0 ? name.machine : "");
    set_text(all, "system", id);
    set_text(all, "release", version);
    g_autofree char *text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
    return g_strndup(hash, TEMPLATE_HASH_LEN);
}

Json *
template_plan(GPtrArray *chain, guint i, const char *key, const char *const *lowers, bool fresh)
{
    Json *plan = contents_of(chain->pdata[i]);
    g_auto(GStrv) env = g_new0(char *, 1);
    const char *user = NULL;
    const char *workdir = NULL;

    for (guint k = 0; k <= i; k++) {
        const Recipe *recipe = chain->pdata[k];

        user = recipe->user != NULL ? recipe->user : user;
        workdir = recipe->workdir != NULL ? recipe->workdir : workdir;
        for (guint e = 0; recipe->env[e] != NULL; e++) {
            g_auto(GStrv) parts = g_strsplit(recipe->env[e], "=", 2);

            env = g_environ_setenv(env, parts[0], parts[1], TRUE);
        }
    }
    json_object_set_new(plan, "action", json_string("build"));
    json_object_set_new(plan, "key", json_string(key));
    json_object_set_new(plan, "lowers", array_of((char *const *)(guintptr)lowers));
    json_object_set_new(plan, "env", array_of(env));
    json_object_set_new(plan, "fresh", json_boolean(fresh));
    set_text(plan, "user", user);
    set_text(plan, "workdir", workdir);
    return plan;
}
