/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/forge.h"

#include <unistd.h>

#include "api/slack-words.h"
#include "api/v3/hook-body.h"
#include "base/err.h"
#include "daemon/place.h"
#include "team/told.h"

/* Where the launcher finds it: no PATH of ours decides which git runs. */
static const char *const gits[] = {"/usr/bin/git", "/bin/git"};

static bool
has_git(GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(gits); i++) {
        if (access(gits[i], X_OK) == 0)
            return true;
    }
    return err_set(error, ERR_UNAVAILABLE, "the program '%s' is not installed", gits[0]);
}

/* The hook of pushes is alone in a folder of its own, beside the launcher. */
static char *
hooks_beside(const char *launcher)
{
    g_autofree char *folder = g_path_get_dirname(launcher);

    g_autofree char *hooks = g_build_filename(folder, "git-hooks", NULL);

    return access(hooks, R_OK | X_OK) == 0 ? g_steal_pointer(&hooks) : NULL;
}

Forge *
serve_forge_new(const ServeForgeSpec *spec, GError **error)
{
    const Config *config = spec->config;
    g_autofree char *self = g_file_read_link("/proc/self/exe", error);
    g_autofree char *launcher = self != NULL ? program_find(self, "coop-git", error) : NULL;

    if (launcher == NULL || !has_git(error))
        return NULL;
    g_autofree char *hooks = hooks_beside(launcher);

    return forge_new(&(ForgeSpec){.loop = spec->loop,
                                  .db = spec->db,
                                  .events = spec->events,
                                  .boxes = spec->boxes,
                                  .home = config->home,
                                  .address = spec->address,
                                  .git = launcher,
                                  .hooks = hooks,
                                  .agent_prefix = config->forge.agent_prefix,
                                  .mirror_ms = config->forge.mirror_ms,
                                  .fetch_max = (guint64)config->forge.fetch_max});
}

bool
serve_hooks_open(ServeHooks *hooks, const ServeForgeSpec *spec, Forge *forge, Api *api, GError **error)
{
    hooks->seal = seal_open(spec->config->home, error);
    if (hooks->seal == NULL)
        return false;
    hooks->hooks = hooks_new(&(HooksSpec){.loop = spec->loop,
                                          .db = spec->db,
                                          .events = spec->events,
                                          .forge = forge,
                                          .seal = hooks->seal,
                                          .address = spec->address,
                                          .allow_loopback = spec->config->forge.hooks_to_loopback,
                                          .render = {[HOOK_OF_REPOSITORY] = v3_hook_body,
                                                     [HOOK_OF_SQUAD] = team_told_body,
                                                     [HOOK_OF_TASK] = slack_progress},
                                          .look = team_told_look,
                                          .ctx = api});
    api_set_hooks(api, hooks->hooks);
    return true;
}

void
serve_hooks_stop(ServeHooks *hooks)
{
    g_clear_pointer(&hooks->hooks, hooks_free);
}

void
serve_hooks_clear(ServeHooks *hooks)
{
    g_clear_pointer(&hooks->seal, seal_free);
}
