/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/door-place.h"

#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/place.h"
#include "door/takeover.h"

static const char place[] = "door";
static const char user[] = "coop-door";

/* What the door needs of our environment beside the keys: it holds secrets, so it gets little. */
static const char *const passed_on[] = {
    "PATH",         "COOP_LOG",     "COOP_FAIL_AT",  "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS",
};

char *
door_socket(const Config *config)
{
    return place_socket(config, place);
}

void
door_find_user(const RunAs *server, RunAs *ret_as)
{
    if (geteuid() == 0 && run_as_find(user, ret_as, NULL))
        return;
    if (geteuid() == 0)
        log_info("daemon", "the door runs as the server's user: there is no other", log_str("missing", user));
    *ret_as = (RunAs){.name = g_strdup(server->name), .uid = server->uid, .gid = server->gid};
}

bool
door_prepare(const Config *config, const RunAs *as, GError **error)
{
    g_autofree char *folder = place_folder(config, place, geteuid() == 0);

    return place_make(folder, as->uid, as->gid, error);
}

GPtrArray *
door_argv(const Config *config, const RunAs *server, const RunAs *as, const char *self, GError **error)
{
    g_autofree char *program = program_find(self, "coop-door", error);
    g_autofree char *folder = place_folder(config, place, geteuid() == 0);

    if (program == NULL)
        return NULL;
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(argv, g_steal_pointer(&program));
    place_add_option(argv, "--socket", g_build_filename(folder, "socket", NULL));
    place_add_option(argv, "--state", g_build_filename(folder, "state", NULL));
    place_add_option(argv, "--server-uid", g_strdup_printf("%u", server->uid));
    if (as->name != NULL)
        place_add_option(argv, "--user", g_strdup(as->name));
    g_ptr_array_add(argv, NULL);
    return argv;
}

char **
door_take_environment(void)
{
    g_autoptr(GPtrArray) env = g_ptr_array_new();
    const char *value;

    for (size_t i = 0; i < G_N_ELEMENTS(passed_on); i++) {
        value = g_getenv(passed_on[i]);
        if (value != NULL)
            g_ptr_array_add(env, g_strdup_printf("%s=%s", passed_on[i], value));
    }
    guint plain = env->len;

    for (const DoorKeyVariable *v = door_key_variables; v->variable != NULL; v++) {
        char *key = door_take_variable(v->variable);

        if (key != NULL)
            g_ptr_array_add(env, g_strdup_printf("%s=%s", v->variable, key));
        door_wipe_text(key);
    }
    /* The copy stays with us for the day the door has to be started again. */
    if (env->len > plain)
        (void)prctl(PR_SET_DUMPABLE, 0);
    g_ptr_array_add(env, NULL);
    return (char **)g_ptr_array_steal(env, NULL);
}
