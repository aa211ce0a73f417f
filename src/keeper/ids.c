/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/ids.h"

#include "base/err.h"

bool
ids_init(IdTable *ids, uint32_t base, uint32_t n, bool shared, GError **error)
{
    uint64_t end = (uint64_t)base + (shared ? 1 : (uint64_t)n) * ID_RANGE;

    if (base == 0)
        return err_set(error, ERR_INVALID, "the id ranges of boxes must not begin at 0, the host's root");
    if (n == 0 || end > UINT32_MAX)
        return err_set(error, ERR_INVALID, "%u ranges of %d ids from %u do not fit", n, ID_RANGE, base);
    *ids = (IdTable){.base = base, .n = n, .shared = shared, .used = g_new0(uint8_t, n)};
    return true;
}

void
ids_clear(IdTable *ids)
{
    g_free(ids->used);
    *ids = (IdTable){0};
}

int
ids_take(IdTable *ids)
{
    for (uint32_t i = 0; i < ids->n; i++) {
        uint32_t slot = (ids->next + i) % ids->n;

        if (ids->used[slot])
            continue;
        ids->used[slot] = 1;
        ids->n_used++;
        ids->next = (slot + 1) % ids->n;
        return (int)slot;
    }
    return -1;
}

void
ids_give_back(IdTable *ids, int slot)
{
    g_assert(slot >= 0 && (uint32_t)slot < ids->n && ids->used[slot]);
    ids->used[slot] = 0;
    ids->n_used--;
}

uint32_t
ids_base_of(const IdTable *ids, int slot)
{
    g_assert(slot >= 0 && (uint32_t)slot < ids->n);
    return ids->shared ? ids->base : ids->base + (uint32_t)slot * ID_RANGE;
}
