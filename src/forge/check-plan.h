/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* Which commands are a repository's checks.
 *
 *     template: nodejs-18        # what the box starts from; else the server's default
 *     timeout: 1800              # seconds, of all together
 *     setup:                     # in order, first; one that fails skips what follows
 *       - npm ci
 *     checks:                    # each is a check run; all of them run
 *       - name: tests
 *         run: npm test          # by the shell, in the tree
 *         timeout: 300           # seconds
 *         env: {TZ: UTC}
 *         workdir: web           # below the top of the tree
 *
 * A command may be a plain text, which then is its name too.  Everything in the file is known or refused:
 * a name that is written wrong must not mean that nothing is checked.  Pure functions. */

enum {
    PLAN_COMMANDS_MAX = 50, /* setup included */
    PLAN_NAME_MAX = 100,
    PLAN_RUN_MAX = 8192,
    PLAN_ENV_MAX = 64,
    PLAN_FILE_MAX = 256 * 1024, /* bytes of one that is looked into */
    PLAN_TIMEOUT_S = 600,
    PLAN_TIMEOUT_MAX_S = 3600,
    PLAN_SUITE_S = 3600, /* all together */
    PLAN_SUITE_MAX_S = 4 * 3600,
};

extern const char plan_file_name[]; /* "coop.yaml" */

typedef struct PlanCommand {
    char *name;
    char *run;
    char *workdir; /* "": the top of the tree */
    char **env;    /* "NAME=value" */
    guint timeout_s;
    bool is_setup;
} PlanCommand;

typedef struct CheckPlan {
    GPtrArray *commands; /* PlanCommand, setup first */
    char *template;      /* NULL: the default one */
    bool template_is_guess;
    guint timeout_s;
    char *source; /* "coop.yaml", or what was recognised: "detected: package.json, go.mod" */
} CheckPlan;
CheckPlan *check_plan_new(const char *source);
void check_plan_free(CheckPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CheckPlan, check_plan_free)
/* Takes nothing; `name` NULL: `run`. */
PlanCommand *check_plan_add(CheckPlan *plan, bool is_setup, const char *name, const char *run);

/* One without commands: the file has `team` alone, which is team/repo-file.h's, and perhaps a template and a
 * time; commands are those that are recognised. */
CheckPlan *check_plan_parse(const char *text, size_t len, GError **error);

/* ---- where there is no such file ---- */

/* What a tree has: path -> GBytes, the content of those that are looked into, else NULL.  Only the names in
 * its top folder and in `tests`. */
typedef GHashTable PlanFiles;
/* The content of this file decides something. */
bool check_plan_looks_into(const char *path);
/* NULL: nothing that is known. */
CheckPlan *check_plan_detect(PlanFiles *files);
