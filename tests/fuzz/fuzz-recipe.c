/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/path.h"
#include "box/template-private.h"
#include "fuzz.h"

/* The input is the YAML of a template.  It gives recipes in which nothing can be taken for an
 * option or leads out of the root, or mistakes with their place in the file. */

static void
check_words(char **words)
{
    for (guint i = 0; words[i] != NULL; i++) {
        g_assert_cmpint(words[i][0], !=, '-');
        g_assert_null(strpbrk(words[i], " \t\n/'\"") != NULL && words[i][0] != '@' ? words[i] : NULL);
    }
}

static void
on_recipe(Recipe *r, void *data)
{
    static const char *const lowers[] = {NULL};
    g_autofree char *key = template_key(r, lowers, "");

    g_assert_true(recipe_name_is_valid(r->name));
    g_assert_true((r->root == NULL) != (r->from == NULL));
    check_words(r->packages);
    check_words(r->npm);
    check_words(r->pip);
    for (guint i = 0; i < r->files->len; i++)
        g_assert_true(path_is_normal(((const RecipeFile *)r->files->pdata[i])->path));
    g_assert_cmpuint(strlen(key), ==, TEMPLATE_HASH_LEN);
    recipe_free(r);
}

static void
on_problem(const char *name, const char *message, void *data)
{
    g_assert_true(g_str_has_prefix(message, "fuzz.yaml:"));
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    if (cut != n || n > RECIPE_FILE_MAX) /* it is read whole */
        return;
    recipe_read((const char *)data, n, "fuzz.yaml", &(RecipeSink){on_recipe, on_problem, NULL});
}
