/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/check-plan.h"

#include <string.h>

#include "base/err.h"
#include "forge/contents.h"
#include "json/yaml.h"

enum { DEPTH_MAX = 6, VALUES_MAX = 2000 };

const char plan_file_name[] = "coop.yaml";

/* ---- life ---- */

static void
command_free(void *data)
{
    PlanCommand *c = data;

    g_free(c->name);
    g_free(c->run);
    g_free(c->workdir);
    g_strfreev(c->env);
    g_free(c);
}

CheckPlan *
check_plan_new(const char *source)
{
    CheckPlan *plan = g_new0(CheckPlan, 1);

    plan->commands = g_ptr_array_new_with_free_func(command_free);
    plan->source = g_strdup(source);
    plan->timeout_s = PLAN_SUITE_S;
    return plan;
}

void
check_plan_free(CheckPlan *plan)
{
    if (plan == NULL)
        return;
    g_ptr_array_unref(plan->commands);
    g_free(plan->template);
    g_free(plan->source);
    g_free(plan);
}

PlanCommand *
check_plan_add(CheckPlan *plan, bool is_setup, const char *name, const char *run)
{
    PlanCommand *c = g_new0(PlanCommand, 1);

    *c = (PlanCommand){.name = g_strdup(name != NULL ? name : run),
                       .run = g_strdup(run),
                       .workdir = g_strdup(""),
                       .env = g_new0(char *, 1),
                       .timeout_s = PLAN_TIMEOUT_S,
                       .is_setup = is_setup};
    g_ptr_array_add(plan->commands, c);
    return c;
}

/* ---- values ---- */

static bool fail(GError **error, YamlPlace at, const char *fmt, ...) G_GNUC_PRINTF(3, 4);

static bool
fail(GError **error, YamlPlace at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *why = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return err_set(error, ERR_INVALID, "%s, line %u: %s", plan_file_name, at.line, why);
}

static bool
read_text(const YamlNode *node, const char *what, size_t max, char **ret, GError **error)
{
    if (node->kind != YAML_TEXT || node->text[0] == '\0' || strlen(node->text) > max)
        return fail(error, node->place, "%s must be a text of at most %zu bytes", what, max);
    g_free(*ret);
    *ret = g_strdup(node->text);
    return true;
}

/* One line: it is a title in many places. */
static bool
read_name(const YamlNode *node, char **ret, GError **error)
{
    if (!read_text(node, "name", PLAN_NAME_MAX, ret, error))
        return false;
    for (const char *p = *ret; *p != '\0'; p++) {
        if (g_ascii_iscntrl(*p))
            return fail(error, node->place, "name must be one line without control characters");
    }
    return true;
}

static bool
read_timeout(const YamlNode *node, guint max, guint *ret, GError **error)
{
    guint64 seconds;

    if (node->kind != YAML_TEXT || !g_ascii_string_to_unsigned(node->text, 10, 1, max, &seconds, NULL))
        return fail(error, node->place, "timeout must be a number of seconds from 1 to %u", max);
    *ret = (guint)seconds;
    return true;
}

static bool
read_workdir(const YamlNode *node, char **ret, GError **error)
{
    if (!read_text(node, "workdir", CONTENTS_PATH_MAX, ret, error))
        return false;
    if (strcmp(*ret, ".") == 0)
        (*ret)[0] = '\0';
    else if (!contents_path_is_valid(*ret, NULL))
        return fail(error, node->place, "workdir must be a folder of the tree, such as 'web/app'");
    return true;
}

static bool
read_env(const YamlNode *node, char ***ret, GError **error)
{
    g_autoptr(GPtrArray) env = g_ptr_array_new_with_free_func(g_free);

    if (node->kind != YAML_MAP || node->items->len > PLAN_ENV_MAX)
        return fail(error, node->place, "env must be at most %d names with values", PLAN_ENV_MAX);
    for (guint i = 0; i < node->items->len; i++) {
        const YamlNode *key = node->keys->pdata[i], *value = node->items->pdata[i];

        if (!g_regex_match_simple("^[A-Za-z_][A-Za-z0-9_]*$", key->text, G_REGEX_DOLLAR_ENDONLY, 0))
            return fail(error, key->place, "'%s' cannot be a name in env", key->text);
        if (value->kind != YAML_TEXT)
            return fail(error, value->place, "%s in env must have a plain value", key->text);
        g_ptr_array_add(env, g_strconcat(key->text, "=", value->text, NULL));
    }
    g_ptr_array_add(env, NULL);
    g_strfreev(*ret);
    *ret = (char **)g_ptr_array_free(g_steal_pointer(&env), FALSE);
    return true;
}

/* ---- commands ---- */

static bool
read_member(PlanCommand *c, const YamlNode *key, const YamlNode *value, GError **error)
{
    if (strcmp(key->text, "name") == 0)
        return read_name(value, &c->name, error);
    if (strcmp(key->text, "run") == 0)
        return read_text(value, "run", PLAN_RUN_MAX, &c->run, error);
    if (strcmp(key->text, "timeout") == 0)
        return read_timeout(value, PLAN_TIMEOUT_MAX_S, &c->timeout_s, error);
    if (strcmp(key->text, "env") == 0)
        return read_env(value, &c->env, error);
    if (strcmp(key->text, "workdir") == 0)
        return read_workdir(value, &c->workdir, error);
    return fail(error, key->place, "a command has no '%s', but name, run, timeout, env and workdir",
                key->text);
}

static char *
name_of_run(const char *run)
{
    g_autofree char *line = g_strndup(run, strcspn(run, "\n"));

    if (strlen(line) <= PLAN_NAME_MAX)
        return g_steal_pointer(&line);
    char *cut = g_strndup(line, PLAN_NAME_MAX);
    const char *end;

    g_utf8_validate(cut, -1, &end);
    cut[end - cut] = '\0';
    return cut;
}

static bool
read_command(CheckPlan *plan, bool is_setup, const YamlNode *node, GError **error)
{
    PlanCommand *c = check_plan_add(plan, is_setup, "", "");

    if (node->kind == YAML_TEXT) {
        if (!read_text(node, "a command", PLAN_RUN_MAX, &c->run, error))
            return false;
    } else if (node->kind != YAML_MAP) {
        return fail(error, node->place, "a command is a text, or a map with name and run");
    }
    for (guint i = 0; node->kind == YAML_MAP && i < node->items->len; i++) {
        if (!read_member(c, node->keys->pdata[i], node->items->pdata[i], error))
            return false;
    }
    if (c->run[0] == '\0')
        return fail(error, node->place, "this command has no 'run'");
    if (c->name[0] == '\0') {
        g_free(c->name);
        c->name = name_of_run(c->run);
    }
    return true;
}

static bool
read_commands(CheckPlan *plan, bool is_setup, const YamlNode *node, GError **error)
{
    if (node->kind != YAML_LIST)
        return fail(error, node->place, "%s must be a list of commands", is_setup ? "setup" : "checks");
    for (guint i = 0; i < node->items->len; i++) {
        if (plan->commands->len >= PLAN_COMMANDS_MAX)
            return fail(error, node->place, "there are more than %d commands", PLAN_COMMANDS_MAX);
        if (!read_command(plan, is_setup, node->items->pdata[i], error))
            return false;
    }
    return true;
}

/* Two rows of one name would be one in most faces, and the second would hide the first. */
static bool
check_names(const CheckPlan *plan, GError **error)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < plan->commands->len; i++) {
        const PlanCommand *c = plan->commands->pdata[i];

        if (!g_hash_table_add(names, c->name))
            return err_set(error, ERR_INVALID, "%s: two commands have the name '%s'", plan_file_name,
                           c->name);
    }
    return true;
}

/* ---- the file ---- */

static bool
read_top(CheckPlan *plan, const YamlNode *top, GError **error)
{
    const YamlNode *setup = yaml_member(top, "setup"), *checks = yaml_member(top, "checks");
    const YamlNode *template = yaml_member(top, "template"), *timeout = yaml_member(top, "timeout");
    const YamlNode *team = yaml_member(top, "team"); /* read by team/repo-file.c */

    for (guint i = 0; i < top->keys->len; i++) {
        const YamlNode *key = top->keys->pdata[i], *value = top->items->pdata[i];

        if (value != setup && value != checks && value != template && value != timeout && value != team)
            return fail(error, key->place,
                        "there is no '%s' here, but template, timeout, setup, checks and team", key->text);
    }
    if ((template != NULL && !read_name(template, &plan->template, error)) ||
        (timeout != NULL && !read_timeout(timeout, PLAN_SUITE_MAX_S, &plan->timeout_s, error)))
        return false;
    if ((setup != NULL && !read_commands(plan, true, setup, error)) ||
        (checks != NULL && !read_commands(plan, false, checks, error)) || !check_names(plan, error))
        return false;
    /* A file about the team alone says nothing against what is recognised. */
    if (checks == NULL && setup == NULL && team != NULL)
        return true;
    return (checks != NULL && checks->items->len > 0) ||
           err_set(error, ERR_INVALID, "%s has no checks: name at least one command", plan_file_name);
}

CheckPlan *
check_plan_parse(const char *text, size_t len, GError **error)
{
    static const YamlLimits limits = {.depth = DEPTH_MAX, .values = VALUES_MAX, .text_max = PLAN_RUN_MAX};
    g_auto(YamlProblem) problem = {0};
    g_autoptr(YamlNode) top = yaml_read(text, len, &limits, "the file must be a map", &problem);
    g_autoptr(CheckPlan) plan = check_plan_new(plan_file_name);

    if (problem.message != NULL) {
        fail(error, problem.place, "%s", problem.message);
        return NULL;
    }
    if (top == NULL || top->kind != YAML_MAP) {
        err_set(error, ERR_INVALID, "%s has no checks: name at least one command", plan_file_name);
        return NULL;
    }
    return read_top(plan, top, error) ? g_steal_pointer(&plan) : NULL;
}
