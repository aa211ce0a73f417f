/* SPDX-License-Identifier: Apache-2.0 */
/* CONNECT and the plain proxy take the same way: name, limits, verdict, dial.  A stream is in its
 * box's list from the verdict on, so that a change of policy or the end of the box finds it in
 * whatever state it is. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "door/door-private.h"

/* ---- what is told ---- */

Json *
stream_fact(const Stream *stream, const char *kind, const char *why)
{
    const PolicyVerdict *v = &stream->verdict;
    Json *fact = json_pack("{s:s, s:s, s:i}", "kind", kind, "host", stream->name.host, "port",
                           (int)stream->name.port);

    json_object_set_new(fact, "method", json_string(http_request_method(stream->request)));
    if (v->rule != NULL) {
        json_object_set_new(fact, "rule", json_string(v->rule));
        json_object_set_new(fact, "source", json_string(v->source));
    }
    if (why != NULL)
        json_object_set_new(fact, "why", json_string(why));
    return fact;
}

static void
tell(Stream *s, const char *kind, const char *why, const char *address)
{
    Json *fact = stream_fact(s, kind, why);

    if (address != NULL)
        json_object_set_new(fact, "address", json_string(address));
    door_box_tell(s->box, fact);
}

static void
tell_closed(Stream *s)
{
    Json *fact = stream_fact(s, "door.closed", NULL);

    json_object_set_new(fact, "bytes_out", json_integer((json_int_t)s->to_upstream));
    json_object_set_new(fact, "bytes_in", json_integer((json_int_t)s->from_upstream));
    json_object_set_new(fact, "duration_ms", json_integer((clock_mono_us() - s->started_us) / 1000));
    door_box_tell(s->box, fact);
}

/* ---- life ---- */

static Stream *
stream_new(DoorBox *box, HttpRequest *request, const DoorName *name, const char *target,
           const StreamKind *kind)
{
    Stream *s = g_new0(Stream, 1);

    s->box = door_box_ref(box);
    s->kind = kind;
    s->request = http_request_ref(request);
    s->policy = policy_ref(box->policy);
    s->name = *name;
    s->target = g_strdup(target);
    s->started_us = clock_mono_us();
    s->next = box->streams;
    if (s->next != NULL)
        s->next->prev = s;
    box->streams = s;
    if (target == NULL) {
        box->tunnels++;
        box->door->stats.tunnels++;
    }
    return s;
}

void
stream_end(Stream *stream)
{
    Stream *s = stream;
    DoorBox *box = s->box;

    if (s->open)
        tell_closed(s);
    if (s->dial != NULL)
        dial_cancel(s->dial);
    *(s->prev != NULL ? &s->prev->next : &box->streams) = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    if (s->target == NULL) {
        box->tunnels--;
        box->door->stats.tunnels--;
    }
    http_request_unref(s->request);
    policy_unref(s->policy);
    g_free(s->target);
    g_free(s);
    door_box_unref(box);
}

static void
on_gone(HttpRequest *request, void *data)
{
    stream_end(data);
}

void
stream_cut(Stream *stream)
{
    if (stream->open)
        stream->kind->cut(stream);
    else
        http_request_cut(stream->request); /* on_gone() */
}

/* ---- counting ---- */

void
stream_count_box(DoorBox *box, size_t to_upstream, size_t from_upstream)
{
    box->door->stats.bytes_out += to_upstream;
    box->door->stats.bytes_in += from_upstream;
    meter_moved(&box->meter, to_upstream + from_upstream);
    /* Not from here: whoever counts is in the middle of it. */
    if (box->listener != NULL && box->stop.queue == NULL && meter_day_is_used_up(&box->meter))
        loop_timer_set(box->door->loop, &box->stop, 0);
}

void
stream_count(Stream *stream, size_t to_upstream, size_t from_upstream)
{
    stream->to_upstream += to_upstream;
    stream->from_upstream += from_upstream;
    stream_count_box(stream->box, to_upstream, from_upstream);
}

/* ---- permission ---- */

bool
stream_is_permitted(const Stream *stream)
{
    PolicyVerdict v;

    policy_decide(stream->box->policy, &stream->name, &v);
    return v.allowed && (!stream->is_inside || v.inside);
}

static bool
is_inside(const char *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    const char *why;

    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        return address_judge((struct sockaddr *)&v4, &why) == ADDRESS_INSIDE;
    return inet_pton(AF_INET6, address, &v6.sin6_addr) == 1 &&
           address_judge((struct sockaddr *)&v6, &why) == ADDRESS_INSIDE;
}

/* ---- dialling ---- */

static void
refuse_address(Stream *s, const char *address, const GError *error)
{
    bool could = address != NULL && is_inside(address);
    g_autofree char *pattern = answer_host(&s->name, s->name.port);
    g_autofree char *hint = could ? g_strdup_printf("To allow it: coop door allow %s --inside --box %s\n",
                                                    pattern, s->box->id)
                                  : g_strdup("No rule can allow it.\n");
    g_autofree char *text = g_strdup_printf("coop: %s: the door does not lead there.\n%s", error->message,
                                            hint);

    s->box->door->stats.denied++;
    tell(s, "door.denied", error->message, address);
    answer_refusal(s->request, 403, text);
}

static void
refuse_dial(Stream *s, const char *address, const GError *error)
{
    g_autofree char *text = g_strdup_printf("coop: %s\n", error->message);

    http_request_on_gone(s->request, NULL, NULL);
    if (err_kind(error) == ERR_DENIED) {
        refuse_address(s, address, error);
    } else {
        tell(s, "door.failed", error->message, NULL);
        http_response_header(s->request, "X-Coop-Door", "failed");
        if (s->target == NULL)
            http_response_close(s->request);
        http_respond_text(s->request, err_kind(error) == ERR_TIMEOUT ? 504 : 502, "text/plain; charset=utf-8",
                          text);
    }
    stream_end(s);
}

static void
on_dialled(int fd, const char *address, const GError *error, void *data)
{
    Stream *s = data;

    s->dial = NULL;
    if (error != NULL) {
        refuse_dial(s, address, error);
        return;
    }
    s->is_inside = is_inside(address);
    s->open = true;
    s->box->door->stats.allowed++;
    if (s->verdict.observed)
        s->box->door->stats.observed++;
    tell(s, s->verdict.observed ? "door.observed" : "door.allowed", NULL, address);
    http_request_on_gone(s->request, NULL, NULL);
    s->kind->opened(s, fd);
}

/* ---- the start ---- */

const char *
stream_bound(DoorBox *box)
{
    if (meter_day_is_used_up(&box->meter))
        return "bytes per day";
    if (!meter_take_request(&box->meter))
        return "requests per minute";
    return NULL;
}

void
stream_start(DoorBox *box, HttpRequest *request, const DoorName *name, const char *target,
             const StreamKind *kind)
{
    const char *bound = stream_bound(box);

    if (bound == NULL && target == NULL && box->tunnels >= DOOR_BOX_TUNNELS)
        bound = "tunnels at once";
    if (bound != NULL) {
        answer_limit(box, request, bound);
        return;
    }
    Stream *s = stream_new(box, request, name, target, kind);

    policy_decide(s->policy, name, &s->verdict);
    if (!s->verdict.allowed) {
        box->door->stats.denied++;
        tell(s, "door.denied", NULL, NULL);
        answer_denied(box, request, name, &s->verdict);
        stream_end(s);
    } else if (!name->is_address && !meter_take_lookup(&box->meter)) {
        answer_limit(box, request, "lookups per minute");
        stream_end(s);
    } else {
        http_request_on_gone(request, on_gone, s);
        s->dial = dial(box->door->dialer, name, s->verdict.inside, on_dialled, s);
    }
}
