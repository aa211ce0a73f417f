/* SPDX-License-Identifier: Apache-2.0 */
/* A lease names a box of one owner: whoever asks with the same owner and the same words gets
 * the same box as long as it lives.  The owner is part of the key, so no words lead to a box
 * of somebody else. */
#include "box/host-private.h"

/* Neither part has control characters. */
static char *
dup_key(const char *owner, const char *lease)
{
    return g_strconcat(owner != NULL ? owner : "", "\n", lease, NULL);
}

Box *
lease_find(BoxHost *host, const char *owner, const char *lease)
{
    if (lease == NULL)
        return NULL;
    g_autofree char *key = dup_key(owner, lease);

    return g_hash_table_lookup(host->leases, key);
}

void
lease_set(BoxHost *host, Box *box)
{
    g_hash_table_replace(host->leases, dup_key(box->row.facts.owner, box->row.facts.lease), box);
}

void
lease_drop(BoxHost *host, Box *box)
{
    const BoxFacts *f = &box->row.facts;

    if (f->lease == NULL || lease_find(host, f->owner, f->lease) != box)
        return;
    g_autofree char *key = dup_key(f->owner, f->lease);

    g_hash_table_remove(host->leases, key);
}
