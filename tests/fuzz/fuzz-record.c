/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "wire/record.h"

/* The input is laid over a request; what passes is held against what the keeper then does with
 * it: names become paths, numbers become sizes. */
void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    if (cut != n)
        return;
    g_autofree KeeperRequest *r = g_new0(KeeperRequest, 1);

    memcpy(r, data, MIN(n, sizeof *r));
    if (!keeper_request_check(r) || r->verb != KEEPER_CREATE)
        return;
    g_assert(strlen(r->box) == KEEPER_ID_LEN && strpbrk(r->box, "/.: \n") == NULL);
    g_assert(strlen(r->hostname) > 0 && strlen(r->hostname) <= KEEPER_NAME_MAX);
    g_assert(r->n_layers > 0 && r->n_layers <= KEEPER_LAYERS_MAX);
    for (guint i = 0; i < r->n_layers; i++)
        g_assert(strlen(r->layers[i]) <= KEEPER_NAME_MAX && strpbrk(r->layers[i], "/.:, \n") == NULL);
    g_assert(r->limits.disk_bytes >= KEEPER_DISK_MIN && r->limits.disk_bytes <= KEEPER_DISK_MAX);
    g_assert(r->limits.memory_bytes <= KEEPER_MEMORY_MAX && r->limits.pids <= KEEPER_PIDS_MAX);
}
