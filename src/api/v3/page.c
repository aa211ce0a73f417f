/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/state.h"
#include "api/v3/v3.h"
#include "http/url.h"

/* A number that a stranger wrote, in 1..max; `usual` where it is none or less than 1. */
static guint
lenient_number(const char *query, const char *name, guint usual, guint max)
{
    g_autofree char *text = NULL;
    guint64 value;

    if (!url_query_get(query, name, &text, NULL) || text == NULL || text[0] == '\0')
        return usual;
    if (strspn(text, "0123456789") != strlen(text))
        return usual;
    value = g_ascii_strtoull(text, NULL, 10); /* the largest there is where it runs over */
    return value == 0 ? usual : (guint)MIN(value, max);
}

void
v3_read_page(const ApiCall *call, ForgePage *ret_page)
{
    const char *query = http_request_query(call->request);

    ret_page->page = lenient_number(query, "page", 1, V3_PAGE_NUMBER_MAX);
    ret_page->per_page = lenient_number(query, "per_page", V3_PAGE, V3_PAGE_MAX);
}

void
v3_read_page_of(const ApiCall *call, guint max, ForgePage *ret_page)
{
    const char *query = http_request_query(call->request);

    ret_page->page = lenient_number(query, "page", 1, V3_PAGE_NUMBER_MAX);
    ret_page->per_page = lenient_number(query, "per_page", max, max);
}

/* ---- Link ---- */

/* What a stranger wrote must not end the address or the header that it is put into. */
static void
append_safely(GString *url, const char *text, size_t n)
{
    static const char also[] = "-._~%=+:/?@!$'()*;[]";

    for (size_t i = 0; i < n; i++) {
        if (g_ascii_isalnum(text[i]) || (text[i] != '\0' && strchr(also, text[i]) != NULL))
            g_string_append_c(url, text[i]);
        else
            g_string_append_printf(url, "%%%02X", (guchar)text[i]);
    }
}

/* The query without its `page`, ended by "?" or "&". */
static char *
dup_base(const ApiCall *call)
{
    const char *path = http_request_path(call->request), *query = http_request_query(call->request);
    GString *url = g_string_new(call->api->address);
    char next = '?';

    append_safely(url, path, strlen(path));
    for (const char *p = query; p != NULL && *p != '\0';) {
        size_t n = strcspn(p, "&");

        if (n > 0 && !(strncmp(p, "page", 4) == 0 && (n == 4 || p[4] == '='))) {
            g_string_append_c(url, next);
            append_safely(url, p, n);
            next = '&';
        }
        p += n + (p[n] == '&');
    }
    g_string_append_c(url, next);
    return g_string_free(url, FALSE);
}

static void
append_link(GString *header, const char *base, guint page, const char *rel)
{
    g_string_append_printf(header, "%s<%spage=%u>; rel=\"%s\"", header->len > 0 ? ", " : "", base, page, rel);
}

/* `last` 0: not known. */
static void
add_link(ApiCall *call, guint page, bool more, guint last)
{
    g_autofree char *base = dup_base(call);
    g_autoptr(GString) header = g_string_new(NULL);

    if (page > 1)
        append_link(header, base, page - 1, "prev");
    if (more)
        append_link(header, base, page + 1, "next");
    if (more && last > 0)
        append_link(header, base, last, "last");
    if (page > 1)
        append_link(header, base, 1, "first");
    if (header->len > 0)
        http_response_header(call->request, "Link", header->str);
}

void
v3_link(ApiCall *call, const ForgePage *page, gint64 total)
{
    guint last = (guint)((total + page->per_page - 1) / page->per_page);

    add_link(call, page->page, page->page < last, last);
}

void
v3_link_more(ApiCall *call, const ForgePage *page, bool more)
{
    add_link(call, page->page, more, 0);
}
