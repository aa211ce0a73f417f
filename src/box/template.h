/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "wire/record.h"
#include "json/json.h"

/* What boxes start from.
 *
 * The *catalogue* says how templates are made: YAML files, those that come with Coop and those
 * of the data folder, the latter first.  The *store* is a folder of layers, each named by the
 * hash of everything it was made from, and beside it one JSON file for each template that is
 * built.  A build is done by an unprivileged program of its own in a user namespace; its result
 * appears by rename, whole or not at all.  Layers are never changed afterwards; one that no
 * template names and no box uses is removed. */
typedef struct TemplateStore TemplateStore;

typedef struct TemplateStoreSpec {
    Loop *loop;
    const char *folder;            /* layers and records */
    const char *const *catalogues; /* folders with *.yaml, first wins; NULL-terminated */
    const char *builder;           /* path of the program that builds */
    int space_fd;                  /* user namespace for it, borrowed; up to 0: it makes its own */
    /* A build changed state or has moved on. */
    void (*changed)(const char *name, void *ctx);
    void *ctx;
} TemplateStoreSpec;

TemplateStore *template_store_new(const TemplateStoreSpec *spec, GError **error);
void template_store_free(TemplateStore *store); /* builds under way are stopped and leave nothing */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TemplateStore, template_store_free)

/* Immutable and shared: a box keeps a reference, which keeps the layers from being removed. */
typedef struct Template {
    const char *name;
    const char *hash;          /* of the whole */
    const char *const *layers; /* top first */
    guint n_layers;
    const char *user, *workdir; /* of commands */
    const char *const *env;     /* "NAME=value", NULL-terminated; PATH and HOME among them */
    const char *test_command;   /* NULL: none */
    KeeperLimits limits;        /* 0 in a field: the server's default */
    bool sudo, low_ports;
    gint64 built_us;
    guint64 size_bytes; /* of its layers */
} Template;
Template *template_ref(Template *t);
void template_unref(Template *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Template, template_unref)

/* The caller owns a reference.  NULL: ERR_NOT_FOUND (no such name; the message lists those
 * there are), ERR_UNAVAILABLE (known, not built: the message tells how far a build is, or how
 * to start one, or why the last one failed). */
Template *template_store_get(TemplateStore *store, const char *name, GError **error);
/* By the hash of the whole, also one that an update or a removal has retired: for boxes that
 * were there before the server.  NULL: its layers are gone. */
Template *template_store_find(TemplateStore *store, const char *hash);
/* Every box has its reference: what is retired and nobody holds may go.  Until it was called
 * once, nothing is removed. */
void template_store_collect(TemplateStore *store);

typedef struct TemplateProgress {
    const char *name;
    const char *step; /* "packages", "commands", … */
    guint percent;
    const char *line; /* the builder's newest line; NULL: none */
} TemplateProgress;
typedef void (*TemplateProgressFunc)(const TemplateProgress *progress, void *data);
typedef void (*TemplateDoneFunc)(Template *t, const GError *error, void *data);
/* Nothing is done when what is built is still what the catalogue says, unless `again` (an
 * update: package lists are read anew).  A build under way is joined. */
void template_store_build(TemplateStore *store, const char *name, bool again, TemplateProgressFunc progress,
                          TemplateDoneFunc done, void *data);
/* ERR_CONFLICT: boxes use it, or another template stands on it. */
bool template_store_remove(TemplateStore *store, const char *name, GError **error);

/* Of everything in catalogue and store: name, state (built, building, failed, available),
 * age, size, versions, … as the API shows it. */
Json *template_store_list(TemplateStore *store);
Json *template_store_show(TemplateStore *store, const char *name, GError **error);
