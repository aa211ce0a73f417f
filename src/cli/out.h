/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "json/json.h"

/* What a command says.  There is one way to do it: the command builds JSON and names the
 * columns or fields that people should see.  With `-o json` the JSON is printed as it is,
 * otherwise the columns are.
 *
 * Text from elsewhere (titles, paths, messages of a server) may hold terminal escapes;
 * everything printed as text is cleaned of control characters here. */
typedef struct Out Out;

typedef enum OutFormat { OUT_TEXT, OUT_JSON } OutFormat;

typedef enum OutStyle {
    OUT_PLAIN,
    OUT_BOLD,
    OUT_DIM,
    OUT_GOOD,
    OUT_WARN,
    OUT_BAD,
    OUT_STYLE_MAX,
} OutStyle;

typedef struct OutColumn {
    const char *key;                      /* member of the object; NULL ends the list */
    const char *title;                    /* its heading */
    OutStyle (*style)(const char *value); /* NULL: plain */
} OutColumn;

/* Neither fd is owned.  `colour` is what the caller found out with out_wants_colour(). */
Out *out_new(int fd, int error_fd, OutFormat format, bool colour);
void out_free(Out *out);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Out, out_free)

/* Only on a terminal, and never when NO_COLOR is set (https://no-color.org). */
bool out_wants_colour(int fd);

OutFormat out_format(const Out *out);
/* Once the command line was understood. */
void out_set_format(Out *out, OutFormat format);

/* A list: an aligned table with headings, or the array. */
void out_table(Out *out, const OutColumn *columns, const Json *rows);
/* One line of a list that has no end: its fields separated by spaces, or one line of JSON. */
void out_row(Out *out, const OutColumn *columns, const Json *row);
/* One object: a line "Title: value" for each field that is there, or the object. */
void out_fields(Out *out, const OutColumn *fields, const Json *object);
/* For a shape of its own: the JSON in JSON format, nothing in text. */
void out_json(Out *out, const Json *value);
/* And its counterpart: a piece of text, nothing in JSON format.  No newline is added. */
void out_text(Out *out, OutStyle style, const char *fmt, ...) G_GNUC_PRINTF(3, 4);
/* The same in both formats: completion scripts and whatever else is a program's input. */
void out_raw(Out *out, const char *text);

/* To standard error: "coop: message", or {"error":{"code":...,"message":...}}. */
void out_error(Out *out, int code, const char *fmt, ...) G_GNUC_PRINTF(3, 4);
/* A remark to standard error; in JSON format as {"notice":...}. */
void out_notice(Out *out, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* False once something could not be written (a full disk): the command has then failed,
 * whatever else it did. */
bool out_ok(const Out *out);
/* Whoever read us has had enough: no failure. */
bool out_is_gone(const Out *out);

int out_fd(const Out *out); /* borrowed */

/* The text without control characters, direction overrides or bad UTF-8. */
char *out_clean(const char *text);
/* The same, but tabs stay: a line of a file. */
char *out_clean_line(const char *text);
