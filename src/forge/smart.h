/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"
#include "http/request.h"

/* Git's smart protocol of one repository, by `git http-backend` in a child that has this repository and
 * nothing else.  Bytes go through as they come, both ways, and wait when the other side does.
 *
 * Who asks, what it may write and which repository it is are decided before the child starts; the
 * hook (src/hook) compares each ref of a push with what is handed to it in its environment, and
 * refuses the whole push for one that is not allowed.  Nothing here reads what is pushed. */
typedef struct Smart Smart;

enum {
    SMART_CHILDREN_MAX = 64, /* at once; beyond: 503 */
    SMART_CHILDREN_PER_BOX = 8,
    SMART_FETCH_MAX = 10 << 20,  /* bytes of what a fetch asks */
    SMART_STALL_MS = 120 * 1000, /* without a byte either way */
    SMART_TIME_MS = 3600 * 1000,
    SMART_MEMORY_MIB = 1024, /* of git and all that it starts for one request, as are the next two */
    SMART_PROCESSES = 64,
    SMART_CPU_MILLI = 2000,
    SMART_END_MS = 5000, /* from the wish to end to the end */
};
#define SMART_PUSH_MAX (G_GUINT64_CONSTANT(2) << 30) /* bytes of a push */

/* Made by forge_new(), freed first by forge_free(), which ends its children. */
Smart *smart_new(Forge *forge, Loop *loop);
void smart_free(Smart *smart);

typedef enum SmartService {
    SMART_ADVERTISE_FETCH, /* GET info/refs?service=git-upload-pack */
    SMART_ADVERTISE_PUSH,  /* GET info/refs?service=git-receive-pack */
    SMART_FETCH,           /* POST git-upload-pack */
    SMART_PUSH,            /* POST git-receive-pack */
} SmartService;

/* The service that a query of info/refs asks for, to the letter; false: none. */
bool smart_service_parse(const char *query, SmartService *ret_service);
static inline bool
smart_service_writes(SmartService service)
{
    return service == SMART_ADVERTISE_PUSH || service == SMART_PUSH;
}

typedef struct SmartCaller {
    const char *actor;
    const char *box_id; /* NULL: a person */
    const char *branch; /* of a box: the one it may push to, alone */
    bool may_force;     /* of a box, on that branch; a person may where nothing is protected */
    bool may_advance;   /* may push to protected branches */
} SmartCaller;

/* The request's answer is the child's from then on.  `caller` is copied. */
void
smart_serve(Forge *forge, Repo *repo, HttpRequest *request, SmartService service, const SmartCaller *caller);
