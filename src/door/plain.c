/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "door/door-private.h"
#include "http/proxy.h"

enum { STALL_MS = 300000 };

static void
count(void *ctx, size_t to_upstream, size_t from_upstream)
{
    stream_count(ctx, to_upstream, from_upstream);
}

static bool
may_move(void *ctx)
{
    const Stream *s = ctx;

    return meter_allowance(&s->box->meter) > 0;
}

static const HttpMeter meter = {.moved = count, .may_move = may_move};

static void
on_over(HttpRequest *request, const HttpOutcome *outcome, void *data)
{
    stream_end(data);
}

/* Those who forwarded it before, and us. */
static char *
via_line(const HttpRequest *request, const char *own)
{
    g_autoptr(GString) line = g_string_new(NULL);

    for (guint i = 0; i < http_request_headers(request); i++) {
        const char *name, *value;

        http_request_header_at(request, i, &name, &value);
        if (g_ascii_strcasecmp(name, "Via") == 0)
            g_string_append_printf(line, "%s, ", value);
    }
    g_string_append(line, own);
    return g_string_free(g_steal_pointer(&line), FALSE);
}

static void
on_opened(Stream *s, int fd)
{
    g_autofree char *host = answer_host(&s->name, 80);
    g_autofree char *via = via_line(s->request, s->box->door->via);
    const char *const add[] = {"Via", via, NULL};
    const HttpProxySpec spec = {
        .loop = s->box->door->loop,
        .target = s->target,
        .host = host,
        .add_headers = add,
        .no_upgrade = !s->verdict.upgrade,
        .meter = &meter,
        .meter_ctx = s,
        .stall_ms = STALL_MS,
    };

    http_request_on_over(s->request, on_over, s);
    http_proxy(s->request, fd, &spec);
}

static void
cut(Stream *s)
{
    http_request_cut(s->request);
}

void
plain_request(DoorBox *box, HttpRequest *request)
{
    static const StreamKind kind = {.opened = on_opened, .cut = cut};
    g_autoptr(GError) error = NULL;
    const char *target;
    DoorName name;

    if (door_name_read_uri(http_request_target(request), &name, &target, &error))
        stream_start(box, request, &name, target, &kind);
    else
        answer_bad_name(box, request, error);
}
