/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "box/host.h"
#include "door/service.h"
#include "forge/landing.h"
#include "team/team.h"

typedef enum MetricType { METRIC_GAUGE, METRIC_COUNTER } MetricType;

void metric_put_meta(GString *out, MetricType type, const char *name, const char *help);
void metric_put_number(GString *out, MetricType type, const char *name, const char *help, guint64 value);

/* ---- metrics-boxes.c ---- */

/* What all live boxes use together; each is asked, so `done` is called later. */
void metrics_gather_use(ApiCall *call, void (*done)(ApiCall *call, const BoxUse *use));
void metrics_put_boxes(GString *out, BoxHost *host, const BoxUse *use);

/* ---- metrics-door.c ---- */

void metrics_put_door(GString *out, DoorService *door);

/* ---- metrics-forge.c ---- */

void metrics_put_forge(GString *out, Forge *forge);
void metrics_put_landings(GString *out, Landings *landings);

/* ---- metrics-team.c ---- */

void metrics_put_team(GString *out, Team *team);
