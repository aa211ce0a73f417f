/* SPDX-License-Identifier: Apache-2.0 */
#include "store-child.h"

#include <sys/wait.h>
#include <unistd.h>

void
store_child_start(StoreChild *child, const char *fail_at, const char *mode, const char *path,
                  const char *argument)
{
    g_autofree char *program = g_test_build_filename(G_TEST_BUILT, "store-crash", NULL);
    g_autoptr(GStrvBuilder) argv = g_strv_builder_new();
    g_auto(GStrv) env = g_get_environ();
    g_autoptr(GError) error = NULL;

    g_strv_builder_add_many(argv, program, mode, path, argument, NULL);
    g_auto(GStrv) words = g_strv_builder_end(argv);
    env = g_environ_unsetenv(env, "COOP_FAIL_AT");
    if (fail_at != NULL)
        env = g_environ_setenv(env, "COOP_FAIL_AT", fail_at, TRUE);
    g_spawn_async_with_pipes(NULL, words, env, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &child->pid, &child->in,
                             &child->out, NULL, &error);
    g_assert_no_error(error);
}

int
store_child_wait(StoreChild *child)
{
    int status;

    close(child->in);
    close(child->out);
    g_assert_cmpint(waitpid(child->pid, &status, 0), ==, child->pid);
    return status;
}
