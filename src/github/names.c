/* SPDX-License-Identifier: Apache-2.0 */
#include "github/names.h"

#include <string.h>

#include "github/text.h"

static const char theirs[] = "github:";

static int
compare(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Takes `names`, of borrowed strings. */
static Json *
sorted(GPtrArray *names)
{
    Json *list = json_array();

    g_ptr_array_sort(names, compare);
    for (guint i = 0; i < names->len; i++)
        json_array_append_new(list, json_string(names->pdata[i]));
    g_ptr_array_unref(names);
    return list;
}

static GPtrArray *
read_names(const Json *list, const char *member, const char *start)
{
    GPtrArray *names = g_ptr_array_new();
    size_t i;
    Json *item;

    json_array_foreach(list, i, item)
    {
        const char *name = github_text(item, member);

        if (name != NULL && g_str_has_prefix(name, start) && names->len < NAMES_MAX)
            g_ptr_array_add(names, (gpointer)(guintptr)(name + strlen(start)));
    }
    return names;
}

Json *
names_of(const Json *list, const char *member)
{
    return sorted(read_names(list, member, ""));
}

Json *
names_of_theirs(const Json *people)
{
    return sorted(read_names(people, "actor", theirs));
}

static bool
has(const Json *list, const char *name)
{
    g_autofree char *folded = g_utf8_casefold(name, -1);
    size_t i;
    Json *item;

    json_array_foreach(list, i, item)
    {
        g_autofree char *other = g_utf8_casefold(json_string_value(item), -1);

        if (strcmp(folded, other) == 0)
            return true;
    }
    return false;
}

Json *
names_minus(const Json *a, const Json *b)
{
    Json *left = json_array(), *item;
    size_t i;

    json_array_foreach(a, i, item)
    {
        if (!has(b, json_string_value(item)))
            json_array_append(left, item);
    }
    return left;
}
