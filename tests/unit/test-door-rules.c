/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "door/rules.h"
#include "support/store.h"

typedef struct Wait {
    bool done;
    GError *error;
} Wait;

static void
on_changed(void *ctx)
{
    (*(guint *)ctx)++;
}

static void
on_done(void *data, const GError *error)
{
    Wait *w = data;

    w->done = true;
    w->error = error != NULL ? g_error_copy(error) : NULL;
}

/* NULL: it was done. */
static GError *
set(DoorRules *r, RuleScope scope, const char *id, const char *text)
{
    g_autoptr(Json) change = json_decode(text, strlen(text), NULL);
    Wait w = {0};

    door_rules_set_limits(r, scope, id, change, on_done, &w);
    while (!w.done)
        g_main_context_iteration(NULL, TRUE);
    return w.error;
}

static void
set_well(DoorRules *r, RuleScope scope, const char *id, const char *text)
{
    g_autoptr(GError) error = set(r, scope, id, text);

    g_assert_no_error(error);
}

static DoorLimits
limits_of(const DoorRules *r, const char *box)
{
    DoorLimits limits;

    door_rules_limits(r, box, "crew", "base", &limits);
    return limits;
}

static const DoorLimits usual = {
    .bytes_per_day = 1000, .bytes_per_s = 0, .requests_per_min = 60, .lookups_per_min = 6};
static const DoorLimits max = {.bytes_per_day = 5000, .requests_per_min = 600};

/* Each bound by itself is that of the nearest scope. */
static void
test_limits_nearest(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    guint changes = 0;
    DoorRules *r = door_rules_new(b->db, on_changed, &changes);

    door_rules_bound(r, &usual, &max);
    g_assert_cmpuint(limits_of(r, "one").bytes_per_day, ==, 1000);
    set_well(r, RULE_SERVER, "", "{\"bytes_per_day\": 2000, \"lookups_per_min\": 7}");
    set_well(r, RULE_TEMPLATE, "base", "{\"bytes_per_day\": 3000}");
    set_well(r, RULE_SQUAD, "crew", "{\"requests_per_min\": 80}");
    set_well(r, RULE_BOX, "one", "{\"bytes_per_day\": 4000}");
    g_assert_cmpuint(changes, ==, 4);
    g_assert_cmpuint(limits_of(r, "one").bytes_per_day, ==, 4000);
    g_assert_cmpuint(limits_of(r, "two").bytes_per_day, ==, 3000);
    g_assert_cmpuint(limits_of(r, "two").requests_per_min, ==, 80);
    g_assert_cmpuint(limits_of(r, "two").lookups_per_min, ==, 7);
    g_assert_cmpuint(limits_of(r, "two").bytes_per_s, ==, 0);
    /* One is added to those of a scope, one taken back; the box goes and its own with it. */
    set_well(r, RULE_TEMPLATE, "base", "{\"bytes_per_day\": null, \"bytes_per_s\": 9}");
    g_assert_cmpuint(limits_of(r, "two").bytes_per_day, ==, 2000);
    g_assert_cmpuint(limits_of(r, "two").bytes_per_s, ==, 9);
    door_rules_forget_box(r, "one");
    g_assert_cmpuint(limits_of(r, "one").bytes_per_day, ==, 2000);
    door_rules_free(r);
}

static void
test_limits_kept(void)
{
    g_autoptr(StoreBench) b = store_bench_new_open();
    guint changes = 0;
    DoorRules *r = door_rules_new(b->db, on_changed, &changes);
    DoorLimits lower = {.bytes_per_day = 1500};
    Wait w = {0};

    door_rules_bound(r, &usual, &max);
    set_well(r, RULE_SERVER, "", "{\"bytes_per_day\": 2000}");
    door_rules_free(r);
    r = door_rules_new(b->db, on_changed, &changes);
    door_rules_bound(r, &usual, &lower);
    door_rules_load(r, on_done, &w);
    while (!w.done)
        g_main_context_iteration(NULL, TRUE);
    /* What was set before the maximum came down is held to it; so is what has no bound. */
    g_assert_cmpuint(limits_of(r, "one").bytes_per_day, ==, 1500);
    door_rules_free(r);
}

static void
test_limits_refused(void)
{
    static const struct {
        const char *change;
        ErrKind kind;
    } cases[] = {
        {"{}", ERR_INVALID},
        {"{\"bytes_per_day\": -1}", ERR_INVALID},
        {"{\"bytes_per_day\": \"1\"}", ERR_INVALID},
        {"{\"cakes_per_day\": 1}", ERR_INVALID},
        {"{\"cakes_per_day\": null}", ERR_INVALID},
        {"{\"bytes_per_day\": 5001}", ERR_LIMIT},
        {"{\"bytes_per_day\": 0}", ERR_LIMIT},
        {"{\"requests_per_min\": 601}", ERR_LIMIT},
    };
    g_autoptr(StoreBench) b = store_bench_new_open();
    guint changes = 0;
    DoorRules *r = door_rules_new(b->db, on_changed, &changes);

    door_rules_bound(r, &usual, &max);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = set(r, RULE_SERVER, "", cases[i].change);

        g_assert_error(error, ERR_DOMAIN, (int)cases[i].kind);
    }
    g_autoptr(GError) nobody = set(r, RULE_TEMPLATE, "", "{\"bytes_per_day\": 1}");

    g_assert_error(nobody, ERR_DOMAIN, ERR_INVALID);
    g_assert_cmpint(store_read_int(b->db, "SELECT count(*) FROM door_limits"), ==, 0);
    door_rules_free(r);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/door/rules/limits/nearest", test_limits_nearest);
    g_test_add_func("/door/rules/limits/kept", test_limits_kept);
    g_test_add_func("/door/rules/limits/refused", test_limits_refused);
    return g_test_run();
}
