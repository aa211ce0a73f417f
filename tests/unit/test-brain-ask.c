/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "brain/ask.h"

/* What the loop's thread gave back of JSON. */
static GThread *loop_thread;
static gint freed_by_loop, freed_elsewhere;

static void
count_free(void *bytes)
{
    if (bytes != NULL)
        g_atomic_int_inc(g_thread_self() == loop_thread ? &freed_by_loop : &freed_elsewhere);
    free(bytes);
}

static Ask *
ask_of(guint values)
{
    g_autoptr(GString) text = g_string_new("{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[");
    g_autoptr(GError) error = NULL;
    static const Route route = {.kind = ROUTE_CHAT, .dialect = DIALECT_OPENAI, .metered = true};

    for (guint i = 0; i < values; i++)
        g_string_append_printf(text, "%s%u", i > 0 ? "," : "", i);
    g_string_append(text, "]}]}");
    Ask *ask = ask_new(&route, text->str, text->len, &error);

    g_assert_no_error(error);
    return ask;
}

/* A tree of very many values is not the loop's to give back. */
static void
test_drop(void)
{
    static const struct {
        guint values;
        bool by_loop;
    } cases[] = {{10, true}, {ASK_DROP_INLINE_MAX / 4, true}, {4 * ASK_DROP_INLINE_MAX, false}};

    loop_thread = g_thread_self();
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Loop *loop = loop_new(NULL);
        Ask *ask = ask_of(cases[i].values);

        freed_by_loop = freed_elsewhere = 0;
        ask_drop(ask, loop);
        loop_free(loop); /* waits for its threads */
        g_assert_cmpint(cases[i].by_loop ? freed_elsewhere : freed_by_loop, ==, 0);
        g_assert_cmpint(freed_by_loop + freed_elsewhere, >=, (gint)cases[i].values);
    }
}

int
main(int argc, char **argv)
{
    json_set_alloc_funcs(malloc, count_free);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/brain/ask/drop", test_drop);
    return g_test_run();
}
