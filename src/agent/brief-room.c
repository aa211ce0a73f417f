/* SPDX-License-Identifier: Apache-2.0 */
/* A room in words for a model.  Other agents write into it, and what they were told by strangers comes along:
 * each thing is shown with whose word it is, and none of its lines begins as ours do. */
#include <string.h>

#include "agent/brief.h"

enum {
    PART_MAX = 8 * 1024, /* bytes of one part */
    MESSAGE_MAX = 700,   /* of one message: the last ten fit */
};

static const char cut_mark[] = " …";

static const char *
text_at(const Json *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* Where a line breaks, the next is marked as its continuation. */
static void
put_text(GString *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\n')
            g_string_append(out, "\n  | ");
        else if (*p == '\r' && p[1] == '\n')
            continue;
        else
            g_string_append_c(out, g_ascii_iscntrl(*p) ? ' ' : *p);
    }
}

static void
put_name(GString *out, const char *name)
{
    g_autofree char *line = g_strdup(name);

    for (char *p = line; *p != '\0'; p++) {
        if (g_ascii_iscntrl(*p))
            *p = ' ';
    }
    g_string_append(out, line);
}

/* "- NAME (BY, SEEN_BY): " */
static void
put_head(GString *out, const char *name, const Json *source)
{
    const char *by = text_at(source, "by"), *seen_by = text_at(source, "seen_by");

    g_string_append(out, "- ");
    put_name(out, name);
    g_string_append(out, " (");
    if (by != NULL) {
        put_name(out, by);
        g_string_append(out, ", ");
    }
    put_name(out, seen_by != NULL ? seen_by : "unknown");
    g_string_append(out, "): ");
}

static void
put_value(GString *out, const Json *value)
{
    g_autofree char *text = json_is_string(value) ? NULL : json_encode(value);

    put_text(out, text != NULL ? text : json_string_value(value));
}

static void
put_members(GString *out, Json *members, const Json *sources)
{
    const char *name;
    Json *value;

    json_object_foreach(members, name, value)
    {
        put_head(out, name, json_object_get(sources, name));
        put_value(out, value);
        g_string_append_c(out, '\n');
    }
}

static void
put_knowledge(GString *out, Json *facts)
{
    size_t i;
    Json *fact;

    json_array_foreach(facts, i, fact)
    {
        const char *name = text_at(fact, "name"), *text = text_at(fact, "text");
        const char *evidence = text_at(fact, "evidence");

        put_head(out, name != NULL ? name : "", fact);
        put_text(out, text != NULL ? text : "");
        if (evidence != NULL && *evidence != '\0') {
            g_string_append(out, " [");
            put_text(out, evidence);
            g_string_append_c(out, ']');
        }
        g_string_append_c(out, '\n');
    }
}

static void
put_messages(GString *out, Json *messages)
{
    size_t i;
    Json *message;

    json_array_foreach(messages, i, message)
    {
        const char *name = text_at(message, "name"), *text = text_at(message, "text");

        if (text == NULL)
            continue;
        size_t n = strlen(text);
        g_autofree char *shown = g_utf8_make_valid(text, (gssize)MIN(n, (size_t)MESSAGE_MAX));

        put_head(out, name != NULL ? name : "somebody", message);
        put_text(out, shown);
        g_string_append_printf(out, "%s\n", n > MESSAGE_MAX ? cut_mark : "");
    }
}

/* Takes `part`. */
static void
add_part(GString *out, const char *title, GString *part)
{
    if (part->len > PART_MAX) {
        g_autofree char *valid = g_utf8_make_valid(part->str, PART_MAX);

        g_string_printf(part, "%s%s\n", valid, cut_mark);
    }
    if (part->len > 0)
        g_string_append_printf(out, "%s%s\n%s", out->len > 0 ? "\n" : "", title, part->str);
    g_string_free(part, TRUE);
}

static void
add_members(GString *out, const char *title, const Json *room, const char *name)
{
    GString *part = g_string_new(NULL);

    put_members(part, json_object_get(room, name), json_object_get(json_object_get(room, "sources"), name));
    add_part(out, title, part);
}

char *
brief_format_room(Json *room)
{
    GString *out = g_string_new(NULL), *known = g_string_new(NULL), *messages = g_string_new(NULL);

    add_members(out, "Plan:", room, "plan");
    add_members(out, "Who does what:", room, "assignments");
    put_knowledge(known, json_object_get(room, "knowledge"));
    add_part(out, "Known:", known);
    put_messages(messages, json_object_get(room, "messages"));
    add_part(out, "Messages:", messages);
    return g_string_free(out, FALSE);
}
