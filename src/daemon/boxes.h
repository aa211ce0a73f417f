/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "api/api.h"
#include "base/loop.h"
#include "box/host.h"
#include "box/selftest.h"
#include "box/template.h"
#include "daemon/config.h"
#include "door/service.h"
#include "store/db.h"
#include "store/events.h"

/* The boxes of this server, made from its configuration, and the test of their isolation at each
 * start. */
typedef struct Boxes Boxes;

typedef struct BoxesSpec {
    const Config *config; /* borrowed, as is everything */
    Loop *loop;
    Db *db;
    EventLog *events;
    TemplateStore *templates;
    void (*degraded)(const char *part, const char *reason, void *ctx);
    void (*box_asks)(const char *box_id, int fd, void *ctx); /* by the door; `fd` is taken */
    void (*box_gone)(const char *box_id, void *ctx);
    void *ctx;
} BoxesSpec;

Boxes *boxes_new(const BoxesSpec *spec, GError **error);
/* Finds the boxes that live. `done` when requests can be served. */
void boxes_load(Boxes *boxes, DbDone done, void *data);
void boxes_free(Boxes *boxes); /* boxes go on */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Boxes, boxes_free)

BoxHost *boxes_host(Boxes *boxes);
DoorService *boxes_door(Boxes *boxes); /* NULL: none */
SelfTest *boxes_self_test(Boxes *boxes);
