/* SPDX-License-Identifier: Apache-2.0 */
#include "door/service.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "door/ledger.h"
#include "door/usage-rows.h"

enum { EFFECTIVE_MAX = 1024 };

/* A policy and what stands for it. */
typedef struct Effective {
    char *name;
    Json *policy;
} Effective;

typedef struct ServiceBox {
    char *template, *squad; /* squad NULL: none */
} ServiceBox;

struct DoorService {
    DoorServiceSpec spec;
    DoorRules *rules;
    DoorClients *clients;
    DoorLedger *ledger;
    DoorModels *models;
    char *instance; /* of the door whose facts were counted, up to `noted`; NULL: none */
    guint64 noted;
    DoorLink *link;        /* NULL before it was loaded */
    GHashTable *boxes;     /* id -> ServiceBox* */
    GHashTable *effective; /* template, line feed, squad -> Effective*, until rules change */
    DbDone done;
    void *data;
};

static void
effective_free(gpointer data)
{
    Effective *e = data;

    g_free(e->name);
    json_decref(e->policy);
    g_free(e);
}

static void
box_free(gpointer data)
{
    ServiceBox *box = data;

    g_free(box->template);
    g_free(box->squad);
    g_free(box);
}

/* ---- what a box may ---- */

static Effective *
effective_new(const DoorService *s, const char *id, const ServiceBox *box)
{
    Effective *e = g_new(Effective, 1);

    e->policy = door_rules_compose(s->rules, id, box->squad, box->template);
    e->name = door_policy_name(e->policy);
    return e;
}

/* Most boxes are alike: what they may is worked out once. */
static const Effective *
effective_for(DoorService *s, const char *id, const ServiceBox *box)
{
    bool own = door_rules_has_own(s->rules, id);
    char *key = own ? g_strdup(id)
                    : g_strdup_printf("%s\n%s", box->template, box->squad != NULL ? box->squad : "");
    Effective *e = g_hash_table_lookup(s->effective, key);

    if (e != NULL) {
        g_free(key);
        return e;
    }
    if (g_hash_table_size(s->effective) >= EFFECTIVE_MAX)
        g_hash_table_remove_all(s->effective);
    e = effective_new(s, own ? id : NULL, box);
    g_hash_table_insert(s->effective, key, e);
    return e;
}

static void
limits_for(const DoorService *s, const char *id, const ServiceBox *box, DoorLimits *ret)
{
    door_rules_limits(s->rules, id, box->squad, box->template, ret);
}

static void
on_rules_changed(void *ctx)
{
    DoorService *s = ctx;
    GHashTableIter iter;
    gpointer id, box;
    DoorLimits limits;

    g_hash_table_remove_all(s->effective);
    if (s->link == NULL)
        return;
    g_hash_table_iter_init(&iter, s->boxes);
    while (g_hash_table_iter_next(&iter, &id, &box)) {
        const Effective *e = effective_for(s, id, box);

        door_link_set_policy(s->link, id, e->name, e->policy);
        limits_for(s, id, box, &limits);
        door_link_set_limits(s->link, id, &limits);
    }
}

static void
use_clients(DoorService *s)
{
    g_auto(GStrv) env = door_clients_env(s->clients);

    door_rules_set_clients(s->rules, door_clients_rules(s->clients));
    s->spec.env_changed((const char *const *)env, s->spec.ctx);
}

static void
on_clients_changed(void *ctx)
{
    use_clients(ctx);
}

/* ---- what the door tells ---- */

static void
on_up(const char *instance, void *ctx)
{
    DoorService *s = ctx;

    if (g_strcmp0(s->instance, instance) != 0) {
        g_free(s->instance);
        s->instance = g_strdup(instance);
        s->noted = 0;
    }
    door_ledger_begin(s->ledger, instance);
    s->spec.degraded("door", NULL, s->spec.ctx);
}

static void
on_down(const char *why, void *ctx)
{
    DoorService *s = ctx;
    g_autofree char *reason = g_strdup_printf("the door is away (%s): what boxes send out waits", why);

    s->spec.degraded("door", reason, s->spec.ctx);
}

static bool
on_fact(Json *fact, void *ctx)
{
    DoorService *s = ctx;
    guint64 n = (guint64)json_integer_value(json_object_get(fact, "n"));

    /* What was not acknowledged is told again. */
    if (n > s->noted) {
        s->noted = n;
        door_models_note(s->models, fact);
    }
    return door_ledger_add(s->ledger, fact);
}

static void
on_stored(guint64 upto, void *ctx)
{
    DoorService *s = ctx;

    door_link_ack(s->link, upto);
}

static void
on_forward(const char *box_id, int fd, void *ctx)
{
    DoorService *s = ctx;

    s->spec.forward(box_id, fd, s->spec.ctx);
}

/* ---- its life ---- */

DoorService *
door_service_new(const DoorServiceSpec *spec)
{
    DoorService *s = g_new0(DoorService, 1);
    g_autofree char *cache = g_build_filename(spec->home, "package-clients.json", NULL);

    s->spec = *spec;
    s->spec.socket = g_strdup(spec->socket);
    s->boxes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, box_free);
    s->effective = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, effective_free);
    s->rules = door_rules_new(spec->db, on_rules_changed, s);
    door_rules_bound(s->rules, &spec->limits, &spec->limits_max);
    s->clients = door_clients_new(spec->loop, cache, on_clients_changed, s);
    s->models = door_models_new(spec->db);
    s->ledger = door_ledger_new(&(DoorLedgerSpec){
        .loop = spec->loop, .db = spec->db, .stored = on_stored, .also = usage_row_add, .ctx = s});
    use_clients(s);
    return s;
}

static void
on_loaded(void *data, const GError *error)
{
    DoorService *s = data;

    if (error == NULL && s->link == NULL) {
        s->link = door_link_new(&(DoorLinkSpec){.loop = s->spec.loop,
                                                .socket = s->spec.socket,
                                                .up = on_up,
                                                .down = on_down,
                                                .fact = on_fact,
                                                .forward = on_forward,
                                                .ctx = s});
        door_models_attach(s->models, s->link);
        if (s->spec.ask_clients)
            door_clients_ask(s->clients);
    }
    s->done(s->data, error);
}

static void
on_rules(void *data, const GError *error)
{
    DoorService *s = data;

    if (error != NULL)
        s->done(s->data, error);
    else
        door_models_load(s->models, on_loaded, s);
}

void
door_service_load(DoorService *s, DbDone done, void *data)
{
    s->done = done;
    s->data = data;
    door_rules_load(s->rules, on_rules, s);
}

void
door_service_begin(DoorService *s)
{
    door_link_start(s->link);
}

void
door_service_reload(DoorService *s)
{
    door_rules_load(s->rules, NULL, NULL);
    door_models_load(s->models, NULL, NULL);
}

void
door_service_free(DoorService *s)
{
    if (s == NULL)
        return;
    door_models_free(s->models);
    door_link_free(s->link);
    door_ledger_free(s->ledger);
    door_clients_free(s->clients);
    door_rules_free(s->rules);
    g_hash_table_unref(s->boxes);
    g_hash_table_unref(s->effective);
    g_free(s->instance);
    g_free((char *)(guintptr)s->spec.socket);
    g_free(s);
}

/* ---- boxes ---- */

void
door_service_open(DoorService *s, int fd, const DoorServiceBox *spec)
{
    ServiceBox *box = g_new(ServiceBox, 1);

    *box = (ServiceBox){.template = g_strdup(spec->template), .squad = g_strdup(spec->labels.squad)};
    g_hash_table_insert(s->boxes, g_strdup(spec->id), box);
    const Effective *e = effective_for(s, spec->id, box);
    DoorLimits limits;

    limits_for(s, spec->id, box, &limits);
    door_link_add_box(s->link, fd,
                      &(DoorLinkBox){.id = spec->id,
                                     .cookie = spec->cookie,
                                     .policy_name = e->name,
                                     .policy = e->policy,
                                     .labels = spec->labels,
                                     .limits = limits});
}

void
door_service_close(DoorService *s, const char *id)
{
    door_link_remove_box(s->link, id);
    door_rules_forget_box(s->rules, id);
    g_hash_table_remove(s->effective, id);
    g_hash_table_remove(s->boxes, id);
}

DoorRules *
door_service_rules(DoorService *s)
{
    return s->rules;
}

DoorModels *
door_service_models(DoorService *s)
{
    return s->models;
}

DoorLink *
door_service_link(DoorService *s)
{
    return s->link;
}

DoorClients *
door_service_clients(DoorService *s)
{
    return s->clients;
}

Json *
door_service_policy(DoorService *s, const char *id)
{
    const ServiceBox *box = g_hash_table_lookup(s->boxes, id);

    return box != NULL ? json_incref(effective_for(s, id, box)->policy) : NULL;
}

bool
door_service_limits(DoorService *s, const char *id, DoorLimits *ret)
{
    const ServiceBox *box = g_hash_table_lookup(s->boxes, id);

    if (box != NULL)
        limits_for(s, id, box, ret);
    return box != NULL;
}

guint
door_service_boxes(const DoorService *s)
{
    return g_hash_table_size(s->boxes);
}
