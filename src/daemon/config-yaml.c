/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config-yaml.h"

#include <string.h>
#include <yaml.h>

#include "daemon/setting.h"

typedef struct Reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; deleted by the next call of next() */
    GHashTable *seen;   /* full names */
    guint values;
    const char *text;
    size_t len;
    const ConfigYamlSink *sink;
} Reader;

static ConfigPlace
place_of(yaml_mark_t mark)
{
    return (ConfigPlace){(guint)mark.line + 1, (guint)mark.column + 1};
}

static bool
fail_at(Reader *r, yaml_mark_t mark, const char *message)
{
    r->sink->problem(message, place_of(mark), r->sink->data);
    return false;
}

static bool
fail(Reader *r, const char *message)
{
    return fail_at(r, r->event.start_mark, message);
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
    g_autofree char *message = g_strdup_printf(
        "not valid YAML: %s", r->parser.problem != NULL ? r->parser.problem : "the text cannot be read");
    return fail_at(r, mark_of_error(r), message);
}

/* Anchors, tags and NUL characters have no use here. */
static bool
check_scalar(Reader *r)
{
    const char *text = (const char *)r->event.data.scalar.value;
    size_t len = r->event.data.scalar.length;

    if (r->event.data.scalar.anchor != NULL || r->event.data.scalar.tag != NULL)
        return fail(r, "anchors and tags are not supported");
    if (memchr(text, '\0', len) != NULL || len > SETTING_TEXT_MAX)
        return fail(r, "the value has a NUL character or is too long");
    if (++r->values > CONFIG_VALUES_MAX)
        return fail(r, "too many values in one file");
    return true;
}

static bool
is_null(const yaml_event_t *event)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};

    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           g_strv_contains(nulls, (const char *)event->data.scalar.value);
}

static bool
read_scalar(Reader *r, const char *name)
{
    const char *texts[] = {(const char *)r->event.data.scalar.value, NULL};

    if (!check_scalar(r))
        return false;
    if (is_null(&r->event)) {
        g_autofree char *message = g_strdup_printf("%s has no value: write one, or remove the line", name);

        (void)fail(r, message); /* what follows is still clear */
        return true;
    }
    r->sink->value(name, texts, false, place_of(r->event.start_mark), r->sink->data);
    return true;
}

static bool
read_list(Reader *r, const char *name)
{
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    ConfigPlace place = place_of(r->event.start_mark);

    if (r->event.data.sequence_start.anchor != NULL || r->event.data.sequence_start.tag != NULL)
        return fail(r, "anchors and tags are not supported");
    while (next(r)) {
        if (r->event.type == YAML_SEQUENCE_END_EVENT) {
            g_ptr_array_add(texts, NULL);
            r->sink->value(name, (const char *const *)texts->pdata, true, place, r->sink->data);
            return true;
        }
        if (r->event.type != YAML_SCALAR_EVENT)
            return fail(r, "a list may hold only plain values");
        if (!check_scalar(r))
            return false;
        g_ptr_array_add(texts, g_strdup((const char *)r->event.data.scalar.value));
    }
    return false;
}

static bool read_section(Reader *r, const char *prefix, guint depth);

static bool
read_value(Reader *r, const char *name, guint depth)
{
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(r, name);
    case YAML_SEQUENCE_START_EVENT:
        return read_list(r, name);
    case YAML_MAPPING_START_EVENT:
        return read_section(r, name, depth + 1);
    case YAML_ALIAS_EVENT:
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        break;
    }
    return fail(r, "aliases are not supported");
}

/* The current event is the key; leaves the last event of its value current. */
static bool
read_pair(Reader *r, const char *prefix, guint depth)
{
    if (r->event.type != YAML_SCALAR_EVENT)
        return fail(r, "the name of a setting must be plain text");
    if (!check_scalar(r))
        return false;
    const char *key = (const char *)r->event.data.scalar.value;
    g_autofree char *name = prefix != NULL ? g_strconcat(prefix, ".", key, NULL) : g_strdup(key);
    if (!g_hash_table_add(r->seen, g_strdup(name))) {
        g_autofree char *message = g_strdup_printf("%s is there twice", name);

        return fail(r, message);
    }
    return next(r) && read_value(r, name, depth);
}

static bool
read_section(Reader *r, const char *prefix, guint depth)
{
    if (depth > CONFIG_DEPTH_MAX)
        return fail(r, "sections are nested too deeply");
    if (r->event.data.mapping_start.anchor != NULL || r->event.data.mapping_start.tag != NULL)
        return fail(r, "anchors and tags are not supported");
    while (next(r)) {
        if (r->event.type == YAML_MAPPING_END_EVENT)
            return true;
        if (!read_pair(r, prefix, depth))
            return false;
    }
    return false;
}

static bool
read_document(Reader *r)
{
    if (!next(r))
        return false;
    /* A file of comments has one empty value. */
    if (r->event.type == YAML_SCALAR_EVENT && is_null(&r->event))
        return next(r);
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return fail(r, "the file must hold settings, such as \"log:\" and below it \"  level: info\"");
    return read_section(r, NULL, 1) && next(r);
}

static void
read_stream(Reader *r)
{
    if (!next(r) || !next(r) || r->event.type == YAML_STREAM_END_EVENT)
        return;
    if (read_document(r) && next(r) && r->event.type != YAML_STREAM_END_EVENT)
        (void)fail(r, "a second document in the file");
}

void
config_yaml_read(const char *text, size_t len, const ConfigYamlSink *sink)
{
    Reader r = {.text = text, .len = len, .sink = sink};
    int ready = yaml_parser_initialize(&r.parser);

    g_assert(ready != 0 && len <= CONFIG_FILE_MAX);
    r.seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    /* Otherwise it would guess UTF-16 from the first bytes. */
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    read_stream(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    g_hash_table_unref(r.seen);
}
