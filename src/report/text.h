/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* Bytes of a terminal into lines of text: escape sequences and control characters fall out, a
 * carriage return begins the line anew, blanks at the end are cut, as is what goes past
 * TEXT_LINE_MAX.  A line has no NUL; it need not be UTF-8. */

enum { TEXT_LINE_MAX = 16 * 1024 };

typedef struct TextLines TextLines;

/* `number` counts from 0. */
typedef void (*TextLineFunc)(void *data, const char *line, guint64 number);

TextLines *text_lines_new(TextLineFunc func, void *data);
void text_lines_free(TextLines *lines);
void text_lines_feed(TextLines *lines, const guint8 *bytes, size_t n);
/* Ends a line that has begun. */
void text_lines_end(TextLines *lines);
/* Of the line that bytes go to. */
guint64 text_lines_number(const TextLines *lines);

/* Valid UTF-8 of at most `max` bytes; what is not becomes U+FFFD, control and bidirectional
 * characters a blank, so that a name cannot play tricks where it is shown. */
char *text_dup_name(const char *text, size_t max, bool *ret_cut);
/* The same for text of several lines: newlines and tabs stay, and blanks at its ends. */
char *text_dup_lines(const char *text, size_t max, bool *ret_cut);
