/* SPDX-License-Identifier: Apache-2.0 */
#include "mind-world.h"

#include <string.h>

static void
ignore_degraded(const char *part, const char *reason, void *ctx)
{
}

static void
ignore_env(const char *const *env, void *ctx)
{
}

static void
refuse_forward(const char *box_id, int fd, void *ctx)
{
    g_assert_not_reached();
}

static void
on_step(void *data, const GError *error)
{
    g_assert_no_error(error);
    ((MindWorld *)data)->waiting--;
}

static void
wait_all(MindWorld *w)
{
    while (w->waiting > 0)
        g_main_context_iteration(NULL, TRUE);
}

void
mind_world_provider(MindWorld *w, const char *json, const char *text)
{
    g_autoptr(Json) provider = json_decode(json, strlen(json), NULL);

    w->waiting++;
    door_models_put_provider(
        door_service_models(w->door),
        &(DoorProviderSpec){.provider = provider, .sealed = "", .script = text, .actor = "local"}, on_step,
        w);
    wait_all(w);
}

void
mind_world_budget(MindWorld *w, const char *scope, Json *bounds)
{
    w->waiting++;
    door_models_put_budget(door_service_models(w->door), scope, bounds, "local", on_step, w);
    wait_all(w);
}

MindWorld *
mind_world_new(const char *script)
{
    MindWorld *w = g_new0(MindWorld, 1);

    w->store = store_bench_new_open();
    w->bench = control_bench_new_door();
    w->door = door_service_new(&(DoorServiceSpec){.loop = w->bench->loop,
                                                  .db = w->store->db,
                                                  .socket = w->bench->path,
                                                  .home = w->store->dir,
                                                  .degraded = ignore_degraded,
                                                  .env_changed = ignore_env,
                                                  .forward = refuse_forward});
    w->waiting++;
    door_service_load(w->door, on_step, w);
    wait_all(w);
    mind_world_provider(w, "{\"name\": \"script\", \"kind\": \"script\"}", script);
    door_service_begin(w->door);
    w->mind = serve_mind_new(w->bench->loop, w->door, w->store->dir);
    w->face = serve_mind_face(w->mind);
    return w;
}

void
mind_world_free(MindWorld *w)
{
    serve_mind_free(w->mind);
    door_service_free(w->door);
    control_bench_free(w->bench);
    store_bench_free(w->store);
    g_free(w);
}
