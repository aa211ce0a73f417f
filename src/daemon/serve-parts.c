/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve-private.h"

/* Who uses another one stands behind it. */
static const ServePart *const parts[] = {
    &part_templates, &part_boxes,  &part_forge, &part_checks, &part_landings,
    &part_team,      &part_github, &part_api,   &part_hooks,
};

void
serve_parts_make(Server *s)
{
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (parts[i]->make != NULL)
            parts[i]->make(s);
    }
}

static void
load_next(void *data, const GError *error)
{
    Server *s = data;

    while (error == NULL && !s->stopping && s->parts_loaded < G_N_ELEMENTS(parts)) {
        const ServePart *part = parts[s->parts_loaded++];

        if (part->load != NULL && part->load(s, load_next))
            return;
    }
    s->loaded(s, error);
}

void
serve_parts_load(Server *s, DbDone done)
{
    s->loaded = done;
    load_next(s, NULL);
}

void
serve_parts_start(Server *s)
{
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (parts[i]->start != NULL)
            parts[i]->start(s);
    }
}

void
serve_parts_stop(Server *s)
{
    for (guint i = G_N_ELEMENTS(parts); i-- > 0;) {
        if (parts[i]->stop != NULL)
            parts[i]->stop(s);
    }
}

void
serve_parts_clear(Server *s)
{
    for (guint i = G_N_ELEMENTS(parts); i-- > 0;) {
        if (parts[i]->clear != NULL)
            parts[i]->clear(s);
    }
}
