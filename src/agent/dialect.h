/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "agent/answer.h"
#include "http/sse.h"
#include "json/json.h"

/* How a question is written and an answer read: OpenAI's chat completions, Anthropic's messages.
 *
 * Messages are kept in a form of our own, a list of
 *   {"role": "user", "text"}
 *   {"role": "assistant", "text", "calls": [{"id", "name", "arguments": JSON as text, always an object}]}
 *   {"role": "tool", "id", "name", "text"}
 * in which every call of an assistant's message is followed by its result. */
typedef struct Question {
    const char *model;
    const char *system;
    Json *messages;
    Json *tools; /* [{"name", "description", "parameters": schema}]; NULL: none */
    gint64 output_tokens;
    bool old_bound; /* OpenAI: the bound by its former name, which some servers alone know */
} Question;

typedef struct Dialect {
    const char *name;
    const char *base_env;  /* the variable with the base URL */
    const char *base_path; /* of it at the door */
    const char *path;      /* behind the base */
    const char *const *headers;
    Json *(*render)(const Question *question);
    /* One event of the stream. */
    bool (*on_event)(Answer *answer, const SseEvent *event, GError **error);
} Dialect;

extern const Dialect dialect_openai, dialect_anthropic;
/* NULL: there is none of that name. */
const Dialect *dialect_find(const char *name);

/* Reads a stream of one of them. */
typedef struct Stream Stream;

enum { STREAM_EVENT_MAX = 4 * 1024 * 1024, STREAM_EVENT_VALUES_MAX = 64 * 1024 };

Stream *stream_new(const Dialect *dialect, Answer *answer);
void stream_free(Stream *stream);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Stream, stream_free)
/* ERR_INVALID: an event that is none; ERR_LIMIT: too long. */
bool stream_feed(Stream *stream, const void *bytes, size_t n, GError **error);

/* Shared: {"error": {"code", "type", "message"}} of an answer or an event; false: it has none. */
bool dialect_read_error(Json *body, const char **ret_code, const char **ret_text);
Json *dialect_decode(const SseEvent *event, GError **error);
/* The arguments of a call as a tree; empty for what is no object. */
Json *dialect_arguments(Json *call);
gint64 dialect_number(Json *object, const char *name); /* -1: not there */
