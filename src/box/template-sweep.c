/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/id.h"
#include "base/io.h"
#include "base/log.h"
#include "base/spawn.h"
#include "box/template-private.h"

/* Layers belong to ids that are lent to us, so only the builder can remove them.  A name with
 * ".tmp-" is nobody's: a layer is given such a name first, and what is killed half way is
 * removed at the next start. */

/* Nothing of ours but where packages come from. */
static char **
builder_env(void)
{
    static const char *const kept[] = {"http_proxy",
                                       "https_proxy",
                                       "all_proxy",
                                       "no_proxy",
                                       "HTTP_PROXY",
                                       "HTTPS_PROXY",
                                       "ALL_PROXY",
                                       "NO_PROXY",
                                       "GOPROXY",
                                       "PIP_INDEX_URL",
                                       "PIP_EXTRA_INDEX_URL",
                                       "PIP_TRUSTED_HOST",
                                       "npm_config_registry",
                                       "NPM_CONFIG_REGISTRY",
                                       "PATH",
                                       "HOME",
                                       "ASAN_OPTIONS",
                                       "UBSAN_OPTIONS",
                                       "COOP_FAIL_AT"};
    char **env = g_new0(char *, 1);

    for (size_t i = 0; i < G_N_ELEMENTS(kept); i++) {
        const char *value = g_getenv(kept[i]);

        if (value != NULL)
            env = g_environ_setenv(env, kept[i], value, TRUE);
    }
    return g_environ_setenv(env, "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", FALSE);
}

/* The plan may be larger than a pipe. */
static int
text_fd(const char *text, GError **error)
{
    int fd = io_open_memory("plan", text, strlen(text));

    if (fd < 0)
        err_errno(error, "hand a plan to the builder");
    return fd;
}

Child *
template_builder_spawn(const TemplateBuilder *builder, const char *plan, int stdout_fd,
                       ChildExitFunc on_exit_func, void *data, GError **error)
{
    g_auto(GStrv) env = builder_env();
    const char *argv[] = {builder->path, builder->space_fd > 0 ? "--userns" : NULL, NULL};
    autofd in_fd = text_fd(plan, error);
    SpawnSpec spec = SPAWN_SPEC_INIT;

    if (in_fd < 0)
        return NULL;
    spec.argv = argv;
    spec.env = (const char *const *)env;
    spec.cwd = "/";
    spec.stdin_fd = in_fd;
    spec.stdout_fd = stdout_fd;
    spec.extra_fd = MAX(builder->space_fd, 0);
    spec.new_session = true;
    return child_spawn(&spec, on_exit_func, data, error);
}

static void
on_removed(Child *child, ChildExit how, void *data)
{
    if (how.signalled || how.value != 0)
        log_warn("templates", "what builds have left could not be removed");
    child_free(child);
}

static void
remove_names(const char *folder, const TemplateBuilder *builder, Json *names)
{
    g_autoptr(Json) plan = json_pack("{s:s, s:s, s:O}", "action", "remove", "store", folder, "names", names);
    g_autofree char *text = json_encode(plan);
    g_autoptr(GError) error = NULL;

    if (json_array_size(names) > 0 &&
        template_builder_spawn(builder, text, STDERR_FILENO, on_removed, NULL, &error) == NULL)
        log_warn("templates", "the builder cannot be started", log_gerror(error));
}

void
template_sweep_stale(Loop *loop, const char *folder, const TemplateBuilder *builder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(Json) names = json_array();
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        if (strstr(name, ".tmp-") != NULL)
            json_array_append_new(names, json_string(name));
    }
    remove_names(folder, builder, names);
}

/* Records of other servers on the same folder count too. */
static void
add_recorded(const char *folder, GHashTable *used)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        if (!g_str_has_suffix(name, ".json") && !g_str_has_suffix(name, ".old"))
            continue;
        TemplateFull *full = template_full_read(NULL, folder, name);

        for (guint i = 0; full != NULL && i < full->t.n_layers; i++)
            g_hash_table_add(used, g_strdup(full->t.layers[i]));
        if (full != NULL)
            template_unref(&full->t);
    }
}

static bool
is_layer_name(const char *name)
{
    return strlen(name) == TEMPLATE_HASH_LEN && strspn(name, "0123456789abcdef") == TEMPLATE_HASH_LEN;
}

static void
retire_layer(int folder_fd, const char *name, Json *names)
{
    g_autofree char *gone = g_strconcat(name, ".tmp-gone", NULL);

    if (renameat(folder_fd, name, folder_fd, gone) == 0)
        json_array_append_new(names, json_string(gone));
}

/* Which layer a key gave is worth nothing without the layer. */
static void
drop_index(const char *folder, int folder_fd, const char *name)
{
    g_autofree char *key = g_strndup(name, strlen(name) - strlen(".layer"));
    g_autoptr(TemplateLayer) layer = template_layer_find(folder, key);

    if (layer == NULL)
        (void)unlinkat(folder_fd, name, 0);
}

static void
sweep(const char *folder, int folder_fd, GHashTable *used, Json *names)
{
    static const char *const suffixes[] = {NULL, ".layer"};
    const char *name;

    add_recorded(folder, used);
    for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);

        while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
            if (suffixes[i] == NULL && is_layer_name(name) && !g_hash_table_contains(used, name))
                retire_layer(folder_fd, name, names);
            else if (suffixes[i] != NULL && g_str_has_suffix(name, suffixes[i]))
                drop_index(folder, folder_fd, name);
        }
    }
}

void
template_sweep_layers(Loop *loop, const char *folder, const TemplateBuilder *builder, GHashTable *used)
{
    autofd folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_autoptr(Json) names = json_array();

    /* A server that builds holds the lock from its first layer to its record. */
    if (folder_fd < 0 || flock(folder_fd, LOCK_EX | LOCK_NB) < 0)
        return;
    sweep(folder, folder_fd, used, names);
    remove_names(folder, builder, names);
}
