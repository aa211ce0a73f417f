/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/smart-private.h"

static bool
same_lines(char **take_one, char **take_other)
{
    g_auto(GStrv) one = take_one;
    g_auto(GStrv) other = take_other;

    return g_strv_equal((const char *const *)one, (const char *const *)other);
}

/* As if it had been started now: rights and rules may have changed since. */
static bool
is_same(const Exchange *spare, const Exchange *x)
{
    return spare->repo == x->repo && g_strcmp0(spare->actor, x->actor) == 0 &&
           g_strcmp0(spare->box_id, x->box_id) == 0 &&
           same_lines(smart_settings(&spare->ask), smart_settings(&x->ask)) &&
           same_lines(smart_env(&spare->ask), smart_env(&x->ask));
}

static Exchange *
find(const Exchange *x)
{
    for (Exchange *spare = x->smart->exchanges; spare != NULL; spare = spare->next) {
        if (spare->spare && spare != x && spare->child != NULL && !spare->cut && !spare->silent &&
            is_same(spare, x))
            return spare;
    }
    return NULL;
}

void
smart_make_spare(Exchange *x)
{
    Smart *s = x->smart;
    const SmartCaller caller = {.actor = x->actor,
                                .box_id = x->box_id,
                                .branch = x->branch,
                                .may_force = x->ask.may_force,
                                .may_advance = x->ask.may_advance};
    g_autoptr(GError) error = NULL;

    if (s->n_spares == SMART_SPARES_MAX)
        return;
    Exchange *spare = smart_exchange_new(s, x->repo, NULL, &caller);

    spare->ask.service = SMART_PUSH;
    spare->ask.protocol = x->ask.protocol;
    spare->settings = g_steal_pointer(&x->settings);
    spare->ask.settings = spare->settings;
    x->ask.settings = NULL;
    spare->answer_over = true;
    spare->spare = true;
    s->n_spares++;
    if (find(spare) != NULL || !exchange_come_up(spare, &error)) {
        if (error != NULL)
            log_warn("forge", "git cannot be started", log_gerror(error));
        smart_drop(spare);
        return;
    }
    loop_timer_set(s->loop, &spare->end, SMART_SPARE_MS);
}

Exchange *
smart_take_spare(Exchange *x)
{
    Exchange *spare = x->ask.service == SMART_PUSH ? find(x) : NULL;

    if (spare == NULL)
        return NULL;
    spare->request = g_steal_pointer(&x->request);
    spare->answer_over = false;
    spare->spare = false;
    x->smart->n_spares--;
    return spare;
}
