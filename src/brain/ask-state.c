/* SPDX-License-Identifier: Apache-2.0 */
/* All boxes share one account at a provider, so what stays there could be another box's.  An id
 * of such a thing is told by where it stands: at the top, in a message's parts, in a tool's
 * settings.  What a tool's arguments or a schema call "file_id" is the box's own business. */
#include <string.h>

#include "base/err.h"
#include "brain/ask.h"

/* Members of the body that make or name something kept. */
static const struct {
    const char *member, *why;
} refused_members[] = {
    {"previous_response_id", "send the conversation itself"},
    {"conversation", "send the conversation itself"},
    {"background", "ask for a stream"},
    {"prompt", "send the text of the prompt itself"},
    {"container", "a container outlives the request"},
    {"mcp_servers", "the provider would call servers that the door does not judge"},
    {"vector_store_ids", "a vector store outlives the request"},
};

static bool
refuse(GError **error, const char *what, const char *why)
{
    return err_set(error, ERR_DENIED, "'%s' is refused by this gateway: %s", what, why);
}

static bool
is_set(Json *value)
{
    return value != NULL && !json_is_null(value) && !json_is_false(value);
}

static bool
check_members(Json *body, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(refused_members); i++) {
        if (is_set(json_object_get(body, refused_members[i].member)))
            return refuse(error, refused_members[i].member, refused_members[i].why);
    }
    if (is_set(json_object_get(body, "store")))
        return refuse(error, "store", "nothing is kept at the provider");
    return true;
}

/* A part of a message, in either dialect: {"type": …, "file_id" | "file": {"file_id"} |
 * "source": {"type": "file"}}, and the parts of a tool's result. */
static bool check_parts(Json *parts, GError **error);

/* An item of the responses API that is named, not said: its type may be left out. */
static bool
is_reference(Json *part, const char *type)
{
    if (!is_set(json_object_get(part, "id")))
        return false;
    if (type != NULL)
        return strcmp(type, "image_generation_call") == 0 && !is_set(json_object_get(part, "result"));
    return !is_set(json_object_get(part, "role"));
}

static bool
check_part(Json *part, GError **error)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    Json *source = json_object_get(part, "source");
    const char *source_type = json_string_value(json_object_get(source, "type"));

    if (type != NULL && (strcmp(type, "container_upload") == 0 || strcmp(type, "item_reference") == 0))
        return refuse(error, type, "it names something kept at the provider");
    if (type == NULL || strcmp(type, "tool_use") != 0) {
        if (is_set(json_object_get(part, "file_id")) ||
            is_set(json_object_get(json_object_get(part, "file"), "file_id")) ||
            (source_type != NULL && strcmp(source_type, "file") == 0))
            return refuse(error, "file_id", "send the file's content itself");
    }
    if (is_set(json_object_get(part, "container_id")))
        return refuse(error, "container_id", "a container outlives the request");
    return check_parts(json_object_get(part, "content"), error) &&
           check_parts(json_object_get(part, "output"), error);
}

static bool
check_parts(Json *parts, GError **error)
{
    size_t i;
    Json *part;

    if (json_is_object(parts))
        return check_part(parts, error);
    json_array_foreach(parts, i, part)
    {
        if (json_is_object(part) && !check_part(part, error))
            return false;
    }
    return true;
}

static bool
check_items(Json *input, GError **error)
{
    size_t i;
    Json *item;

    json_array_foreach(input, i, item)
    {
        if (is_reference(item, json_string_value(json_object_get(item, "type"))))
            return refuse(error, "id", "it names something kept at the provider");
    }
    return check_parts(input, error);
}

/* An earlier answer's sound, by its id. */
static bool
check_audio(Json *messages, GError **error)
{
    size_t i;
    Json *message;

    json_array_foreach(messages, i, message)
    {
        if (is_set(json_object_get(json_object_get(message, "audio"), "id")))
            return refuse(error, "audio.id", "it names something kept at the provider");
    }
    return true;
}

/* A tool's settings, at whatever depth; its schema is the box's own. */
static const struct {
    const char *member, *why;
} refused_settings[] = {
    {"container", "a container outlives the request"},
    {"container_id", "a container outlives the request"},
    {"file_id", "send the file's content itself"},
    {"file_ids", "send the files' content itself"},
    {"vector_store_ids", "a vector store outlives the request"},
};

static bool
is_schema(const char *member)
{
    return strcmp(member, "parameters") == 0 || strcmp(member, "input_schema") == 0;
}

static bool
check_type(const char *type, GError **error)
{
    if (type == NULL)
        return true;
    if (strcmp(type, "file_search") == 0)
        return refuse(error, type, "a vector store outlives the request");
    if (strcmp(type, "mcp") == 0)
        return refuse(error, type, "the provider would call servers that the door does not judge");
    if (g_str_has_prefix(type, "container_"))
        return refuse(error, type, "a container outlives the request");
    return true;
}

/* As deep as the body is, which json_decode_foreign() bounds. */
static bool
check_settings(Json *value, GError **error)
{
    const char *member;
    Json *inner;
    size_t i;

    json_array_foreach(value, i, inner)
    {
        if (!check_settings(inner, error))
            return false;
    }
    if (!check_type(json_string_value(json_object_get(value, "type")), error))
        return false;
    for (i = 0; i < G_N_ELEMENTS(refused_settings); i++) {
        if (is_set(json_object_get(value, refused_settings[i].member)))
            return refuse(error, refused_settings[i].member, refused_settings[i].why);
    }
    json_object_foreach(value, member, inner)
    {
        if (!is_schema(member) && !check_settings(inner, error))
            return false;
    }
    return true;
}

bool
ask_check_state(RouteKind kind, Json *body, GError **error)
{
    /* Embeddings call their text "input", and have none of the rest. */
    if (kind == ROUTE_EMBEDDINGS)
        return true;
    return check_members(body, error) && check_audio(json_object_get(body, "messages"), error) &&
           check_parts(json_object_get(body, "messages"), error) &&
           check_items(json_object_get(body, "input"), error) &&
           check_parts(json_object_get(body, "system"), error) &&
           check_settings(json_object_get(body, "tools"), error);
}
