/* SPDX-License-Identifier: Apache-2.0 */
#include "json/yaml.h"

#include <string.h>
#include <yaml.h>

typedef struct Reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; deleted by the next call of next() */
    const YamlLimits *limits;
    guint values;
    GString *path; /* of the map being read, with a dot behind each key */
    const char *text;
    size_t len;
    YamlProblem *problem;
} Reader;

void
yaml_node_free(YamlNode *node)
{
    if (node == NULL)
        return;
    g_free(node->text);
    g_clear_pointer(&node->items, g_ptr_array_unref);
    g_clear_pointer(&node->keys, g_ptr_array_unref);
    g_free(node);
}

void
yaml_problem_clear(YamlProblem *problem)
{
    g_clear_pointer(&problem->message, g_free);
}

static YamlPlace
place_of(yaml_mark_t mark)
{
    return (YamlPlace){(guint)mark.line + 1, (guint)mark.column + 1};
}

static bool fail_at(Reader *r, yaml_mark_t mark, const char *fmt, ...) G_GNUC_PRINTF(3, 4);

static bool
fail_at(Reader *r, yaml_mark_t mark, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    yaml_problem_clear(r->problem);
    *r->problem = (YamlProblem){g_strdup_vprintf(fmt, ap), place_of(mark)};
    va_end(ap);
    return false;
}

static bool
fail(Reader *r, const char *message)
{
    return fail_at(r, r->event.start_mark, "%s", message);
}

/* Bytes that are not text have an offset but no mark. */
static yaml_mark_t
mark_of_error(const Reader *r)
{
    yaml_mark_t mark = {0};

    if (r->parser.error != YAML_READER_ERROR)
        return r->parser.problem_mark;
    for (size_t i = 0; i < MIN(r->parser.problem_offset, r->len); i++) {
        mark.column = r->text[i] == '\n' ? 0 : mark.column + 1;
        mark.line += r->text[i] == '\n';
    }
    return mark;
}

static bool
next(Reader *r)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event) != 0)
        return true;
    return fail_at(r, mark_of_error(r), "not valid YAML: %s",
                   r->parser.problem != NULL ? r->parser.problem : "the text cannot be read");
}

static bool
is_null(const yaml_event_t *event)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};

    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           g_strv_contains(nulls, (const char *)event->data.scalar.value);
}

static YamlNode *
node_new(Reader *r, YamlKind kind)
{
    YamlNode *node = g_new0(YamlNode, 1);

    *node = (YamlNode){.kind = kind, .place = place_of(r->event.start_mark)};
    if (kind == YAML_LIST || kind == YAML_MAP)
        node->items = g_ptr_array_new_with_free_func((GDestroyNotify)yaml_node_free);
    if (kind == YAML_MAP)
        node->keys = g_ptr_array_new_with_free_func((GDestroyNotify)yaml_node_free);
    return node;
}

/* Anchors, tags and NUL characters have no use here. */
static bool
read_text(Reader *r, YamlNode **ret_node)
{
    const char *text = (const char *)r->event.data.scalar.value;
    size_t len = r->event.data.scalar.length;

    if (r->event.data.scalar.anchor != NULL || r->event.data.scalar.tag != NULL)
        return fail(r, "anchors and tags are not supported");
    if (memchr(text, '\0', len) != NULL || len > r->limits->text_max)
        return fail(r, "the value has a NUL character or is too long");
    *ret_node = node_new(r, is_null(&r->event) ? YAML_NULL : YAML_TEXT);
    (*ret_node)->text = g_strndup(text, len);
    return true;
}

static bool read_node(Reader *r, guint depth, YamlNode **ret_node);

static bool
read_list(Reader *r, guint depth, YamlNode *list)
{
    while (next(r)) {
        YamlNode *item = NULL;

        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            return true;
        bool ok = read_node(r, depth + 1, &item);
        if (item != NULL)
            g_ptr_array_add(list->items, item);
        if (!ok)
            return false;
    }
    return false;
}

/* The current event is the key; leaves the last event of its value current. */
static bool
read_pair(Reader *r, guint depth, YamlNode *map)
{
    g_autoptr(YamlNode) key = NULL;
    YamlNode *value = NULL;
    gsize above = r->path->len;

    if (r->event.type != YAML_SCALAR_EVENT)
        return fail(r, "the name of a setting must be plain text");
    if (++r->values > r->limits->values)
        return fail(r, "too many values in one file");
    if (!read_text(r, &key))
        return false;
    key->kind = YAML_TEXT;
    if (yaml_member(map, key->text) != NULL)
        return fail_at(r, r->event.start_mark, "%s%s is there twice", r->path->str, key->text);
    g_string_append_printf(r->path, "%s.", key->text);
    bool ok = next(r) && read_node(r, depth + 1, &value);
    g_string_truncate(r->path, above);
    if (value != NULL) {
        g_ptr_array_add(map->keys, g_steal_pointer(&key));
        g_ptr_array_add(map->items, value);
    }
    return ok;
}

static bool
read_map(Reader *r, guint depth, YamlNode *map)
{
    while (next(r)) {
        if (r->event.type == YAML_MAPPING_END_EVENT)
            return true;
        if (!read_pair(r, depth, map))
            return false;
    }
    return false;
}

/* The current event begins it.  A list or map that has a mistake inside is there too, up to
 * the mistake. */
static bool
read_node(Reader *r, guint depth, YamlNode **ret_node)
{
    bool list = r->event.type == YAML_SEQUENCE_START_EVENT;
    bool map = r->event.type == YAML_MAPPING_START_EVENT;

    if (++r->values > r->limits->values)
        return fail(r, "too many values in one file");
    if (r->event.type == YAML_SCALAR_EVENT)
        return read_text(r, ret_node);
    if (!list && !map)
        return fail(r, "aliases are not supported");
    if (depth > r->limits->depth)
        return fail(r, "sections are nested too deeply");
    if (list ? r->event.data.sequence_start.anchor != NULL || r->event.data.sequence_start.tag != NULL
             : r->event.data.mapping_start.anchor != NULL || r->event.data.mapping_start.tag != NULL)
        return fail(r, "anchors and tags are not supported");
    *ret_node = node_new(r, list ? YAML_LIST : YAML_MAP);
    return list ? read_list(r, depth, *ret_node) : read_map(r, depth, *ret_node);
}

static bool
read_document(Reader *r, const char *top, YamlNode **ret_node)
{
    if (!next(r))
        return false;
    /* A file of comments has one empty value. */
    if (r->event.type == YAML_SCALAR_EVENT && is_null(&r->event))
        return next(r);
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return fail(r, top);
    return read_node(r, 1, ret_node) && next(r);
}

static void
read_stream(Reader *r, const char *top, YamlNode **ret_node)
{
    if (!next(r) || !next(r) || r->event.type == YAML_STREAM_END_EVENT)
        return;
    if (read_document(r, top, ret_node) && next(r) && r->event.type != YAML_STREAM_END_EVENT)
        (void)fail(r, "a second document in the file");
}

YamlNode *
yaml_read(const char *text, size_t len, const YamlLimits *limits, const char *top, YamlProblem *ret_problem)
{
    Reader r = {.text = text, .len = len, .limits = limits, .problem = ret_problem};
    YamlNode *node = NULL;
    g_autoptr(GString) path = r.path = g_string_new(NULL);
    int ready = yaml_parser_initialize(&r.parser);

    g_assert(ready != 0);
    /* Otherwise it would guess UTF-16 from the first bytes. */
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    read_stream(&r, top, &node);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return node;
}

const YamlNode *
yaml_member(const YamlNode *map, const char *key)
{
    for (guint i = 0; i < map->items->len; i++) {
        const YamlNode *k = map->keys->pdata[i];

        if (strcmp(k->text, key) == 0)
            return map->items->pdata[i];
    }
    return NULL;
}
