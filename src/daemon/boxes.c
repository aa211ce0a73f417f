/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boxes.h"

#include "base/err.h"
#include "base/log.h"
#include "daemon/door-place.h"
#include "daemon/keeper-place.h"
#include "daemon/place.h"
#include "wire/door.h"

struct Boxes {
    BoxesSpec spec;
    BoxHost *host;
    DoorService *door; /* NULL: none */
    SelfTest *test;
    DbDone loaded;
    void *loaded_data;
};

static KeeperLimits
limits_of(const ConfigLimits *c)
{
    return (KeeperLimits){
        .memory_bytes = (guint64)c->memory,
        .disk_bytes = (guint64)c->disk,
        .inodes = (guint32)c->inodes,
        .pids = (guint32)c->processes,
        .cpu_milli = (guint32)c->cpu_milli,
    };
}

/* ---- the door ---- */

static DoorLimits
door_limits_of(const ConfigDoorLimits *c)
{
    return (DoorLimits){
        .bytes_per_day = (guint64)c->bytes_per_day,
        .bytes_per_s = (guint64)c->bytes_per_s,
        .requests_per_min = (guint)c->requests_per_min,
        .lookups_per_min = (guint)c->lookups_per_min,
    };
}

static void
on_degraded(const char *part, const char *reason, void *ctx)
{
    Boxes *b = ctx;

    b->spec.degraded(part, reason, b->spec.ctx);
}

static void
on_env_changed(const char *const *env, void *ctx)
{
    Boxes *b = ctx;

    box_host_set_env(b->host, env);
}

static void
on_door_opened(Box *box, int fd, guint64 cookie, void *ctx)
{
    Boxes *b = ctx;
    BoxInfo info;

    box_info(box, &info);
    door_service_open(
        b->door, fd,
        &(DoorServiceBox){.id = info.id,
                          .template = info.template,
                          .cookie = cookie,
                          .labels = {.agent = info.agent_id, .task = info.task_id, .squad = info.squad_id}});
}

static void
on_door_closed(const char *id, void *ctx)
{
    Boxes *b = ctx;

    door_service_close(b->door, id);
    b->spec.box_gone(id, b->spec.ctx);
}

static void
on_forward(const char *box_id, int fd, void *ctx)
{
    Boxes *b = ctx;

    b->spec.box_asks(box_id, fd, b->spec.ctx);
}

static void
make_door(Boxes *b)
{
    const Config *config = b->spec.config;
    g_autofree char *socket = config->door.socket != NULL ? g_strdup(config->door.socket)
                                                          : door_socket(config);

    b->door = door_service_new(&(DoorServiceSpec){.loop = b->spec.loop,
                                                  .db = b->spec.db,
                                                  .socket = socket,
                                                  .home = config->home,
                                                  .ask_clients = config->door.ask_clients,
                                                  .limits = door_limits_of(&config->door.limits),
                                                  .limits_max = door_limits_of(&config->door.max),
                                                  .degraded = on_degraded,
                                                  .env_changed = on_env_changed,
                                                  .forward = on_forward,
                                                  .ctx = b});
}

static BoxHost *
make_host(Boxes *b, const char *socket)
{
    const Config *config = b->spec.config;
    const ConfigBoxes *c = &config->boxes;

    return box_host_new(&(BoxHostSpec){
        .loop = b->spec.loop,
        .db = b->spec.db,
        .events = b->spec.events,
        .templates = b->spec.templates,
        .home = config->home,
        .keeper_socket = socket,
        .default_template = config->template_default,
        .limits = limits_of(&c->limits),
        .limits_max = limits_of(&c->max),
        .lifetime_ms = c->lifetime_ms,
        .idle_ms = c->idle_ms,
        .boxes_per_key = (guint)c->per_key,
        .boxes_max = (guint)c->count,
        .pool = (guint)c->pool,
        .disks = (guint)c->disks,
        .memory_floor_bytes = (guint64)c->memory_floor,
        .disk_floor_bytes = (guint64)c->disk_floor,
        .keep_rows_ms = c->keep_ms,
        .door_port = config->door.enabled ? DOOR_PORT : 0,
        .door_opened = config->door.enabled ? on_door_opened : NULL,
        .door_closed = config->door.enabled ? on_door_closed : NULL,
        .degraded = on_degraded,
        .ctx = b,
    });
}

Boxes *
boxes_new(const BoxesSpec *spec, GError **error)
{
    const Config *config = spec->config;
    g_autofree char *self = g_file_read_link("/proc/self/exe", error);
    g_autofree char *probe = self != NULL ? program_find(self, "coop-probe", error) : NULL;
    g_autofree char *socket = config->keeper_socket != NULL ? g_strdup(config->keeper_socket)
                                                            : keeper_socket(config);
    g_autoptr(Boxes) b = g_new0(Boxes, 1);

    b->spec = *spec;
    if (probe == NULL)
        return NULL;
    b->host = make_host(b, socket);
    if (config->door.enabled)
        make_door(b);
    b->test = self_test_new(&(SelfTestSpec){.host = b->host,
                                            .loop = spec->loop,
                                            .probe = probe,
                                            .host_file = config->database_file,
                                            .template = config->template_default});
    return g_steal_pointer(&b);
}

/* ---- the start ---- */

static void
on_tested(Json *report, const GError *error, void *data)
{
    Boxes *b = data;

    if (error != NULL) {
        b->spec.degraded("self-test", error->message, b->spec.ctx);
        log_warn("box", "the self-test could not be run", log_gerror(error));
        return;
    }
    b->spec.degraded("self-test", NULL, b->spec.ctx);
    log_info("box", "self-test", log_int("held", json_integer_value(json_object_get(report, "held"))),
             log_int("broken", json_integer_value(json_object_get(report, "broken"))));
}

static void
on_built(Template *t, const GError *error, void *data)
{
    Boxes *b = data;

    if (error == NULL)
        self_test_run(b->test, "coop", on_tested, b);
}

static void
on_loaded(void *data, const GError *error)
{
    Boxes *b = data;

    if (b->door != NULL && error == NULL)
        door_service_begin(b->door);
    b->loaded(b->loaded_data, error);
    /* Whoever keeps the templates builds this one too; we join it. */
    if (error == NULL && b->spec.config->templates_build)
        template_store_build(b->spec.templates, b->spec.config->template_default, false, NULL, on_built, b);
}

static void
on_door_loaded(void *data, const GError *error)
{
    Boxes *b = data;

    if (error != NULL)
        b->loaded(b->loaded_data, error);
    else
        box_host_load(b->host, on_loaded, b);
}

void
boxes_load(Boxes *boxes, DbDone done, void *data)
{
    boxes->loaded = done;
    boxes->loaded_data = data;
    if (boxes->door != NULL)
        door_service_load(boxes->door, on_door_loaded, boxes);
    else
        box_host_load(boxes->host, on_loaded, boxes);
}

void
boxes_free(Boxes *boxes)
{
    if (boxes == NULL)
        return;
    self_test_free(boxes->test);
    box_host_free(boxes->host);
    door_service_free(boxes->door);
    g_free(boxes);
}

BoxHost *
boxes_host(Boxes *boxes)
{
    return boxes->host;
}

DoorService *
boxes_door(Boxes *boxes)
{
    return boxes->door;
}

SelfTest *
boxes_self_test(Boxes *boxes)
{
    return boxes->test;
}
