/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/adapter.h"

/* Pairs are names and values in turn, NULL-terminated; NULL: none. */
typedef struct AdapterRule {
    char **where, **of;
    char *each; /* NULL: the line itself */
    char *kind;
    char **members;
} AdapterRule;
void adapter_rule_free(void *rule);

struct Adapter {
    char *name, *description, *dialect, *ready, *setup, *output;
    char **command, **env;
    GPtrArray *files, *rules;
};
