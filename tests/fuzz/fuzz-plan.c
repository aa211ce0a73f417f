/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "team/council.h"

/* What a model said, in each phase of a plan. */

static void
check_words(const char *text)
{
    g_assert(g_utf8_validate(text, -1, NULL));
    for (const char *p = text; *p != '\0'; p += g_utf8_skip[(guchar)*p])
        g_assert(*p == '\n' || *p == '\t' || !g_unichar_iscntrl(g_utf8_get_char(p)));
}

/* What was taken is taken again as it is, and is shown without tricks. */
static void
check_plan(Json *plan)
{
    g_autoptr(Json) again = plan_check(plan, NULL);

    g_assert(again != NULL && json_equal(plan, again));
    g_autofree char *text = plan_format(plan, "asked");

    check_words(text);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    static const char *const phases[] = {"brain", "opinion", "ranking", "synthesis"};
    static const guint order[] = {3, 1, 2};
    g_autofree char *text = g_strndup((const char *)data, n);

    for (size_t i = 0; i < G_N_ELEMENTS(phases); i++) {
        g_autoptr(Json) voice = json_object();

        voice_read(phases[i], text, order, G_N_ELEMENTS(order), voice);
        Json *body = json_object_get(voice, "body");

        check_words(json_string_value(json_object_get(voice, "text")));
        g_assert((body != NULL) == (json_object_get(voice, "problem") == NULL));
        if (body == NULL)
            check_words(json_string_value(json_object_get(voice, "problem")));
        else if (strcmp(phases[i], "ranking") == 0)
            g_assert(json_array_size(body) == G_N_ELEMENTS(order));
        else
            check_plan(strcmp(phases[i], "opinion") == 0 ? body : json_object_get(body, "plan"));
    }
}
