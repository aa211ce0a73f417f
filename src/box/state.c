/* SPDX-License-Identifier: Apache-2.0 */
#include "box/state.h"

#include <string.h>

#define TO(state) (1U << (state))

/* A box can vanish from any state in which it exists, and be found to have vanished while
 * nobody looked. */
static const struct {
    const char *name, *status;
    unsigned next;
} states[BOX_STATE_MAX] = {
    [BOX_CREATING] = {"creating", "CREATED",
                      TO(BOX_READY) | TO(BOX_STOPPING) | TO(BOX_TERMINATED) | TO(BOX_ERROR)},
    [BOX_READY] = {"ready", "RUNNING",
                   TO(BOX_PAUSED) | TO(BOX_STOPPING) | TO(BOX_TERMINATED) | TO(BOX_ERROR)},
    [BOX_PAUSED] = {"paused", "RUNNING",
                    TO(BOX_READY) | TO(BOX_STOPPING) | TO(BOX_TERMINATED) | TO(BOX_ERROR)},
    [BOX_STOPPING] = {"stopping", "RUNNING", TO(BOX_TERMINATED) | TO(BOX_ERROR)},
    [BOX_TERMINATED] = {"terminated", "TERMINATED", 0},
    /* One that is stuck, or whose disk failed, can still be ended, or vanish; one that was
     * stopped because the host's disk ran full can go on. */
    [BOX_ERROR] = {"error", "ERROR", TO(BOX_READY) | TO(BOX_STOPPING) | TO(BOX_TERMINATED) | TO(BOX_ERROR)},
};

bool
box_state_may_follow(BoxState from, BoxState to)
{
    return (states[from].next & TO(to)) != 0;
}

const char *
box_state_name(BoxState state, bool busy)
{
    return state == BOX_READY && busy ? "busy" : states[state].name;
}

const char *
box_status_name(BoxState state)
{
    return states[state].status;
}

bool
box_state_parse(const char *name, BoxState *ret_state)
{
    for (int i = 0; name != NULL && i < BOX_STATE_MAX; i++) {
        if (strcmp(states[i].name, name) == 0) {
            *ret_state = (BoxState)i;
            return true;
        }
    }
    return false;
}

void
box_degraded_names(guint32 degraded, const char *ret_names[33])
{
    static const struct {
        guint32 bit;
        const char *name;
    } names[] = {
        {DEGRADED_IDS, "ids"},           {DEGRADED_MEMORY, "memory"}, {DEGRADED_CPU, "cpu"},
        {DEGRADED_DEVICES, "devices"},   {DEGRADED_DISK, "disk"},     {DEGRADED_PIDS, "pids"},
        {DEGRADED_LANDLOCK, "landlock"}, {DEGRADED_FREEZE, "freeze"},
    };
    size_t n = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        if ((degraded & names[i].bit) != 0)
            ret_names[n++] = names[i].name;
    }
    ret_names[n] = NULL;
}
