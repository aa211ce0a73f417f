/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/generation.h"

/* What the files generation*.c share. */

void generation_free(Generation *generation);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Generation, generation_free)
/* HOME/generations */
char *generation_dup_folder(const char *home);

/* ---- generation-make.c: blocks ---- */

/* Fills tips and bytes of `ret`, whose id says the folder's name below `folder`. */
bool generation_make(GitRepo *git, const char *folder, Generation *ret, GError **error);

/* ---- generation-rows.c ---- */

/* `generation` is copied. */
void generation_row_add(Forge *forge, const Generation *generation, DbDone done, void *data);
void generation_row_ready(Forge *forge, const Generation *generation, DbDone done, void *data);
/* The row, then the folder. */
void generation_row_remove(Forge *forge, const char *id);

/* Those that are whole, in the order in which they were made; owned by the callee.  What else there is
 * of rows and folders is removed. */
typedef void (*GenerationLoadFunc)(GPtrArray *generations, const GError *error, void *data);
void generation_rows_load(Forge *forge, GenerationLoadFunc done, void *data);
