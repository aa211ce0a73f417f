/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "brain/provider.h"

/* Keys of providers that were in the environment Coop was started with. */
typedef struct DoorKeyVariable {
    const char *variable;
    ProviderKind kind;
} DoorKeyVariable;

/* Ended by a NULL variable. */
extern const DoorKeyVariable door_key_variables[];

/* A copy of the value, which is overwritten where it stands (/proc shows that place) and unset;
 * NULL: it was not set or empty. */
char *door_take_variable(const char *name);
/* Overwrites and frees. */
void door_wipe_text(char *text);
