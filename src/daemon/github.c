/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/github.h"

#include "base/err.h"
#include "door/takeover.h"

static const char *const variables[] = {"GITHUB_TOKEN", "GH_TOKEN"};

GithubEnv *
github_take_environment(void)
{
    g_autoptr(GPtrArray) env = g_ptr_array_new();

    for (size_t i = 0; i < G_N_ELEMENTS(variables); i++) {
        char *token = door_take_variable(variables[i]);

        if (token != NULL)
            g_ptr_array_add(env, g_strdup_printf("%s=%s", variables[i], token));
        door_wipe_text(token);
    }
    g_ptr_array_add(env, NULL);
    return (char **)g_ptr_array_steal(env, NULL);
}

void
github_env_free(GithubEnv *env)
{
    for (guint i = 0; env[i] != NULL; i++)
        door_wipe_text(env[i]);
    g_free(env);
}

Github *
serve_github_new(const ServeGithubSpec *spec, GError **error)
{
    const ConfigGithub *c = &spec->config->github;
    g_autofree char *base = c->api_url != NULL ? github_base_url(c->api_url, error) : NULL;

    if (c->api_url != NULL && base == NULL)
        return NULL;
    return github_new(&(GithubSpec){.loop = spec->loop,
                                    .db = spec->db,
                                    .events = spec->events,
                                    .forge = spec->forge,
                                    .home = spec->config->home,
                                    .write_pause_ms = (guint)c->write_pause_ms,
                                    .poll_ms = c->poll_ms,
                                    .token = c->token,
                                    .token_base = base},
                      error);
}
