/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "brain/gate.h"

/* In the place of src/brain's: answers every call with "BOX AGENT TASK SQUAD". */
Gate *fake_gate_new(void); /* gate_free() */
guint fake_gate_forgotten(const Gate *gate);
