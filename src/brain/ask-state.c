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
    return check_parts(json_object_get(part, "content"), error) &&
           check_parts(json_object_get(part, "output"), error);
}

static bool
check_parts(Json *parts, GError **error)
{
    size_t i;
    Json *part;

    json_array_foreach(parts, i, part)
    {
        if (json_is_object(part) && !check_part(part, error))
            return false;
    }
    return true;
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

static bool
check_tools(Json *tools, GError **error)
{
    size_t i;
    Json *tool;

    json_array_foreach(tools, i, tool)
    {
        const char *type = json_string_value(json_object_get(tool, "type"));

        if (type == NULL)
            continue;
        if (strcmp(type, "file_search") == 0)
            return refuse(error, type, "a vector store outlives the request");
        if (strcmp(type, "mcp") == 0)
            return refuse(error, type, "the provider would call servers that the door does not judge");
        if (json_is_string(json_object_get(tool, "container")))
            return refuse(error, "container", "a container outlives the request");
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
           check_parts(json_object_get(body, "input"), error) &&
           check_parts(json_object_get(body, "system"), error) &&
           check_tools(json_object_get(body, "tools"), error);
}
