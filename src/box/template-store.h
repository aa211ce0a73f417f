/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/template-private.h"

/* The inside of the store, for its own files. */
struct TemplateStore {
    Loop *loop;
    char *folder, *sudo, *sudo_hash;
    TemplateBuilder builder;
    char **catalogues;
    Catalogue *catalogue;
    GHashTable *built;  /* name -> TemplateFull, one reference each */
    GHashTable *all;    /* every TemplateFull that somebody holds */
    GPtrArray *retired; /* TemplateFull, one reference each */
    GHashTable *failed; /* name -> why */
    GQueue builds;      /* StoreBuild; the first one runs */
    int lock_fd;        /* on the folder, while builds are there */
    bool may_collect;
    void (*changed)(const char *name, void *ctx);
    void *ctx;
};

void store_sweep(TemplateStore *store);
void store_put(TemplateStore *store, Json *record);
void store_drop(TemplateStore *store, TemplateFull *full);
void store_read_catalogue(TemplateStore *store);

/* template-queue.c */
const TemplateBuild *store_find_build(TemplateStore *store, const char *name);
void store_cancel_builds(TemplateStore *store);
