/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "door/clients.h"
#include "door/link.h"
#include "door/models.h"
#include "door/rules.h"

/* The door as `coop serve` sees it: which boxes there are, what each may, what the door has told,
 * and what every box finds in its environment. */
typedef struct DoorService DoorService;

typedef struct DoorServiceSpec {
    Loop *loop; /* borrowed, as is the next */
    Db *db;
    const char *socket, *home;
    bool ask_clients;
    DoorLimits limits, limits_max;                                     /* see door_rules_bound() */
    void (*degraded)(const char *part, const char *reason, void *ctx); /* NULL: well again */
    void (*env_changed)(const char *const *env, void *ctx);
    void (*forward)(const char *box_id, int fd, void *ctx); /* a box asks; `fd` is taken */
    void *ctx;
} DoorServiceSpec;

DoorService *door_service_new(const DoorServiceSpec *spec);
/* Reads the rules; no box is opened before `done`. */
void door_service_load(DoorService *service, DbDone done, void *data);
/* Every box that was found again is open: now the door can be told. */
void door_service_begin(DoorService *service);
/* After a restore: rules, providers and budgets anew. */
void door_service_reload(DoorService *service);
void door_service_free(DoorService *service);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DoorService, door_service_free)

typedef struct DoorServiceBox {
    const char *id, *template;
    guint64 cookie;
    DoorLabels labels;
} DoorServiceBox;

/* `fd`, the listener, is taken. */
void door_service_open(DoorService *service, int fd, const DoorServiceBox *box);
void door_service_close(DoorService *service, const char *id);

DoorRules *door_service_rules(DoorService *service);
DoorModels *door_service_models(DoorService *service);
DoorLink *door_service_link(DoorService *service);
DoorClients *door_service_clients(DoorService *service);
/* What is true for one box: a policy of policy.h; NULL: no such box.  The caller owns it. */
Json *door_service_policy(DoorService *service, const char *id);
/* False: no such box. */
bool door_service_limits(DoorService *service, const char *id, DoorLimits *ret);
guint door_service_boxes(const DoorService *service);
