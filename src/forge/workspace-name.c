/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/workspace.h"

enum { SLUG_MAX = 40, NUMBER_MAX = 12 };

char *
workspace_slug(const char *title)
{
    GString *slug = g_string_new(NULL);

    for (const char *at = title; *at != '\0' && slug->len < SLUG_MAX; at++) {
        if (g_ascii_isalnum(*at))
            g_string_append_c(slug, g_ascii_tolower(*at));
        else if (slug->len > 0 && slug->str[slug->len - 1] != '-')
            g_string_append_c(slug, '-');
    }
    if (slug->len > 0 && slug->str[slug->len - 1] == '-')
        g_string_truncate(slug, slug->len - 1);
    if (slug->len == 0)
        g_string_append(slug, "work");
    return g_string_free(slug, FALSE);
}

/* The value of the word of `n` bytes; NULL: it has none here. */
static char *
value_of(const BranchName *name, const char *word, size_t n)
{
    const struct {
        const char *word;
        const char *value;
    } words[] = {{"id", name->id}, {"role", name->role}, {"slug", name->slug}};

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        if (strlen(words[i].word) == n && strncmp(words[i].word, word, n) == 0)
            return g_strdup(words[i].value);
    }
    return n == 1 && *word == 'n' ? g_strdup_printf("%u", name->n) : NULL;
}

static bool
fill(const BranchName *name, const char *pattern, GString *into, GError **error)
{
    for (const char *at = pattern; *at != '\0'; at++) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;

        if (*at == '{' && end == NULL)
            return err_set(error, ERR_INVALID, "the pattern '%s' has no end of a word", pattern);
        if (end == NULL) {
            g_string_append_c(into, *at);
            continue;
        }
        g_autofree char *value = value_of(name, at + 1, (size_t)(end - at) - 1);

        if (value == NULL)
            return err_set(error, ERR_INVALID, "'%.*s' of the pattern '%s' has no value here",
                           (int)(end - at) + 1, at, pattern);
        g_string_append(into, value);
        at = end;
    }
    return true;
}

char *
workspace_branch_name(const BranchName *name, GError **error)
{
    const char *standard = name->role != NULL ? WORKSPACE_BRANCH WORKSPACE_STEP : WORKSPACE_BRANCH;
    const char *pattern = name->pattern != NULL ? name->pattern : standard;
    g_autoptr(GString) text = g_string_new(NULL);

    if (strlen(pattern) > WORKSPACE_PATTERN_MAX) {
        err_set(error, ERR_INVALID, "a pattern for branches has at most %d characters",
                WORKSPACE_PATTERN_MAX);
        return NULL;
    }
    if (!fill(name, pattern, text, error) || !git_branch_is_valid(text->str, error))
        return NULL;
    return g_string_free(g_steal_pointer(&text), FALSE);
}
