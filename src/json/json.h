/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

/* Strict JSON over jansson: one value, valid UTF-8, no duplicate keys, at most
 * JSON_DEPTH_MAX levels.  The size was bounded by whoever read the bytes. */
enum { JSON_DEPTH_MAX = 128, JSON_FOREIGN_DEPTH_MAX = 64 };

typedef json_t Json;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Json, json_decref)

Json *json_decode(const void *text, size_t len, GError **error);
/* The same for text that is only passed on: strings may have NUL characters in them, which C
 * strings taken from the tree hide.  At most JSON_FOREIGN_DEPTH_MAX levels and `values_max` values
 * (ERR_LIMIT): one of three bytes takes hundreds in memory.  `*ret_values`, unless NULL, is how
 * many there are at most. */
Json *
json_decode_foreign(const void *text, size_t len, size_t values_max, size_t *ret_values, GError **error);
/* Compact, members in the order they were added; never NULL. */
char *json_encode(const Json *value);

/* How one member of a request object is read.  `ret` is written only if the member is
 * there, so it is set to the default beforehand. */
typedef enum JsonKind {
    JSON_KIND_STRING, /* const char *, borrowed from the object; `min` and `max` in bytes */
    JSON_KIND_INT,    /* gint64 in min..max */
    JSON_KIND_NUMBER, /* double in min..max, whole or not */
    JSON_KIND_BOOL,   /* bool */
    JSON_KIND_OBJECT, /* json_t *, borrowed */
    JSON_KIND_ARRAY,  /* json_t *, borrowed; `max` = most elements */
} JsonKind;

typedef struct JsonField {
    const char *name; /* NULL ends the list */
    JsonKind kind;
    void *ret;
    bool required;
    gint64 min, max;
} JsonField;

/* A member that no row names is an error, so nothing can be slipped in; the message names
 * the member and what was expected. */
bool json_read(Json *object, const JsonField *fields, GError **error);
