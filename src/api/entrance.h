/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "base/rate.h"
#include "http/server.h"

/* The way by which one box's requests come, made with its first.  It is the data of their listener, which
 * is what says that they are a box's: nothing in them does. */
typedef struct BoxEntrance {
    char *id;
    HttpListener *listener;
    RateBucket rate;
} BoxEntrance;

GHashTable *box_entrances_new(void);
