/* SPDX-License-Identifier: Apache-2.0 */
#include "http/proxy-head.h"
#include "http/proxy-private.h"

/* ---- the body, and the tunnel ---- */

bool
proxy_on_answer_body(void *ctx, const guint8 *bytes, size_t n)
{
    Proxy *p = ctx;
    bool ok = buf_put(p->body_to, bytes, n);

    g_assert(ok); /* no more is fed than there is room */
    return true;
}

static HttpPull
at_the_end(const Proxy *p, bool complete)
{
    if (!p->eof)
        return HTTP_PULL_WAIT;
    return complete && !p->broken ? HTTP_PULL_END : HTTP_PULL_FAIL;
}

static HttpPull
pull_answer(void *ctx, Buf *out)
{
    Proxy *p = ctx;
    size_t n, used;
    const guint8 *bytes = buf_peek(&p->in, &n);

    if (n == 0)
        return at_the_end(p, p->eof && http_parser_finish(p->parser));
    p->body_to = out;
    HttpParseResult result = http_parser_feed(p->parser, bytes, MIN(n, buf_room(out)), &used);
    buf_skip(&p->in, used);
    proxy_arm(p);
    if (result == HTTP_PARSE_DONE)
        return HTTP_PULL_END;
    return result == HTTP_PARSE_BAD ? HTTP_PULL_FAIL : HTTP_PULL_DATA;
}

static HttpPull
pull_tunnel(void *ctx, Buf *out)
{
    Proxy *p = ctx;
    size_t n;
    const guint8 *bytes = buf_peek(&p->in, &n);

    n = MIN(n, buf_room(out));
    if (n == 0)
        return at_the_end(p, true);
    bool ok = buf_put(out, bytes, n);
    g_assert(ok); /* looked at its room */
    buf_skip(&p->in, n);
    proxy_arm(p);
    return HTTP_PULL_DATA;
}

static void
on_source_closed(void *ctx)
{
    Proxy *p = ctx;

    p->source_open = false;
    if (p->state == PROXY_ANSWERING)
        proxy_hang_up(p);
    proxy_finish_if_over(p);
}

static const HttpSource answer_source = {.pull = pull_answer, .closed = on_source_closed};
static const HttpSource tunnel_source = {.pull = pull_tunnel, .closed = on_source_closed};

/* ---- the head ---- */

static void
refuse_nonsense(Proxy *p)
{
    proxy_refuse(p, 502, "the server behind this address gave no valid answer");
}

static void
begin_tunnel(Proxy *p, const HttpHead *head)
{
    const char *upgrade = http_head_find(head, "Upgrade");

    if (!p->may_upgrade || upgrade == NULL || g_ascii_strcasecmp(upgrade, "websocket") != 0 ||
        !proxy_copy_headers(p->request, head, p->judge)) {
        refuse_nonsense(p);
        return;
    }
    p->state = PROXY_TUNNEL;
    p->all_sent = false;
    p->sink_open = p->source_open = true;
    http_response_header(p->request, "Upgrade", "websocket");
    http_respond_duplex(p->request, 101, &tunnel_source, &proxy_body_sink, p);
}

static void
begin_answer(Proxy *p, const HttpHead *head)
{
    bool bodyless = head->status == 204 || head->status == 304;

    if (head->status < 200 || head->status > 599 || !proxy_copy_headers(p->request, head, p->judge)) {
        refuse_nonsense(p);
        return;
    }
    p->state = PROXY_ANSWERING;
    if (bodyless) {
        proxy_hang_up(p);
        http_respond(p->request, head->status, NULL, "", 0);
        return;
    }
    p->source_open = true;
    http_respond_stream(p->request, head->status, NULL, MAX(head->content_length, -1), &answer_source, p);
}

void
proxy_read_head(Proxy *p)
{
    while (p->state == PROXY_WAITING) {
        g_auto(HttpHead) head = {0};
        size_t n, used;
        const guint8 *bytes = buf_peek(&p->in, &n);
        HttpParseResult result = n > 0 ? http_parser_feed(p->parser, bytes, n, &used) : HTTP_PARSE_MORE;

        if (result == HTTP_PARSE_MORE) {
            buf_clear(&p->in);
            if (p->eof)
                refuse_nonsense(p);
            return;
        }
        if (result != HTTP_PARSE_HEAD) {
            refuse_nonsense(p);
            return;
        }
        buf_skip(&p->in, used);
        http_parser_take_head(p->parser, &head);
        if (head.status == 101)
            begin_tunnel(p, &head);
        else if (head.status < 100 || head.status > 199)
            begin_answer(p, &head);
        else if (head.content_length != -2)
            refuse_nonsense(p); /* an interim answer has no body to announce */
        else
            http_parser_reset(p->parser); /* and the deadline stays: these could come for ever */
    }
    proxy_restart_clock(p);
}
