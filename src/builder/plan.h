/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "json/json.h"

/* What the server asks for, one JSON object on standard input; the server has checked what
 * people wrote. */

typedef enum PlanAction {
    PLAN_BUILD,
    PLAN_TRY,    /* run the checks in an existing template, keep nothing */
    PLAN_REMOVE, /* folders that belong to the lent ids */
} PlanAction;

enum { PLAN_MAX = 4 << 20 };

typedef struct Plan {
    Json *json; /* owns what is borrowed below */
    PlanAction action;
    const char *store; /* absolute */
    const char *key;   /* hash of everything the layer is made from */
    const char *work;  /* name of the folder below the store while it is being made */
    const char *root;  /* "debian", "host", "folder"; NULL: on `lowers` */
    const char *folder;
    char **lowers; /* names of layers, top first */
    char **packages, **npm, **pip, **commands, **env, **names;
    const char *node;           /* NULL: no promise */
    const char *go, *go_sum;    /* NULL: none */
    Json *files;                /* of {path, content, mode} */
    Json *verify;               /* of {command, want} */
    const char *user, *workdir; /* of commands that are tried */
    const char *sudo;           /* program to put at /usr/bin/sudo; NULL: none */
    bool fresh;                 /* package lists are read anew */
} Plan;

Plan *plan_read(int fd, GError **error);
void plan_free(Plan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Plan, plan_free)
