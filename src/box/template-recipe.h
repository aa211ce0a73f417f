/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "wire/record.h"
#include "json/yaml.h"

/* How a template is made, as its YAML says.  A recipe is checked when it is read: every text in
 * it is safe to hand to a program as an argument. */

enum {
    RECIPE_NAME_MAX = 63,
    RECIPE_FILE_MAX = 256 * 1024, /* bytes of YAML */
    RECIPE_TEXT_MAX = 64 * 1024,  /* of one value */
    RECIPE_VALUES_MAX = 4000,
    RECIPE_DEPTH_MAX = 5,
    RECIPE_LIST_MAX = 500,
};

typedef struct RecipeFile {
    char *path, *content;
    guint mode;
} RecipeFile;

typedef struct RecipeCheck {
    char *command, *want; /* its output begins like this */
} RecipeCheck;

/* -1: as the template below says */
typedef enum RecipeFlag { RECIPE_UNSET = -1, RECIPE_OFF, RECIPE_ON } RecipeFlag;

typedef struct Recipe {
    char *name, *description;
    char *root;   /* "debian", "host", "folder"; NULL: stands on `from` */
    char *folder; /* what is copied */
    char *from;
    char **packages, **npm, **pip, **commands, **env; /* never NULL */
    char *node;                                       /* the promised major version; NULL: any */
    char *go, *go_amd64, *go_arm64;                   /* version, and what its module hashes to */
    GPtrArray *files, *verify;                        /* RecipeFile, RecipeCheck */
    char *user, *workdir, *test;                      /* NULL: as the one below */
    KeeperLimits limits;
    RecipeFlag sudo, low_ports;
} Recipe;

void recipe_free(Recipe *recipe);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Recipe, recipe_free)

bool recipe_name_is_valid(const char *name);

/* What one file says: recipes, and for those with a mistake a message with file and line. */
typedef struct RecipeSink {
    void (*recipe)(Recipe *recipe, void *data); /* the callee's */
    void (*problem)(const char *name, const char *message, void *data);
    void *data;
} RecipeSink;
/* `file` is for messages; a file without `name:` has the name of its file. */
void recipe_read(const char *text, size_t len, const char *file, const RecipeSink *sink);

/* The form with `templates:` and below it roles with base, packages and tools. */
bool recipe_from_role(const char *name, const YamlNode *role, const char *file, Recipe **ret_recipe,
                      GError **error);

/* For both forms: false, with "FILE:LINE:COLUMN: message". */
bool
recipe_fail(const char *file, const YamlNode *node, GError **error, const char *fmt, ...) G_GNUC_PRINTF(4, 5);
Recipe *recipe_new(const char *name);
/* The texts of a list that all match; `what` is named in messages. */
bool recipe_read_list(const YamlNode *node, const char *file, const char *what, const char *pattern,
                      char ***ret_texts, GError **error);
extern const char RECIPE_NPM_PATTERN[], RECIPE_PIP_PATTERN[], RECIPE_DEBIAN_PATTERN[];
