/* SPDX-License-Identifier: Apache-2.0 */
#include "report/xml.h"

#include <string.h>

typedef enum State {
    STATE_TEXT,
    STATE_TAG,
    STATE_QUOTED,      /* inside an attribute of it */
    STATE_COMMENT,     /* to --> */
    STATE_CDATA,       /* to ]]> */
    STATE_DECLARATION, /* <? and <!, to > */
} State;

struct XmlTags {
    XmlTagFunc func;
    void *data;
    State state;
    char quote;
    bool slash;   /* the tag's last character so far */
    char last[2]; /* what came before, to see an end of three characters */
    size_t len;
    char tag[XML_TAG_MAX + 1];
};

XmlTags *
xml_tags_new(XmlTagFunc func, void *data)
{
    XmlTags *tags = g_new0(XmlTags, 1);

    tags->func = func;
    tags->data = data;
    return tags;
}

void
xml_tags_free(XmlTags *tags)
{
    g_free(tags);
}

static void
end_tag(XmlTags *tags)
{
    XmlTag tag = {.open = true};
    char *p = tags->tag;

    tags->state = STATE_TEXT;
    if (*p == '/') {
        tag = (XmlTag){.close = true};
        p++;
    } else if (tags->slash) {
        tag.close = true;
        if (p[tags->len - 1] == '/')
            p[--tags->len] = '\0';
    }
    size_t n = strcspn(p, " \t\r\n");

    tag.attributes = p[n] != '\0' ? p + n + 1 : p + n;
    p[n] = '\0';
    tag.name = p;
    if (n > 0)
        tags->func(tags->data, &tag);
}

static void
keep(XmlTags *tags, char c)
{
    if (tags->len < XML_TAG_MAX)
        tags->tag[tags->len++] = c != '\0' ? c : ' ';
}

static void
put_tag(XmlTags *tags, char c)
{
    if (c == '>') {
        tags->tag[tags->len] = '\0';
        end_tag(tags);
        return;
    }
    if (c == '"' || c == '\'') {
        tags->quote = c;
        tags->state = STATE_QUOTED;
    }
    tags->slash = c == '/';
    keep(tags, c);
    tags->tag[tags->len] = '\0';
    if (strcmp(tags->tag, "!--") == 0)
        tags->state = STATE_COMMENT;
    else if (strcmp(tags->tag, "![CDATA[") == 0)
        tags->state = STATE_CDATA;
    else if (tags->len == 1 && c == '?')
        tags->state = STATE_DECLARATION;
    else if (tags->tag[0] == '!' && tags->len > 1 && tags->tag[1] != '-' && tags->tag[1] != '[')
        tags->state = STATE_DECLARATION;
}

static void
put_quoted(XmlTags *tags, char c)
{
    keep(tags, c);
    if (c == tags->quote)
        tags->state = STATE_TAG;
}

void
xml_tags_put(XmlTags *tags, guint8 byte)
{
    char c = (char)byte;
    bool pair = tags->last[0] == tags->last[1];

    switch (tags->state) {
    case STATE_TEXT:
        if (c == '<') {
            tags->state = STATE_TAG;
            tags->len = 0;
            tags->slash = false;
        }
        break;
    case STATE_TAG:
        put_tag(tags, c);
        break;
    case STATE_QUOTED:
        put_quoted(tags, c);
        break;
    case STATE_COMMENT:
        if (c == '>' && pair && tags->last[1] == '-')
            tags->state = STATE_TEXT;
        break;
    case STATE_CDATA:
        if (c == '>' && pair && tags->last[1] == ']')
            tags->state = STATE_TEXT;
        break;
    case STATE_DECLARATION:
        if (c == '>')
            tags->state = STATE_TEXT;
        break;
    }
    tags->last[0] = tags->last[1];
    tags->last[1] = c;
}

/* One entity or character reference at `*p`, which is moved behind it; else the '&' alone. */
static void
put_entity(GString *out, const char **p)
{
    static const struct {
        const char *name;
        char c;
    } known[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    const char *at = *p;

    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        if (g_str_has_prefix(at, known[i].name)) {
            g_string_append_c(out, known[i].c);
            *p += strlen(known[i].name);
            return;
        }
    }
    if (at[1] == '#') {
        bool hex = at[2] == 'x' || at[2] == 'X';
        char *end;
        guint64 c = g_ascii_strtoull(at + (hex ? 3 : 2), &end, hex ? 16 : 10);

        if (*end == ';' && c != 0 && c <= G_MAXUINT32 && g_unichar_validate((gunichar)c)) {
            g_string_append_unichar(out, (gunichar)c);
            *p = end + 1;
            return;
        }
    }
    g_string_append_c(out, '&');
    *p += 1;
}

static char *
dup_decoded(const char *p, const char *end)
{
    GString *out = g_string_new(NULL);

    while (p < end) {
        if (*p == '&')
            put_entity(out, &p);
        else
            g_string_append_c(out, *p++);
    }
    return g_string_free(out, FALSE);
}

char *
xml_dup_attribute(const char *attributes, const char *name)
{
    const char *p = attributes;
    size_t n = strlen(name);

    for (;;) {
        p += strspn(p, " \t\r\n");
        size_t len = strcspn(p, "= \t\r\n");
        const char *key = p;

        p += len;
        p += strspn(p, " \t\r\n");
        if (len == 0 || *p != '=')
            return NULL;
        p++;
        p += strspn(p, " \t\r\n");
        const char *end = *p == '"' || *p == '\'' ? strchr(p + 1, *p) : NULL;
        if (end == NULL)
            return NULL;
        if (len == n && memcmp(key, name, n) == 0)
            return dup_decoded(p + 1, end);
        p = end + 1;
    }
}
