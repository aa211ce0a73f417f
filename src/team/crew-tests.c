/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent's tool `test` runs where its step names no checks: those of the repository, which Coop runs
 * afterwards too.  They are read where the agent begins; what it adds itself, it knows. */
#include <string.h>

#include "base/err.h"
#include "forge/check-look.h"
#include "forge/git.h"
#include "team/crew-private.h"

typedef struct Tests {
    Shift *shift;
    char *branch, *base;
    CheckLook look;
    TeamJsonFunc done;
    void *data;
} Tests;

static void
tests_free(void *data)
{
    Tests *t = data;

    check_look_clear(&t->look);
    shift_unref(t->shift);
    g_free(t->branch);
    g_free(t->base);
    g_free(t);
}

/* In a thread. */
static bool
tests_work(GitRepo *git, void *data, GError **error)
{
    Tests *t = data;
    g_autofree char *head = t->branch != NULL ? git_branch_oid(git, t->branch, NULL) : NULL;

    if (head == NULL && t->base != NULL)
        head = git_oid_is_valid(t->base) ? g_strdup(t->base) : git_branch_oid(git, t->base, NULL);
    if (head == NULL)
        return err_set(error, ERR_NOT_FOUND, "there is no branch yet");
    check_look_clear(&t->look);
    t->look = (CheckLook){.base_oid = head, .head_oid = head};
    return check_look(git, &t->look, error);
}

/* As one line of the shell. */
static char *
command_of(const PlanCommand *command)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *workdir = g_shell_quote(command->workdir);

    for (char **env = command->env; env != NULL && *env != NULL; env++) {
        g_autofree char *quoted = g_shell_quote(*env);

        g_string_append_printf(text, "export %s; ", quoted);
    }
    if (command->workdir[0] != '\0')
        g_string_append_printf(text, "cd %s && ", workdir);
    g_string_append(text, command->run);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static Json *
list_of(const CheckPlan *plan)
{
    Json *list = json_array();

    for (guint i = 0; plan != NULL && i < MIN(plan->commands->len, CREW_CHECKS_MAX); i++) {
        const PlanCommand *command = plan->commands->pdata[i];
        g_autofree char *run = command_of(command);

        json_array_append_new(list, json_pack("{s:s, s:s}", "name", command->name, "run", run));
    }
    return list;
}

static void
on_looked(void *data, const GError *error)
{
    const Tests *t = data;
    g_autoptr(Json) list = error == NULL ? list_of(t->look.plan) : NULL;

    t->done(list, error, t->data);
}

void
shift_repo_tests(Shift *s, TeamJsonFunc done, void *data)
{
    Tests *t = g_new0(Tests, 1);

    *t = (Tests){.shift = shift_ref(s),
                 .branch = g_strdup(shift_text(s, "git_branch")),
                 .base = g_strdup(shift_text(s, "git_base")),
                 .done = done,
                 .data = data};
    forge_read(s->crew->team->spec.forge, shift_repo(s), "look for an agent's tests", tests_work, on_looked,
               t, tests_free);
}
