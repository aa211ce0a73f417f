/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* The tags of an XML text, as they come.  It is no check of the text: comments, CDATA,
 * declarations and what is between tags are skipped, entities are never defined. */

enum { XML_TAG_MAX = 8 * 1024 }; /* of a tag the rest is skipped */

typedef struct XmlTag {
    bool open, close; /* both: <tag/> */
    const char *name;
    const char *attributes; /* for xml_dup_attribute() */
} XmlTag;

typedef void (*XmlTagFunc)(void *data, const XmlTag *tag);

typedef struct XmlTags XmlTags;
XmlTags *xml_tags_new(XmlTagFunc func, void *data);
void xml_tags_free(XmlTags *tags);
void xml_tags_put(XmlTags *tags, guint8 c);

/* Decoded; NULL: it has none of that name. */
char *xml_dup_attribute(const char *attributes, const char *name);
