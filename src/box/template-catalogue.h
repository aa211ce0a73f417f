/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "box/template-recipe.h"

/* The recipes of all folders and of the program itself; the first of a name wins.  Never
 * changed once it is read; a build holds on to the one it began with. */
typedef struct Catalogue Catalogue;

enum { CATALOGUE_FILES_MAX = 1000, CATALOGUE_CHAIN_MAX = 8 };

/* Folders that are not there count as empty. */
Catalogue *catalogue_read(const char *const *folders);
/* Whether the files are still those it was read from; far cheaper than reading them. */
bool catalogue_is_current(const Catalogue *catalogue, const char *const *folders);
Catalogue *catalogue_ref(Catalogue *catalogue);
void catalogue_unref(Catalogue *catalogue);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Catalogue, catalogue_unref)

/* ERR_NOT_FOUND names those there are; ERR_INVALID says what is wrong with its recipe. */
const Recipe *catalogue_find(const Catalogue *catalogue, const char *name, GError **error);
/* The recipe and those below it, the root first; ERR_INVALID for a ring or a chain too long. */
GPtrArray *catalogue_chain(const Catalogue *catalogue, const char *name, GError **error);
/* Sorted, to be freed with g_list_free(); names are the catalogue's. */
GList *catalogue_names(const Catalogue *catalogue);

/* What comes with the program; written by tools/embed-templates. */
typedef struct CatalogueBuiltin {
    const char *file, *text;
} CatalogueBuiltin;
extern const CatalogueBuiltin catalogue_builtins[]; /* ends with NULL */
