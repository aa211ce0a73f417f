/* SPDX-License-Identifier: Apache-2.0 */
#include "http/proxy-head.h"

#include <string.h>

#include "http/limits.h"

/* ---- which headers stay behind ---- */

/* Of one hop only (RFC 9110, 7.6.1), or written anew. */
static const char *const hop_names[] = {
    "Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", NULL,
};
static const char *const hop_prefixes[] = {"Proxy-", NULL};

/* Host is written anew, Expect is ours to answer, and what the client says about where it
 * comes from is no more than its word. */
static const char *const request_names[] = {"Host",      "Expect",         "Forwarded",
                                            "X-Real-IP", "HTTP2-Settings", NULL};
static const char *const request_prefixes[] = {"X-Forwarded-", NULL};

/* The server that answers the client writes these itself. */
static const char *const answer_names[] = {"Date", "Server", NULL};

static bool
is_listed(const char *const *names, const char *name)
{
    for (; names != NULL && *names != NULL; names++) {
        if (g_ascii_strcasecmp(*names, name) == 0)
            return true;
    }
    return false;
}

static bool
has_prefix(const char *const *prefixes, const char *name)
{
    for (; *prefixes != NULL; prefixes++) {
        if (g_ascii_strncasecmp(name, *prefixes, strlen(*prefixes)) == 0)
            return true;
    }
    return false;
}

/* Whether the comma-separated `list` has the token `name`. */
static bool
list_has(const char *list, const char *name)
{
    size_t n = strlen(name);

    while (*list != '\0') {
        list += strspn(list, ", \t");
        size_t len = strcspn(list, ",");
        size_t token = len;

        while (token > 0 && (list[token - 1] == ' ' || list[token - 1] == '\t'))
            token--;
        if (token == n && g_ascii_strncasecmp(list, name, n) == 0)
            return true;
        list += len;
    }
    return false;
}

static bool
is_hop_header(const char *name)
{
    return is_listed(hop_names, name) || has_prefix(hop_prefixes, name);
}

/* ---- text that cannot break a line ---- */

static bool
is_value(const char *text)
{
    for (const guchar *p = (const guchar *)text; *p != '\0'; p++) {
        if ((*p < ' ' && *p != '\t') || *p == 0x7f)
            return false;
    }
    return true;
}

static bool
is_word(const char *text)
{
    for (const guchar *p = (const guchar *)text; *p != '\0'; p++) {
        if (*p <= ' ' || *p >= 0x7f)
            return false;
    }
    return text[0] != '\0';
}

/* ---- the request ---- */

bool
proxy_wants_upgrade(const HttpRequest *request, const HttpProxySpec *spec)
{
    return !spec->no_upgrade && http_request_wants_upgrade(request, "websocket");
}

static bool
connection_names(const HttpRequest *request, const char *name)
{
    for (guint i = 0; i < http_request_headers(request); i++) {
        const char *key, *list;

        http_request_header_at(request, i, &key, &list);
        if (g_ascii_strcasecmp(key, "Connection") == 0 && list_has(list, name))
            return true;
    }
    return false;
}

static bool
is_added(const HttpProxySpec *spec, const char *name)
{
    for (const char *const *p = spec->add_headers; p != NULL && *p != NULL; p += 2) {
        if (g_ascii_strcasecmp(*p, name) == 0)
            return true;
    }
    return false;
}

static bool
put_header(Buf *out, const char *name, const char *value)
{
    return buf_puts(out, name) && buf_puts(out, ": ") && buf_puts(out, value) && buf_puts(out, "\r\n");
}

static bool
put_headers(Buf *out, const HttpRequest *request, const HttpProxySpec *spec)
{
    for (guint i = 0; i < http_request_headers(request); i++) {
        const char *name, *value;

        http_request_header_at(request, i, &name, &value);
        if (is_hop_header(name) || is_listed(request_names, name) || has_prefix(request_prefixes, name) ||
            is_listed(spec->drop_headers, name) || is_added(spec, name) || connection_names(request, name))
            continue;
        if (!put_header(out, name, value))
            return false;
    }
    for (const char *const *p = spec->add_headers; p != NULL && *p != NULL; p += 2) {
        if (!put_header(out, p[0], p[1]))
            return false;
    }
    return true;
}

static bool
put_framing(Buf *out, const HttpRequest *request)
{
    gint64 length = http_request_content_length(request);

    if (length < 0)
        return buf_puts(out, "Transfer-Encoding: chunked\r\n");
    if (http_request_header(request, "Content-Length") == NULL)
        return true;
    return buf_printf(out, "Content-Length: %" G_GINT64_FORMAT "\r\n", length);
}

static bool
is_writable(const char *target, const char *host, const HttpProxySpec *spec)
{
    /* A target with an authority in it could name another host than the Host header does. */
    if (target[0] != '/' && strcmp(target, "*") != 0)
        return false;
    if (!is_word(target) || !is_word(host))
        return false;
    for (const char *const *p = spec->add_headers; p != NULL && *p != NULL; p += 2) {
        if (!is_word(p[0]) || !is_value(p[1]))
            return false;
    }
    return true;
}

int
proxy_put_request(Buf *out, const HttpRequest *request, const HttpProxySpec *spec)
{
    const char *target = spec->target != NULL ? spec->target : http_request_target(request);
    const char *own_host = http_request_header(request, "Host");
    const char *host = spec->host != NULL ? spec->host : own_host != NULL ? own_host : "localhost";
    /* One request for each connection: the answer's end needs no trust in the upstream. */
    const char *connection = proxy_wants_upgrade(request, spec)
                                 ? "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
                                 : "Connection: close\r\n\r\n";

    if (!is_writable(target, host, spec))
        return 400;
    bool fits = buf_puts(out, http_request_method(request)) && buf_puts(out, " ") && buf_puts(out, target) &&
                buf_puts(out, " HTTP/1.1\r\n") && put_header(out, "Host", host) &&
                put_headers(out, request, spec) && put_framing(out, request) && buf_puts(out, connection);
    return fits ? 0 : 431;
}

/* ---- the answer ---- */

static bool
answer_connection_names(const HttpHead *head, const char *name)
{
    for (guint32 i = 0; i < head->n_headers; i++) {
        if (g_ascii_strcasecmp(head->text + head->headers[i].name, "Connection") == 0 &&
            list_has(head->text + head->headers[i].value, name))
            return true;
    }
    return false;
}

static bool
is_passed_on(const HttpHead *head, const char *name)
{
    return !is_hop_header(name) && !is_listed(answer_names, name) && !answer_connection_names(head, name);
}

static void
pass_on(HttpRequest *request, const char *name, const char *value, ProxyJudge judge)
{
    g_autofree char *judged = judge != NULL ? judge(name, value) : NULL;

    if (judge == NULL)
        http_response_header(request, name, value);
    else if (judged != NULL)
        http_response_header(request, name, judged);
}

bool
proxy_copy_headers(HttpRequest *request, const HttpHead *head, ProxyJudge judge)
{
    size_t total = 0;

    for (guint32 i = 0; i < head->n_headers; i++) {
        const char *name = head->text + head->headers[i].name;
        const char *value = head->text + head->headers[i].value;

        if (!is_word(name) || !is_value(value))
            return false;
        total += strlen(name) + strlen(value) + 4;
    }
    if (total > HTTP_PROXY_HEAD_MAX)
        return false;
    for (guint32 i = 0; i < head->n_headers; i++) {
        const char *name = head->text + head->headers[i].name;

        if (is_passed_on(head, name))
            pass_on(request, name, head->text + head->headers[i].value, judge);
    }
    return true;
}
