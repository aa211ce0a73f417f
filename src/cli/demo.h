/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/remote.h"

/* What the scripted brain says, as brain/script.h reads it (templates/demo/brain.yaml). */
extern const char demo_brain[];

/* One event of a task as a sentence for people; NULL: none that they want to hear of. */
char *demo_tell(const Json *event);
