/* SPDX-License-Identifier: Apache-2.0 */
#include "box/life.h"

#include "box/host.h"

/* The shortest is longer than a tick, so that the warning comes first. */
enum { WARN_PART = 4, WARN_MIN_MS = 2500, WARN_MAX_MS = 60 * 1000 };

static gint64
us(gint64 ms)
{
    return ms * 1000;
}

static gint64
last_us(const BoxLife *life)
{
    return life->born_us + us(BOX_LIFE_MAX_MS);
}

void
box_life_begin(BoxLife *life, gint64 now_us, gint64 lifetime_ms, gint64 idle_ms)
{
    *life = (BoxLife){.born_us = now_us, .used_us = now_us, .lifetime_ms = lifetime_ms, .idle_ms = idle_ms};
    life->deadline_us = now_us + us(MIN(lifetime_ms, (gint64)BOX_LIFE_MAX_MS));
}

bool
box_life_renew(BoxLife *life, gint64 now_us, gint64 lifetime_ms)
{
    if (now_us >= last_us(life))
        return false;
    life->lifetime_ms = lifetime_ms;
    life->deadline_us = MIN(now_us + us(lifetime_ms), last_us(life));
    life->used_us = now_us;
    return true;
}

void
box_life_touch(BoxLife *life, gint64 now_us)
{
    life->used_us = MAX(life->used_us, now_us);
}

BoxDue
box_life_due(const BoxLife *life, gint64 now_us, bool paused)
{
    if (now_us >= life->deadline_us)
        return BOX_DUE_DEADLINE;
    if (!paused && now_us >= life->used_us + us(life->idle_ms))
        return BOX_DUE_IDLE;
    return BOX_DUE_NOT;
}

gint64
box_life_end_us(const BoxLife *life, bool paused)
{
    return paused ? life->deadline_us : MIN(life->deadline_us, life->used_us + us(life->idle_ms));
}

gint64
box_life_warn_us(const BoxLife *life, bool paused)
{
    gint64 end_us = box_life_end_us(life, paused);
    gint64 span_ms = end_us == life->deadline_us ? life->lifetime_ms : life->idle_ms;

    return end_us - us(CLAMP(span_ms / WARN_PART, WARN_MIN_MS, WARN_MAX_MS));
}
