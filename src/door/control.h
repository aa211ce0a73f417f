/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/loop.h"
#include "brain/gate.h"
#include "door/door.h"
#include "door/fact.h"
#include "door/vault.h"

/* The door's end of wire/door.h: takes boxes, policies, providers and budgets from `coop serve`
 * and tells it the facts.  One server at a time; a newer connection takes the place of the older
 * one.  While there is none, everything goes on as it was told last. */
typedef struct DoorControl DoorControl;

typedef struct DoorControlSpec {
    Loop *loop; /* borrowed, as are the next five */
    Door *door;
    FactLog *facts;
    Gate *gate;
    Budgets *budgets;
    const DoorVault *vault;
    const char *const *own_providers; /* taken from the environment; copied */
    int listener;                     /* taken, also on failure */
    uid_t server_uid;                 /* who may connect, beside root */
} DoorControlSpec;

DoorControl *door_control_new(const DoorControlSpec *spec, GError **error);
void door_control_free(DoorControl *control);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DoorControl, door_control_free)
