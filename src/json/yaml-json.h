/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "json/json.h"
#include "json/yaml.h"

/* A value as JSON: numbers, true and false are so there too, the rest is text.  NULL: a list or a map. */
Json *yaml_scalar_json(const YamlNode *node);
/* The whole tree.  YAML does not say what is a text; here all is, but what stands below a member that one of
 * `typed` (ends with NULL) names, which is as yaml_scalar_json() has it. */
Json *yaml_json(const YamlNode *node, const char *const *typed);
