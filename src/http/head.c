/* SPDX-License-Identifier: Apache-2.0 */
#include "http/parse.h"

void
http_head_clear(HttpHead *head)
{
    g_free(head->text);
    g_free(head->headers);
    *head = (HttpHead){0};
}

guint
http_head_count(const HttpHead *head, const char *name)
{
    guint n = 0;

    for (guint32 i = 0; i < head->n_headers; i++) {
        if (g_ascii_strcasecmp(head->text + head->headers[i].name, name) == 0)
            n++;
    }
    return n;
}

const char *
http_head_find(const HttpHead *head, const char *name)
{
    for (guint32 i = 0; i < head->n_headers; i++) {
        if (g_ascii_strcasecmp(head->text + head->headers[i].name, name) == 0)
            return head->text + head->headers[i].value;
    }
    return NULL;
}
