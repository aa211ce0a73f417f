/* SPDX-License-Identifier: Apache-2.0 */
/* How many boxes there may be, of each key and in all; those that are being made count too. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "box/host-private.h"

typedef struct Count {
    const char *owner;
    guint of_owner, all;
    gint64 owner_end_us, all_end_us; /* when the first of them is over */
} Count;

static void
count_live(Box *box, void *data)
{
    Count *count = data;
    gint64 end_us = box_life_end_us(&box->row.life, box->row.state == BOX_PAUSED);

    if (!box_is_live(box))
        return;
    count->all++;
    count->all_end_us = MIN(count->all_end_us, end_us);
    if (strcmp(box->row.facts.owner, count->owner) != 0)
        return;
    count->of_owner++;
    count->owner_end_us = MIN(count->owner_end_us, end_us);
}

static Count
count_boxes(BoxHost *host, const char *owner)
{
    Count count = {.owner = owner != NULL ? owner : "", .owner_end_us = G_MAXINT64, .all_end_us = G_MAXINT64};

    host_each(host, count_live, &count);
    return count;
}

gint64
box_host_room_s(BoxHost *host, const char *owner)
{
    Count count = count_boxes(host, owner);
    bool is_owners = count.of_owner >= host->spec.boxes_per_key;
    gint64 end_us = is_owners ? count.owner_end_us : count.all_end_us;

    if (!is_owners && count.all < host->spec.boxes_max)
        return 0;
    return (MAX(end_us - clock_mono_us(), 0) + G_USEC_PER_SEC - 1) / G_USEC_PER_SEC;
}

bool
host_check_caps(BoxHost *host, const char *owner, GError **error)
{
    Count count = count_boxes(host, owner);

    if (count.of_owner >= host->spec.boxes_per_key)
        return err_set(error, ERR_LIMIT, "this key has %u boxes, the most it may have: end one first",
                       count.of_owner);
    if (count.all >= host->spec.boxes_max)
        return err_set(error, ERR_LIMIT, "this server has %u boxes, the most it may have", count.all);
    return true;
}
