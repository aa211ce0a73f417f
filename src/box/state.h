/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/box.h"

/* The table behind BoxState. */
bool box_state_may_follow(BoxState from, BoxState to);
/* From box_state_name(); false: none. */
bool box_state_parse(const char *name, BoxState *ret_state);
/* Nothing leads out of it but, for ERROR, a further try to end what is left. */
static inline bool
box_state_is_end(BoxState state)
{
    return state == BOX_TERMINATED || state == BOX_ERROR;
}
