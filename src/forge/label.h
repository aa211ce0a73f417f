/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/thread.h"

/* Labels of a repository.  JSON: id, name, color (six hex digits), description.  Names are alike
 * whatever their case. */

enum { LABEL_NAME_MAX = 50, LABEL_DESCRIPTION_MAX = 100, LABEL_COUNT_MAX = 1000 };

typedef struct LabelSpec {
    const char *actor;
    const char *name;
    const char *color;       /* with or without "#"; NULL: one made from the name */
    const char *description; /* NULL: none */
} LabelSpec;
void label_create(Forge *forge, Repo *repo, const LabelSpec *spec, ForgeJsonFunc done, void *data);

typedef struct LabelEdit {
    const char *actor;
    const char *name;
    bool remove;                                /* from every thread too; answers with {} */
    const char *new_name, *color, *description; /* NULL: as it is */
} LabelEdit;
void label_edit(Forge *forge, Repo *repo, const LabelEdit *edit, ForgeJsonFunc done, void *data);

void label_get(Forge *forge, Repo *repo, const char *name, ForgeJsonFunc done, void *data);
/* `number` 0: of the repository; else those of that thread. */
void label_list(Forge *forge, Repo *repo, gint64 number, ForgePage page, ForgeJsonFunc done, void *data);
