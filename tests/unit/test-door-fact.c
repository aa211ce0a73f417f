/* SPDX-License-Identifier: Apache-2.0 */
#include "door/fact.h"
#include "support/fake-clock.h"

enum { WINDOW_S = 11 };

static Json *
verdict(const char *kind, const char *box, const char *host)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:i}", "kind", kind, "box", box, "host", host, "port", 443,
                     "bytes_in", 5);
}

static json_int_t
number(Json *fact, const char *name)
{
    return json_integer_value(json_object_get(fact, name));
}

static guint
count(FactLog *log)
{
    guint n = 0;

    for (Json *fact = fact_log_next(log, 0); fact != NULL;
         fact = fact_log_next(log, (guint64)number(fact, "n")))
        n++;
    return n;
}

static void
on_new(void *data)
{
    (*(guint *)data)++;
}

static void
test_numbers(void)
{
    g_autoptr(FactLog) log = fact_log_new();
    guint heard = 0;

    fact_log_on_new(log, on_new, &heard);
    g_assert_null(fact_log_next(log, 0));
    for (int i = 0; i < 3; i++)
        fact_log_add(log, json_pack("{s:s, s:s}", "kind", "model.called", "box", "b"));
    g_assert_cmpuint(heard, ==, 3);
    g_assert_cmpint(number(fact_log_next(log, 0), "n"), ==, 1);
    g_assert_cmpint(number(fact_log_next(log, 2), "n"), ==, 3);
    g_assert_null(fact_log_next(log, 3));
    fact_log_ack(log, 2);
    g_assert_cmpint(number(fact_log_next(log, 0), "n"), ==, 3);
    fact_log_ack(log, 99);
    g_assert_null(fact_log_next(log, 0));
    fact_log_add(log, json_pack("{s:s, s:s}", "kind", "model.called", "box", "b"));
    g_assert_cmpint(number(fact_log_next(log, 0), "n"), ==, 4);
}

static void
test_same_verdicts(void)
{
    g_autoptr(FactLog) log = fact_log_new();

    for (int i = 0; i < 1000; i++)
        fact_log_add(log, verdict("door.denied", "b", "x"));
    fact_log_add(log, verdict("door.denied", "b", "y"));
    fact_log_add(log, verdict("door.denied", "c", "x"));
    fact_log_add(log, verdict("door.allowed", "b", "x"));
    fact_log_settle(log);
    g_assert_cmpuint(count(log), ==, 4);
    g_assert_null(json_object_get(fact_log_next(log, 0), "count"));
    fake_clock_forward(WINDOW_S);
    fact_log_settle(log);
    g_assert_cmpuint(count(log), ==, 5);
    Json *folded = fact_log_next(log, 4);

    g_assert_cmpint(number(folded, "count"), ==, 999);
    g_assert_cmpint(number(folded, "bytes_in"), ==, 999 * 5);
    fake_clock_forward(WINDOW_S);
    fact_log_settle(log);
    fact_log_add(log, verdict("door.denied", "b", "x"));
    g_assert_cmpuint(count(log), ==, 6);
}

static void
test_full(void)
{
    g_autoptr(FactLog) log = fact_log_new();

    for (int i = 0; i < FACTS_MAX; i++)
        fact_log_add(log, json_pack("{s:s, s:s}", "kind", "model.called", "box", "b"));
    g_assert_true(fact_log_is_full(log));
    for (int i = 0; i < 10; i++)
        fact_log_add(log, verdict("door.denied", "b", "x"));
    g_assert_cmpuint(count(log), ==, FACTS_MAX);
    /* What was under way when it became full is not lost. */
    fact_log_add(log, json_pack("{s:s, s:s}", "kind", "model.called", "box", "b"));
    g_assert_cmpuint(count(log), ==, FACTS_MAX + 1);
    fact_log_ack(log, FACTS_MAX + 1);
    g_assert_false(fact_log_is_full(log));
    fake_clock_forward(WINDOW_S);
    fact_log_settle(log);
    g_assert_cmpint(number(fact_log_next(log, 0), "count"), ==, 10);
}

static void
test_bounds(void)
{
    g_autoptr(FactLog) log = fact_log_new();
    g_autofree char *huge = g_strnfill(FACT_SIZE_MAX, 'x');

    fact_log_add(log, json_pack("{s:s, s:s, s:s}", "kind", "model.called", "box", "b", "error", huge));
    Json *fact = fact_log_next(log, 0);

    g_assert_cmpstr(json_string_value(json_object_get(fact, "box")), ==, "b");
    g_assert_true(json_is_true(json_object_get(fact, "cut")));
    g_assert_null(json_object_get(fact, "error"));
    for (int i = 0; i < 10 * FACTS_MAX; i++) {
        g_autofree char *host = g_strdup_printf("h%d", i);

        fact_log_add(log, verdict("door.denied", "b", host));
    }
    g_assert_cmpuint(count(log), <=, 2 * FACTS_MAX);
}

/* A box that asks for ever new places takes no other box's room. */
static void
test_many_places(void)
{
    enum { PLACES = 6000, OWN = 64 };
    g_autoptr(FactLog) log = fact_log_new();

    for (int i = 0; i < PLACES; i++) {
        g_autofree char *host = g_strdup_printf("h%d", i);

        fact_log_add(log, verdict("door.denied", "b", host));
    }
    g_assert_cmpuint(count(log), ==, OWN);
    fact_log_add(log, verdict("door.denied", "c", "x"));
    Json *told = fact_log_next(log, OWN);

    g_assert_cmpstr(json_string_value(json_object_get(told, "box")), ==, "c");
    g_assert_null(json_object_get(told, "forgotten"));
    fake_clock_forward(WINDOW_S);
    fact_log_settle(log);
    Json *others = fact_log_next(log, OWN + 1);

    g_assert_cmpint(number(others, "count"), ==, PLACES - OWN);
    g_assert_cmpint(number(others, "bytes_in"), ==, (PLACES - OWN) * 5);
    g_assert_cmpstr(json_string_value(json_object_get(others, "host")), ==, "*");
    g_assert_true(json_is_true(json_object_get(others, "others")));
    fact_log_add(log, verdict("door.denied", "b", "y")); /* its room is free again */
    g_assert_cmpuint(count(log), ==, OWN + 3);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/door/fact/numbers", test_numbers);
    g_test_add_func("/door/fact/many-places", test_many_places);
    g_test_add_func("/door/fact/same-verdicts", test_same_verdicts);
    g_test_add_func("/door/fact/full", test_full);
    g_test_add_func("/door/fact/bounds", test_bounds);
    return g_test_run();
}
