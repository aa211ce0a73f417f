/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "brain/script-private.h"

typedef enum Speaker { SPEAKER_SYSTEM, SPEAKER_USER, SPEAKER_TOOL, SPEAKER_MODEL } Speaker;

/* A string, or parts that have one under "text"; a tool's result may be parts again. */
static void
append_text(GString *to, Json *content)
{
    size_t i;
    Json *part;

    if (json_is_string(content))
        g_string_append(to, json_string_value(content));
    json_array_foreach(content, i, part)
    {
        Json *inner = json_object_get(part, "content");

        if (to->len > 0 && json_is_string(json_object_get(part, "text")))
            g_string_append_c(to, '\n');
        append_text(to, json_object_get(part, "text"));
        if (json_is_string(inner) || json_is_array(inner))
            append_text(to, inner);
    }
}

static bool
has_part(Json *content, const char *type)
{
    size_t i;
    Json *part;

    json_array_foreach(content, i, part)
    {
        if (g_strcmp0(json_string_value(json_object_get(part, "type")), type) == 0)
            return true;
    }
    return false;
}

static Speaker
speaker_of(Json *item)
{
    const char *role = json_string_value(json_object_get(item, "role"));
    const char *type = json_string_value(json_object_get(item, "type"));

    if (role == NULL && type != NULL)
        return g_str_has_suffix(type, "_output") ? SPEAKER_TOOL : SPEAKER_MODEL;
    if (role == NULL || strcmp(role, "user") == 0)
        return has_part(json_object_get(item, "content"), "tool_result") ? SPEAKER_TOOL : SPEAKER_USER;
    if (strcmp(role, "assistant") == 0)
        return SPEAKER_MODEL;
    return strcmp(role, "tool") == 0 || strcmp(role, "function") == 0 ? SPEAKER_TOOL : SPEAKER_SYSTEM;
}

static void
replace(char **text, const GString *with)
{
    g_free(*text);
    *text = g_strdup(with->str);
}

static void
hear(Talk *talk, Speaker speaker, const GString *said)
{
    if (speaker == SPEAKER_SYSTEM) {
        g_autofree char *before = g_steal_pointer(&talk->system);

        talk->system = g_strconcat(before, *before != '\0' ? "\n" : "", said->str, NULL);
        return;
    }
    if (speaker == SPEAKER_MODEL)
        return;
    if (speaker == SPEAKER_USER && *talk->asked == '\0')
        replace(&talk->asked, said);
    replace(&talk->last, said);
    replace(speaker == SPEAKER_TOOL ? &talk->last_tool : &talk->last_user, said);
    talk->last_is_tool = speaker == SPEAKER_TOOL;
}

static void
hear_all(Talk *talk, Json *items)
{
    bool was_model = false;
    size_t i;
    Json *item;

    json_array_foreach(items, i, item)
    {
        Speaker speaker = speaker_of(item);
        g_autoptr(GString) said = g_string_new(NULL);

        append_text(said, json_object_get(item, "content"));
        if (said->len == 0)
            append_text(said, json_object_get(item, "output"));
        hear(talk, speaker, said);
        /* Text and the calls beside it are one turn, however many items they are. */
        if (speaker == SPEAKER_MODEL && !was_model)
            talk->turn++;
        was_model = speaker == SPEAKER_MODEL;
    }
}

void
talk_init(Talk *talk, RouteKind kind, Json *body)
{
    static const char *const above[] = {"system", "instructions"};
    Json *input = json_object_get(body, "input");

    *talk = (Talk){.system = g_strdup(""),
                   .asked = g_strdup(""),
                   .last = g_strdup(""),
                   .last_user = g_strdup(""),
                   .last_tool = g_strdup(""),
                   .turn = 1};
    for (size_t i = 0; i < G_N_ELEMENTS(above); i++) {
        g_autoptr(GString) said = g_string_new(NULL);

        append_text(said, json_object_get(body, above[i]));
        if (said->len > 0)
            hear(talk, SPEAKER_SYSTEM, said);
    }
    if (json_is_string(input)) {
        g_autoptr(GString) said = g_string_new(json_string_value(input));

        hear(talk, SPEAKER_USER, said);
    }
    hear_all(talk, kind == ROUTE_RESPONSES ? input : json_object_get(body, "messages"));
}

void
talk_clear(Talk *talk)
{
    g_free(talk->system);
    g_free(talk->asked);
    g_free(talk->last);
    g_free(talk->last_user);
    g_free(talk->last_tool);
}
