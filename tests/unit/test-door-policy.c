/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "door/policy.h"

static Policy *
make(const char *text, GError **error)
{
    g_autoptr(GError) bad = NULL;
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
    g_autoptr(Json) object = json_decode(json, strlen(json), &bad);

    g_assert_no_error(bad);
    return policy_new(object, error);
}

static void
decide(const Policy *policy, const char *authority, PolicyVerdict *ret)
{
    DoorName name;
    g_autoptr(GError) error = NULL;

    g_test_message("%s", authority);
    g_assert_true(door_name_read(authority, 0, &name, &error));
    policy_decide(policy, &name, ret);
}

#define RULES                                                                                                \
    "[{'deny': 'secret.a.test', 'source': 'box'},"                                                           \
    " {'allow': '*.a.test', 'source': 'squad'},"                                                             \
    " {'allow': 'b.test', 'ports': [443, 8443], 'inside': true, 'upgrade': true, 'plain': true},"            \
    " {'deny': '*.c.test', 'ports': [80]},"                                                                  \
    " {'allow': 'x.c.test'},"                                                                                \
    " {'allow': 'D.TEST.'},"                                                                                 \
    " {'allow': '1.2.3.4'},"                                                                                 \
    " {'allow': '[2A00::1]', 'ports': [443]},"                                                               \
    " {'deny': 'a.test'},"                                                                                   \
    " {'allow': 'a.test'}]"

static void
test_table(void)
{
    static const struct {
        const char *authority;
        bool allowed;
        const char *rule;
        bool port_only;
    } cases[] = {
        {"secret.a.test:443", false, "secret.a.test", false},
        {"more.secret.a.test:443", true, "*.a.test", false},
        {"x.a.test:443", true, "*.a.test", false},
        {"x.y.z.a.test:80", true, "*.a.test", false},
        {"x.a.test:22", false, NULL, true}, /* E8 */
        {"x.a.test:25", false, NULL, true},
        {"x.a.test:53", false, NULL, true},
        {"a.test:443", false, "a.test", false},
        {"nota.test:443", false, NULL, false},
        {"x.nota.test:443", false, NULL, false},
        {"b.test:443", true, "b.test", false},
        {"b.test:8443", true, "b.test", false},
        {"b.test:80", false, NULL, true},
        {"x.b.test:443", false, NULL, false},
        {"x.c.test:80", false, "*.c.test", false},
        {"x.c.test:443", true, "x.c.test", false},
        {"y.c.test:443", false, NULL, false},
        {"d.test:443", true, "d.test", false},
        {"1.2.3.4:443", true, "1.2.3.4", false},
        {"1.2.3.5:443", false, NULL, false},
        {"[2a00:0::1]:443", true, "2a00::1", false},
        {"[2a00::1]:80", false, NULL, true},
        {"other.example:443", false, NULL, false},
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(Policy) policy = make("{'rules': " RULES "}", &error);

    g_assert_no_error(error);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        PolicyVerdict v;

        decide(policy, cases[i].authority, &v);
        g_assert_cmpint(v.allowed, ==, cases[i].allowed);
        g_assert_cmpstr(v.rule, ==, cases[i].rule);
        g_assert_cmpint(v.port_only, ==, cases[i].port_only);
        g_assert_false(v.observed);
    }
}

static void
test_flags(void)
{
    g_autoptr(Policy) policy = make("{'rules': " RULES "}", NULL);
    PolicyVerdict v;

    decide(policy, "b.test:443", &v);
    g_assert_true(v.inside && v.upgrade && v.plain);
    decide(policy, "x.a.test:443", &v);
    g_assert_false(v.inside || v.upgrade || v.plain);
    g_assert_cmpstr(v.source, ==, "squad");
}

static void
test_modes(void)
{
    g_autoptr(Policy) observe = make("{'mode': 'observe', 'rules': " RULES "}", NULL);
    g_autoptr(Policy) deny = make("{'mode': 'deny', 'rules': " RULES "}", NULL);
    g_autoptr(Policy) empty = make("{}", NULL);
    g_autoptr(Policy) all = make("{'rules': [{'allow': '*', 'all': true}]}", NULL);
    PolicyVerdict v;

    decide(observe, "other.example:443", &v);
    g_assert_true(v.allowed && v.observed);
    decide(observe, "secret.a.test:443", &v);
    g_assert_true(v.allowed && v.observed);
    g_assert_cmpstr(v.rule, ==, "secret.a.test");
    decide(observe, "b.test:443", &v);
    g_assert_true(v.allowed && !v.observed);
    decide(deny, "b.test:443", &v);
    g_assert_false(v.allowed);
    decide(empty, "b.test:443", &v);
    g_assert_false(v.allowed);
    decide(all, "b.test:443", &v);
    g_assert_true(v.allowed);
    decide(all, "b.test:22", &v);
    g_assert_false(v.allowed);
    decide(all, "1.2.3.4:443", &v); /* an address has to be named */
    g_assert_false(v.allowed);
    decide(all, "[2a00::1]:443", &v);
    g_assert_false(v.allowed);
}

static void
test_refused(void)
{
    static const char *const refused[] = {
        "{'mode': 'open'}",
        "{'rules': [{}]}",
        "{'rules': [{'allow': 'a.test', 'deny': 'b.test'}]}",
        "{'rules': [{'allow': '*'}]}",
        "{'rules': [{'allow': '*.*.test'}]}",
        "{'rules': [{'allow': 'a*.test'}]}",
        "{'rules': [{'allow': '*test'}]}",
        "{'rules': [{'allow': '*.1.2.3.4'}]}",
        "{'rules': [{'allow': '*.2a00::1'}]}",
        "{'rules': [{'allow': '127.1'}]}",
        "{'rules': [{'allow': 'a.test:443'}]}",
        "{'rules': [{'allow': '[2a00::1]:443'}]}",
        "{'rules': [{'allow': 'a.test/x'}]}",
        "{'rules': [{'allow': ''}]}",
        "{'rules': [{'allow': 'a.test', 'ports': []}]}",
        "{'rules': [{'allow': 'a.test', 'ports': [0]}]}",
        "{'rules': [{'allow': 'a.test', 'ports': [65536]}]}",
        "{'rules': [{'allow': 'a.test', 'ports': ['443']}]}",
        "{'rules': [{'allow': 'a.test', 'ports': [1,2,3,4,5,6,7,8,9]}]}",
        "{'rules': [{'allow': 'a.test', 'port': 443}]}",
        "{'rules': ['a.test']}",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = NULL;

        g_test_message("%s", refused[i]);
        g_assert_null(make(refused[i], &error));
        g_assert_error(error, ERR_DOMAIN, ERR_INVALID);
    }
}

static void
test_warnings(void)
{
    static const char *const warned[] = {"*", "*.com", "*.org.", "*.github.io", "*.AmazonAWS.com", "*.co.uk"};
    static const char *const fine[] = {"github.io", "*.example.org", "x.amazonaws.com", "*.x.amazonaws.com"};

    for (size_t i = 0; i < G_N_ELEMENTS(warned); i++)
        g_assert_nonnull(policy_pattern_warning(warned[i]));
    for (size_t i = 0; i < G_N_ELEMENTS(fine); i++)
        g_assert_null(policy_pattern_warning(fine[i]));
    g_assert_true(policy_pattern_check("*", NULL));
    g_assert_true(policy_pattern_check("2a00::1", NULL));
}

static Policy *
make_large(void)
{
    g_autoptr(Json) rules = json_array();
    g_autoptr(Json) object = json_object();
    g_autoptr(GError) error = NULL;

    for (int i = 0; i < POLICY_RULES_MAX; i++) {
        g_autofree char *pattern = g_strdup_printf("%shost-%d.example.test", i % 2 == 0 ? "*." : "", i);

        json_array_append_new(rules, json_pack("{s:s}", "allow", pattern));
    }
    json_object_set(object, "rules", rules);
    Policy *policy = policy_new(object, &error);
    g_assert_no_error(error);
    return policy;
}

/* Far more than a decision takes, and far less than trying 512 rules would take in this build. */
static void
test_speed(void)
{
    enum { TIMES = 2000, DECISION_US = 20 };
    g_autoptr(Policy) policy = make_large();
    g_autoptr(GString) deep = g_string_new(NULL);
    gint64 best = G_MAXINT64;
    DoorName name;
    PolicyVerdict v;

    for (int i = 0; i < 100; i++)
        g_string_append(deep, "a.");
    g_string_append(deep, "host-510.example.test:443");
    g_assert_true(door_name_read(deep->str, 0, &name, NULL));
    for (int round = 0; round < 5; round++) {
        gint64 start = clock_mono_us();

        for (int i = 0; i < TIMES; i++)
            policy_decide(policy, &name, &v);
        best = MIN(best, clock_mono_us() - start);
    }
    g_assert_true(v.allowed);
    g_test_message("%.3f us", (double)best / TIMES);
    g_assert_cmpint(best, <, TIMES * DECISION_US);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/door/policy/E8-table", test_table);
    g_test_add_func("/door/policy/flags", test_flags);
    g_test_add_func("/door/policy/modes", test_modes);
    g_test_add_func("/door/policy/refused", test_refused);
    g_test_add_func("/door/policy/warnings", test_warnings);
    g_test_add_func("/door/policy/speed", test_speed);
    return g_test_run();
}
