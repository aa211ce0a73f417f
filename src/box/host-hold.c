/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "box/host-private.h"

typedef struct Holding {
    BoxHeldFunc done;
    void *data;
} Holding;

static void
on_held(const KeeperAnswer *answer, const int fds[KEEPER_FDS], const GError *error, void *data)
{
    Holding *holding = data;

    holding->done(error, holding->data);
    g_free(holding);
}

void
box_host_hold(BoxHost *host, int pidfd, const KeeperLimits *limits, BoxHeldFunc done, void *data)
{
    KeeperRequest request = {.verb = KEEPER_HOLD,
                             .limits = {.memory_bytes = limits->memory_bytes,
                                        .pids = limits->pids,
                                        .cpu_milli = limits->cpu_milli}};

    if (host->keeper == NULL) {
        g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, ERR_UNAVAILABLE, "there is no keeper");

        done(error, data);
        return;
    }
    Holding *holding = g_new(Holding, 1);

    *holding = (Holding){.done = done, .data = data};
    keeper_client_call_fd(host->keeper, &request, pidfd, on_held, holding);
}
