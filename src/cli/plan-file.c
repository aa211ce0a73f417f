/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan-file.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/spawn.h"
#include "team/plan.h"
#include "json/yaml-json.h"

enum { DEPTH_MAX = 8, VALUES_MAX = 4000, INDENT = 2 };

static Json *
parse_yaml(const char *text, size_t len, GError **error)
{
    /* The schema has one number; whatever else looks like one is a text. */
    static const char *const typed[] = {"minutes", NULL};
    static const YamlLimits limits = {.depth = DEPTH_MAX, .values = VALUES_MAX, .text_max = PLAN_DETAILS_MAX};
    g_auto(YamlProblem) problem = {0};
    g_autoptr(YamlNode) top = yaml_read(text, len, &limits, "a plan is a map", &problem);

    if (problem.message != NULL) {
        err_set(error, ERR_INVALID, "line %u: %s", problem.place.line, problem.message);
        return NULL;
    }
    if (top == NULL) {
        err_set(error, ERR_INVALID, "there is no plan in it");
        return NULL;
    }
    return yaml_json(top, typed);
}

Json *
plan_file_parse(const char *text, size_t len, GError **error)
{
    bool is_json = text[strspn(text, " \t\r\n")] == '{';
    g_autoptr(Json) plan = is_json ? json_decode(text, len, error) : parse_yaml(text, len, error);

    return plan != NULL ? plan_check(plan, error) : NULL;
}

char *
plan_file_format(const Json *plan)
{
    g_autofree char *text = json_dumps(plan, JSON_INDENT(INDENT));

    return g_strconcat(text, "\n", NULL);
}

bool
plan_file_edit(const char *path, GError **error)
{
    const char *visual = g_getenv("VISUAL"), *plain = g_getenv("EDITOR");
    const char *editor = visual != NULL && *visual != '\0' ? visual
                         : plain != NULL && *plain != '\0' ? plain
                                                           : "vi";
    /* With words and quotes of its own, as other programs take it. */
    g_autofree char *line = g_strconcat(editor, " \"$1\"", NULL);
    const char *const argv[] = {"/bin/sh", "-c", line, "sh", path, NULL};
    SpawnSpec spec = SPAWN_SPEC_INIT;
    autofd pidfd = -1;
    siginfo_t how = {0};

    spec.argv = argv;
    spec.stdin_fd = STDIN_FILENO;
    if (spawn_held(&spec, &pidfd, error) < 0)
        return false;
    while (waitid(P_PIDFD, (id_t)pidfd, &how, WEXITED) < 0) {
        if (errno != EINTR)
            return err_errno(error, "wait for the editor");
    }
    return (how.si_code == CLD_EXITED && how.si_status == 0) ||
           err_set(error, ERR_INVALID, "the editor failed, so nothing was changed");
}
