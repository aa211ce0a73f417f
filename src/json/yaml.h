/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* The part of YAML that settings and templates need, as a tree: one document of plain values,
 * lists and maps.  Aliases, anchors, tags, repeated keys and a second document are refused, and
 * depth, number and length of values are bounded, so a small file stays a small tree. */

typedef struct YamlLimits {
    guint depth;     /* maps and lists in each other */
    guint values;    /* of all kinds, keys counted */
    size_t text_max; /* bytes of one value */
} YamlLimits;

typedef enum YamlKind { YAML_NULL, YAML_TEXT, YAML_LIST, YAML_MAP } YamlKind;

typedef struct YamlPlace {
    guint line, column; /* from 1 */
} YamlPlace;

typedef struct YamlNode {
    YamlKind kind;
    YamlPlace place;
    char *text;       /* YAML_TEXT, and what stood there for YAML_NULL */
    GPtrArray *items; /* YamlNode, of lists and maps */
    GPtrArray *keys;  /* YamlNode of kind YAML_TEXT, as many as items, of maps */
} YamlNode;

void yaml_node_free(YamlNode *node);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(YamlNode, yaml_node_free)

typedef struct YamlProblem {
    char *message; /* NULL: none */
    YamlPlace place;
} YamlProblem;
void yaml_problem_clear(YamlProblem *problem);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(YamlProblem, yaml_problem_clear)

/* What was read up to the first mistake; NULL: nothing, as in a file of comments.  `top` is said
 * to who wrote something else than a map. */
YamlNode *
yaml_read(const char *text, size_t len, const YamlLimits *limits, const char *top, YamlProblem *ret_problem);

/* The member of a map; NULL: none. */
const YamlNode *yaml_member(const YamlNode *map, const char *key);
