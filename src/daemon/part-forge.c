/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "daemon/serve-private.h"

static ServeForgeSpec
spec_of(Server *s)
{
    return (ServeForgeSpec){.config = s->config,
                            .loop = s->loop,
                            .db = s->db,
                            .events = s->events,
                            .boxes = serve_box_host(s),
                            .address = s->address};
}

/* Without git the rest still works. */
static void
make_forge(Server *s)
{
    ServeForgeSpec spec = spec_of(s);

    s->forge = serve_forge_new(&spec, &s->forge_problem);
    if (s->forge == NULL)
        log_warn("daemon", "there is no forge", log_gerror(s->forge_problem));
}

static bool
load_forge(Server *s, DbDone done)
{
    if (s->forge != NULL)
        forge_load(s->forge, done, s);
    return s->forge != NULL;
}

static void
stop_forge(Server *s)
{
    forge_free(s->forge);
}

static void
clear_forge(Server *s)
{
    g_clear_error(&s->forge_problem);
}

const ServePart part_forge = {
    .make = make_forge, .load = load_forge, .stop = stop_forge, .clear = clear_forge};

/* Without them the rest of the forge still works. */
static void
make_hooks(Server *s)
{
    ServeForgeSpec spec = spec_of(s);
    g_autoptr(GError) error = NULL;

    if (serve_hooks_open(&s->hooks, &spec, s->forge, s->api, &error))
        return;
    log_warn("daemon", "there are no webhooks", log_gerror(error));
    api_set_degraded(s->api, "webhooks", error->message);
}

static void
start_hooks(Server *s)
{
    if (s->hooks.hooks != NULL)
        hooks_start(s->hooks.hooks);
}

static void
stop_hooks(Server *s)
{
    api_set_hooks(s->api, NULL);
    serve_hooks_stop(&s->hooks);
}

static void
clear_hooks(Server *s)
{
    serve_hooks_clear(&s->hooks);
}

const ServePart part_hooks = {
    .make = make_hooks, .start = start_hooks, .stop = stop_hooks, .clear = clear_hooks};
