/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/git-private.h"
#include "wire/git-launch.h"

static const char *const fixed[] = {
    "PATH=/usr/bin:/bin",
    "HOME=/nonexistent",
    "LC_ALL=C",
    "TZ=UTC",
    "GIT_CONFIG_NOSYSTEM=1",
    "GIT_CONFIG_SYSTEM=/dev/null",
    "GIT_CONFIG_GLOBAL=/dev/null",
    "GIT_ATTR_NOSYSTEM=1",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_ASKPASS=/bin/false",
    "GIT_EDITOR=/bin/false",
    "GIT_PAGER=cat",
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_NO_REPLACE_OBJECTS=1",
    "GIT_NO_LAZY_FETCH=1",
    "GIT_LITERAL_PATHSPECS=1",
    "GIT_ADVICE=0",
    /* Reflogs want somebody; commits name their people themselves. */
    "GIT_AUTHOR_NAME=Coop",
    "GIT_AUTHOR_EMAIL=coop@localhost",
    "GIT_COMMITTER_NAME=Coop",
    "GIT_COMMITTER_EMAIL=coop@localhost",
};

/* Of the command line's rank: they win over what the repository's own file says. */
static const struct {
    const char *key, *value;
} settings[] = {
    {"core.bare", "true"},
    {"core.fsmonitor", "false"},
    {"core.attributesFile", "/dev/null"},
    {"core.excludesFile", "/dev/null"},
    {"core.alternateRefsPrefixes", "refs/none"},
    {"core.sshCommand", "/bin/false"},
    {"core.pager", "cat"},
    {"core.editor", "/bin/false"},
    {"core.fsync", "all"},
    {"credential.helper", ""},
    {"gc.auto", "0"},
    {"gc.autoDetach", "false"},
    {"maintenance.auto", "false"},
    {"protocol.allow", "never"},
    {"submodule.recurse", "false"},
    {"fetch.recurseSubmodules", "false"},
    {"push.recurseSubmodules", "no"},
    {"fetch.writeCommitGraph", "false"},
    {"commit.gpgSign", "false"},
    {"tag.gpgSign", "false"},
    {"log.showSignature", "false"},
    {"transfer.fsckObjects", "true"},
    {"fetch.fsckObjects", "true"},
    {"receive.fsckObjects", "true"},
    {"receive.autogc", "false"},
    {"receive.advertisePushOptions", "false"},
    {"uploadpack.allowFilter", "true"},
};

static const char *const remote_protocols[] = {"https", "http", NULL};

typedef struct Env {
    GPtrArray *list;
    guint n_settings;
} Env;

/* The later one wins, as it does on a command line; getenv() would take the first. */
static void
put(Env *env, char *text)
{
    size_t name = strcspn(text, "=") + 1;

    for (guint i = 0; i < env->list->len; i++) {
        if (strncmp(g_ptr_array_index(env->list, i), text, name) == 0) {
            g_free(env->list->pdata[i]);
            env->list->pdata[i] = text;
            return;
        }
    }
    g_ptr_array_add(env->list, text);
}

static void
put_setting(Env *env, const char *key, const char *value)
{
    put(env, g_strdup_printf("GIT_CONFIG_KEY_%u=%s", env->n_settings, key));
    put(env, g_strdup_printf("GIT_CONFIG_VALUE_%u=%s", env->n_settings, value));
    env->n_settings++;
}

/* A redirect could lead into this machine's own network. */
static void
put_protocols(Env *env, const GitCall *call)
{
    const char *const *names = call->protocols != NULL ? call->protocols : remote_protocols;

    if (call->access != GIT_REMOTE)
        return;
    put_setting(env, "http.followRedirects", "false");
    for (guint i = 0; names[i] != NULL; i++) {
        g_autofree char *key = g_strdup_printf("protocol.%s.allow", names[i]);

        put_setting(env, key, "always");
    }
}

/* A push's own objects are apart until it is taken, and those of the repository are alternates.  Their refs
 * are known: a program that says nothing is asked for them. */
static void
put_alternates(Env *env, const GitRepo *repo)
{
    g_autofree char *program = repo->hooks != NULL ? g_build_filename(repo->hooks, "alternate-refs", NULL)
                                                   : g_strdup("/bin/false");

    put_setting(env, "core.alternateRefsCommand", program);
}

char **
git_call_env(const GitRepo *repo, const GitCall *call)
{
    Env env = {.list = g_ptr_array_new()};

    for (size_t i = 0; i < G_N_ELEMENTS(fixed); i++)
        put(&env, g_strdup(fixed[i]));
    put(&env, g_strconcat("GIT_DIR=", repo->path, NULL));
    put(&env, g_strconcat("TMPDIR=", repo->path, "/tmp", NULL));
    for (size_t i = 0; i < G_N_ELEMENTS(settings); i++)
        put_setting(&env, settings[i].key, settings[i].value);
    put_setting(&env, "core.hooksPath", repo->hooks != NULL ? repo->hooks : "/dev/null");
    put_alternates(&env, repo);
    put_setting(&env, "safe.directory", repo->path);
    put_protocols(&env, call);
    for (guint i = 0; call->settings != NULL && call->settings[i] != NULL; i++) {
        g_auto(GStrv) pair = g_strsplit(call->settings[i], "=", 2);

        put_setting(&env, pair[0], pair[1] != NULL ? pair[1] : "");
    }
    for (guint i = 0; call->env != NULL && call->env[i] != NULL; i++)
        put(&env, g_strdup(call->env[i]));
    if (call->config != NULL)
        put(&env, g_strdup(GIT_LAUNCH_CONFIG));
    put(&env, g_strdup_printf("GIT_CONFIG_COUNT=%u", env.n_settings));
    g_ptr_array_add(env.list, NULL);
    return (char **)g_ptr_array_free(env.list, FALSE);
}

static const char *
access_option(GitAccess access)
{
    switch (access) {
    case GIT_READ:
        return "--read";
    case GIT_WRITE:
        return "--write";
    case GIT_REMOTE:
        return "--net";
    }
    g_assert_not_reached();
}

char **
git_call_argv(const GitRepo *repo, const GitCall *call, bool wait)
{
    GPtrArray *argv = g_ptr_array_new();

    g_ptr_array_add(argv, g_strdup(repo->launcher));
    g_ptr_array_add(argv, g_strdup(access_option(call->access)));
    if (wait)
        g_ptr_array_add(argv, g_strdup("--wait"));
    if (call->config != NULL)
        g_ptr_array_add(argv, g_strdup("--config"));
    if (repo->foreign)
        g_ptr_array_add(argv, g_strdup("--foreign"));
    if (repo->hooks != NULL)
        g_ptr_array_add(argv, g_strconcat("--hooks=", repo->hooks, NULL));
    if (call->file_max > 0)
        g_ptr_array_add(argv, g_strdup_printf("--file-max=%" G_GUINT64_FORMAT, call->file_max));
    g_ptr_array_add(argv, g_strdup(repo->path));
    g_ptr_array_add(argv, g_strdup("--"));
    g_ptr_array_add(argv, g_strdup("git"));
    for (guint i = 0; call->args[i] != NULL; i++)
        g_ptr_array_add(argv, g_strdup(call->args[i]));
    g_ptr_array_add(argv, NULL);
    return (char **)g_ptr_array_free(argv, FALSE);
}
