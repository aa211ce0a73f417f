/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "door/change.h"
#include "door/models-rows.h"
#include "door/models.h"

/* What models*.c share. */
struct DoorModels {
    guint refs; /* the owner, and each change under way */
    Db *db;
    DoorLink *link;       /* borrowed; NULL: none */
    GPtrArray *providers; /* StoredProvider* */
    GPtrArray *budgets;   /* StoredBudget* */
    DoorModelCounts counts;
};

void models_unref(void *models);
/* Of a change; `refused` and `what` are taken. */
ChangeSpec models_change(DoorModels *models, void *what, GError *refused, DbDone done, void *data);
void models_replace(GPtrArray *list, guint at, gpointer row); /* takes `row` */

/* Each tells the door, if there is one. */
void models_tell_provider(DoorModels *models, const StoredProvider *provider);
void models_tell_budget(DoorModels *models, const StoredBudget *budget);
