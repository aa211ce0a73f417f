/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "http/client-private.h"
#include "http/limits.h"

static const char token_chars[] =
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static void
auto_url_cleanup(CURLU **url)
{
    curl_url_cleanup(*url);
}
#define autourl __attribute__((cleanup(auto_url_cleanup))) CURLU *

static void
auto_curl_free(char **text)
{
    curl_free(*text);
}
#define autocurlstr __attribute__((cleanup(auto_curl_free))) char *

/* curl's parser forgives a few slashes too many, and takes a folder for a host. */
static bool
begins_with_http(const char *url)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < G_N_ELEMENTS(schemes); i++) {
        size_t n = strlen(schemes[i]);

        if (g_ascii_strncasecmp(url, schemes[i], n) == 0)
            return url[n] != '/';
    }
    return false;
}

static bool
set_url(HttpCall *call, const HttpCallSpec *spec, GError **error)
{
    autourl url = curl_url();
    autocurlstr host = NULL;
    autocurlstr port = NULL;

    if (strlen(spec->url) > HTTP_CLIENT_URL_MAX)
        return err_set(error, ERR_INVALID, "the URL is longer than %d bytes", HTTP_CLIENT_URL_MAX);
    if (!begins_with_http(spec->url))
        return err_set(error, ERR_INVALID, "the URL must begin with http:// or https:// and a host");
    if (curl_url_set(url, CURLUPART_URL, spec->url, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
        return err_set(error, ERR_INVALID, "the URL is malformed");
    if (spec->unix_socket != NULL)
        call->peer = g_strdup(spec->unix_socket);
    else if (curl_url_get(url, CURLUPART_PORT, &port, 0) == CURLUE_OK)
        call->peer = g_strdup_printf("%s:%s", host, port);
    else
        call->peer = g_strdup(host);
    curl_easy_setopt(call->easy, CURLOPT_URL, spec->url);
    return true;
}

/* A name, and a value without control characters: a line break in it would be a header, or a
 * request, of its own. */
static bool
header_is_valid(const char *line, size_t *ret_name_len)
{
    size_t n = strspn(line, token_chars);

    if (n == 0 || line[n] != ':')
        return false;
    for (const char *p = line + n; *p != '\0'; p++) {
        if (((guchar)*p < ' ' && *p != '\t') || *p == 0x7f)
            return false;
    }
    *ret_name_len = n;
    return true;
}

static bool
header_is(const char *line, size_t name_len, const char *name)
{
    return strlen(name) == name_len && g_ascii_strncasecmp(line, name, name_len) == 0;
}

static void
add_header_line(HttpCall *call, const char *line)
{
    call->headers = curl_slist_append(call->headers, line);
    if (call->headers == NULL)
        g_error("no memory for an HTTP call");
}

static bool
set_headers(HttpCall *call, const HttpCallSpec *spec, GError **error)
{
    bool has_expect = false;

    for (const char *const *line = spec->headers; line != NULL && *line != NULL; line++) {
        size_t n;

        if (!header_is_valid(*line, &n))
            return err_set(error, ERR_INVALID, "the header '%.*s' is malformed",
                           (int)strspn(*line, token_chars), *line);
        if (header_is(*line, n, "content-length") || header_is(*line, n, "transfer-encoding"))
            return err_set(error, ERR_INVALID, "the header '%.*s' is not the caller's to set", (int)n, *line);
        has_expect |= header_is(*line, n, "expect");
        const char *value = *line + n + 1;
        value += strspn(value, " \t");
        /* curl's spelling of a header without a value; "Name:" would mean "leave it out". */
        g_autofree char *empty = value[0] == '\0' ? g_strdup_printf("%.*s;", (int)n, *line) : NULL;
        add_header_line(call, empty != NULL ? empty : *line);
    }
    if (!has_expect)
        add_header_line(call, "Expect:");
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    return true;
}

static bool
open_body(CallBody *body, const HttpCallSpec *spec, GError **error)
{
    struct stat st;

    if (spec->body_fd < 0) {
        body->len = spec->body != NULL ? spec->body_len : 0;
        body->bytes = g_malloc(body->len + 1);
        if (body->len > 0)
            memcpy(body->bytes, spec->body, body->len);
        return true;
    }
    if (fstat(spec->body_fd, &st) < 0)
        return err_errno(error, "look at the file to send");
    if (!S_ISREG(st.st_mode))
        return err_set(error, ERR_INVALID, "the body to send is not a regular file");
    body->len = (guint64)st.st_size;
    body->fd = fcntl(spec->body_fd, F_DUPFD_CLOEXEC, 0);
    return body->fd >= 0 || err_errno(error, "hold the file to send");
}

static bool
set_request(HttpCall *call, const HttpCallSpec *spec, GError **error)
{
    static const char *const always_with_length[] = {"POST", "PUT", "PATCH", NULL};
    const char *method = spec->method != NULL ? spec->method : "GET";
    bool is_head = strcmp(method, "HEAD") == 0;
    bool has_body = spec->body != NULL || spec->body_fd >= 0;

    if (method[0] == '\0' || method[strspn(method, token_chars)] != '\0')
        return err_set(error, ERR_INVALID, "the method is malformed");
    if (is_head && has_body)
        return err_set(error, ERR_INVALID, "a HEAD request has no body");
    if (has_body || g_strv_contains(always_with_length, method)) {
        if (!open_body(&call->body, spec, error))
            return false;
        curl_easy_setopt(call->easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(call->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->body.len);
    }
    if (is_head)
        curl_easy_setopt(call->easy, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, method);
    return true;
}

static void
set_options(HttpCall *call, const HttpCallSpec *spec)
{
    CURL *easy = call->easy;

    call->limits = (CallLimits){
        .connect_ms = spec->connect_ms > 0 ? spec->connect_ms : HTTP_CLIENT_CONNECT_MS,
        .first_byte_ms = spec->first_byte_ms,
        .stall_ms = spec->stall_ms,
        .total_ms = spec->total_ms,
    };
    /* Ours counts from the call; curl's makes it leave time for a host's other addresses. */
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)call->limits.connect_ms);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
    /* Without it, ending a call whose name is still being looked up waits for the look-up. */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    if (spec->unix_socket != NULL)
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, spec->unix_socket);
}

bool
call_setup(HttpCall *call, const HttpCallSpec *spec, GError **error)
{
    if (!set_url(call, spec, error) || !set_headers(call, spec, error) || !set_request(call, spec, error))
        return false;
    set_options(call, spec);
    return true;
}
