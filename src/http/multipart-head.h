/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* The texts around the parts of a multipart/form-data body; multipart.c reads the stream. */

/* The boundary that a Content-Type names; NULL with ERR_INVALID. */
char *multipart_boundary(const char *content_type, GError **error);

typedef struct PartHead {
    char *name;
    char *filename;
    char *content_type;
} PartHead;

/* `lines` is a part's head, each line ended by CRLF, no other CR, LF or NUL in it.  The head is
 * to be cleared either way. */
bool part_head_parse(const char *lines, PartHead *ret_head, GError **error);
void part_head_clear(PartHead *head);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(PartHead, part_head_clear)
