/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* The part of YAML that a configuration needs: one document, sections, plain values and
 * lists of plain values.  Aliases, tags, deeper nesting and repeated keys are refused, so a
 * small file stays a small configuration. */

enum {
    CONFIG_FILE_MAX = 64 * 1024, /* bytes */
    CONFIG_DEPTH_MAX = 4,        /* sections in sections */
    CONFIG_VALUES_MAX = 1000,    /* values in one file, list items counted */
};

typedef struct ConfigPlace {
    guint line, column; /* from 1 */
} ConfigPlace;

typedef struct ConfigYamlSink {
    /* `texts` is NULL-terminated; one text unless `is_list`. */
    void (*value)(const char *name, const char *const *texts, bool is_list, ConfigPlace place, void *data);
    void (*problem)(const char *message, ConfigPlace place, void *data);
    void *data;
} ConfigYamlSink;

/* Values are handed on as they are read, until a mistake after which the rest of the file
 * has no certain meaning. */
void config_yaml_read(const char *text, size_t len, const ConfigYamlSink *sink);
