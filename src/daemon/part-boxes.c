/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "daemon/serve-private.h"

static void
make_templates(Server *s)
{
    if (s->config->boxes.enabled)
        s->templates = serve_templates_new(s->config, s->loop, s->db, s->space_fd);
}

static void
start_templates(Server *s)
{
    serve_templates_begin(s->templates, s->api, s->boxes != NULL);
}

static void
stop_templates(Server *s)
{
    serve_templates_free(s->templates);
}

const ServePart part_templates = {.make = make_templates, .start = start_templates, .stop = stop_templates};

static void
on_degraded(const char *part, const char *reason, void *ctx)
{
    Server *s = ctx;

    api_set_degraded(s->api, part, reason);
}

static void
on_box_asks(const char *box_id, int fd, void *ctx)
{
    Server *s = ctx;

    api_adopt_box(s->api, box_id, fd);
}

static void
on_box_gone(const char *box_id, void *ctx)
{
    Server *s = ctx;

    api_forget_box(s->api, box_id);
}

/* Without boxes the rest still works. */
static void
make_boxes(Server *s)
{
    g_autoptr(GError) error = NULL;
    TemplateStore *templates = serve_templates_store(s->templates);

    if (templates == NULL)
        return;
    s->boxes = boxes_new(&(BoxesSpec){.config = s->config,
                                      .loop = s->loop,
                                      .db = s->db,
                                      .events = s->events,
                                      .templates = templates,
                                      .degraded = on_degraded,
                                      .box_asks = on_box_asks,
                                      .box_gone = on_box_gone,
                                      .ctx = s},
                         &error);
    if (s->boxes == NULL)
        log_warn("daemon", "there are no boxes", log_gerror(error));
}

static bool
load_boxes(Server *s, DbDone done)
{
    if (s->boxes != NULL)
        boxes_load(s->boxes, done, s);
    return s->boxes != NULL;
}

static void
stop_boxes(Server *s)
{
    api_forget_door(s->api);
    boxes_free(s->boxes);
}

const ServePart part_boxes = {.make = make_boxes, .load = load_boxes, .stop = stop_boxes};

BoxHost *
serve_box_host(Server *s)
{
    return s->boxes != NULL ? boxes_host(s->boxes) : NULL;
}
