/* SPDX-License-Identifier: Apache-2.0 */
/* What a box asks of the server itself.  The request goes over a socket pair made for it, whose other
 * end the server gets with the box's id: nothing in the request says whose it is, and no socket that
 * could be connected to is opened on either side. */
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "door/door-private.h"
#include "http/proxy.h"

/* A large push is looked at for long before there is an answer. */
enum { HEAD_MS = 3600 * 1000, STALL_MS = 600 * 1000 };

/* A new one needs routes with ROUTE_BOX (api/call.h). */
static const char *const prefixes[] = {"/git/", "/agent/", "/rooms/"};

bool
forward_owns(const char *path)
{
    for (size_t i = 0; i < G_N_ELEMENTS(prefixes); i++) {
        if (g_str_has_prefix(path, prefixes[i]))
            return true;
    }
    return false;
}

void
door_set_forward(Door *door, DoorForward forward, void *ctx)
{
    door->forward = forward;
    door->forward_ctx = ctx;
}

static void
count(void *ctx, size_t to_upstream, size_t from_upstream)
{
    stream_count_box(ctx, to_upstream, from_upstream);
}

static bool
may_move(void *ctx)
{
    DoorBox *box = ctx;

    return meter_allowance(&box->meter) > 0;
}

static void
on_over(HttpRequest *request, const HttpOutcome *outcome, void *data)
{
    door_box_unref(data);
}

void
forward_request(DoorBox *box, HttpRequest *request)
{
    static const HttpMeter meter = {.moved = count, .may_move = may_move};
    /* Whoever has a key in there got it from elsewhere; it is not needed here. */
    static const char *const dropped[] = {"Authorization", "X-API-Key", "Cookie", NULL};
    Door *door = box->door;
    const char *bound = stream_bound(box);
    int ends[2];

    if (bound != NULL) {
        answer_limit(box, request, bound);
        return;
    }
    if (door->forward == NULL ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        answer_refusal(request, 503, "coop: the server is away; try again later\n");
        return;
    }
    autofd ours = ends[0], theirs = ends[1];

    if (!door->forward(box->id, theirs, door->forward_ctx)) {
        answer_refusal(request, 503, "coop: the server is away; try again later\n");
        return;
    }
    http_request_on_over(request, on_over, door_box_ref(box));
    http_proxy(request, g_steal_fd(&ours),
               &(HttpProxySpec){.loop = door->loop,
                                .drop_headers = dropped,
                                .meter = &meter,
                                .meter_ctx = box,
                                .head_ms = HEAD_MS,
                                .stall_ms = STALL_MS});
}
