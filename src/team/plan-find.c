/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "team/mind.h"
#include "team/plan.h"

/* Each try reads to the end of the text at most. */
enum { FIND_TRIES_MAX = 64 };

/* Behind the brace that closes the one at `text`; NULL: none does. */
static const char *
find_end(const char *text)
{
    bool in_string = false;
    guint depth = 0;

    for (const char *p = text; *p != '\0'; p++) {
        if (in_string && *p == '\\' && p[1] != '\0')
            p++;
        else if (*p == '"')
            in_string = !in_string;
        else if (!in_string && *p == '{')
            depth++;
        else if (!in_string && *p == '}' && --depth == 0)
            return p + 1;
    }
    return NULL;
}

Json *
plan_find(const char *text, GError **error)
{
    g_autoptr(GError) problem = NULL;
    g_autoptr(Json) found = NULL;
    size_t longest = 0, problem_len = 0;
    const char *p = strlen(text) <= MIND_ANSWER_MAX ? strchr(text, '{') : NULL;

    for (guint i = 0; p != NULL && i < FIND_TRIES_MAX; i++) {
        g_autoptr(GError) why = NULL;
        const char *end = find_end(p);
        size_t n = end != NULL ? (size_t)(end - p) : 0;
        g_autoptr(Json) value = n > longest ? json_decode(p, n, &why) : NULL;

        if (value != NULL) {
            json_decref(found);
            found = g_steal_pointer(&value);
            longest = n;
        } else if (why != NULL && n > problem_len) {
            g_clear_error(&problem);
            problem = g_steal_pointer(&why);
            problem_len = n;
        }
        /* What is inside an object that was read is no other one. */
        p = strchr(n > 0 && longest == n ? end : p + 1, '{');
    }
    if (found == NULL)
        err_set(error, ERR_INVALID, "%s",
                problem != NULL ? problem->message : "there is no JSON object in it");
    return g_steal_pointer(&found);
}
