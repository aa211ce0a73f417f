/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/spawn.h"
#include "box/template-catalogue.h"
#include "box/template.h"

/* Names in the store's folder:
 *
 *     <40 hex>          a layer
 *     <40 hex>.layer    which layer a recipe on these lowers has given, and its size and versions
 *     <name>.json       the template of that name
 *     <40 hex>.old      a template that boxes may still use, by its hash
 *     <40 hex>.tmp-*    being made, or being removed
 *     cache/            packages
 */
enum { TEMPLATE_HASH_LEN = 40 };

/* A template with what only this folder knows of it. */
typedef struct TemplateFull {
    Template t; /* first: what others hold */
    gatomicrefcount refs;
    TemplateStore *store; /* NULL: it is gone */
    char *key;            /* of its uppermost layer */
    Json *record;         /* as it is written; owns most texts of `t` */
    bool retired;
} TemplateFull;

/* The program that builds, and the user namespace it works in. */
typedef struct TemplateBuilder {
    char *path;
    int space_fd; /* borrowed; up to 0: none */
} TemplateBuilder;

/* ---- template-plan.c ---- */

/* Everything that goes into a layer, hashed; `lowers` top first, NULL-terminated; `sudo`: the
 * hash of the program that is put into those that have it. */
char *template_key(const Recipe *recipe, const char *const *lowers, const char *sudo);
/* For the builder; the caller adds folder and work. */
Json *template_plan(GPtrArray *chain, guint i, const char *key, const char *const *lowers, bool fresh);

/* ---- template-record.c ---- */

typedef struct TemplateLayer {
    char *hash;
    guint64 size;
    Json *versions;
    gint64 built_us;
} TemplateLayer;
void template_layer_free(TemplateLayer *layer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TemplateLayer, template_layer_free)
/* The layer a key stands for; NULL: not there. */
TemplateLayer *template_layer_find(const char *folder, const char *key);

/* The record of a template whose layers are all there; `layers` top first. */
Json *template_record_new(GPtrArray *chain, const char *key, GPtrArray *layers);
/* Takes the record; NULL: it is not one. */
TemplateFull *template_full_new(TemplateStore *store, Json *record);
/* Reads it; NULL: not there, or its layers are not. */
TemplateFull *template_full_read(TemplateStore *store, const char *folder, const char *file);

/* ---- template-build.c ---- */

typedef struct TemplateBuild TemplateBuild;
typedef struct TemplateBuildSpec {
    TemplateStore *store;
    Loop *loop;
    const char *folder, *sudo, *sudo_hash;
    const TemplateBuilder *builder; /* outlives the build */
    Catalogue *catalogue;           /* a reference is taken */
    const char *name;
    bool again;
    void (*progress)(TemplateBuild *build, void *data);
    /* The record of a template below it that was made on the way; the callee's. */
    void (*made)(TemplateBuild *build, Json *record, void *data);
    /* `record` is the callee's; NULL with an error.  The build may be freed inside. */
    void (*done)(TemplateBuild *build, Json *record, const GError *error, void *data);
    void *data;
} TemplateBuildSpec;
TemplateBuild *template_build_new(const TemplateBuildSpec *spec, GPtrArray *chain);
void template_build_start(TemplateBuild *build); /* `done` comes from the loop */
void template_build_free(TemplateBuild *build);  /* stops it */
const TemplateProgress *template_build_progress(const TemplateBuild *build);
bool template_build_is_again(const TemplateBuild *build);

/* ---- template-store.c ---- */
void template_store_forget(TemplateStore *store, TemplateFull *full); /* nobody holds it any more */

/* ---- template-sweep.c ---- */

/* Removes folders that are left from builds; in the background. */
void template_sweep_stale(Loop *loop, const char *folder, const TemplateBuilder *builder);
/* Layers that no record names and that are not in `used` (hash set). */
void template_sweep_layers(Loop *loop, const char *folder, const TemplateBuilder *builder, GHashTable *used);
/* Starts it with a plan; `stdout_fd` is borrowed. */
Child *template_builder_spawn(const TemplateBuilder *builder, const char *plan, int stdout_fd,
                              ChildExitFunc on_exit, void *data, GError **error);
