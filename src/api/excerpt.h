/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* What is kept of an output that may have no end, for an answer that is text: its beginning
 * and its end, since the first error and the last summary are what people look for. */
typedef struct Excerpt {
    GByteArray *head, *tail;
    size_t half;     /* most bytes of each */
    guint64 dropped; /* bytes between them */
    bool gap;        /* some of those were missing already when they came */
} Excerpt;

void excerpt_init(Excerpt *excerpt, size_t max);
void excerpt_clear(Excerpt *excerpt);
void excerpt_add(Excerpt *excerpt, const guint8 *bytes, size_t n);
/* So many bytes never came. */
void excerpt_skip(Excerpt *excerpt, guint64 n);

/* Bytes it holds. */
size_t excerpt_size(const Excerpt *excerpt);
bool excerpt_is_cut(const Excerpt *excerpt);
/* UTF-8 without NUL: what is neither is replaced, and a line says how much was left out. */
char *excerpt_dup_text(const Excerpt *excerpt);
