/* SPDX-License-Identifier: Apache-2.0 */
#include "door/meter.h"
#include "support/fake-clock.h"

enum { DAY_S = 86400, MINUTE_S = 60, RATE = 100000 };

static void
test_minutes(void)
{
    Meter m;

    meter_init(&m, &(DoorLimits){.requests_per_min = 3, .lookups_per_min = 1});
    for (guint minute = 0; minute < 2; minute++) {
        for (guint i = 0; i < 5; i++)
            g_assert_cmpint(meter_take_request(&m), ==, i < 3);
        g_assert_true(meter_take_lookup(&m));
        g_assert_false(meter_take_lookup(&m));
        g_assert_true(meter_may_tell(&m));
        g_assert_false(meter_may_tell(&m));
        fake_clock_forward(MINUTE_S);
    }
}

static void
test_day(void)
{
    Meter m;

    meter_init(&m, &(DoorLimits){.bytes_per_day = 1000});
    meter_moved(&m, 999);
    g_assert_false(meter_day_is_used_up(&m));
    meter_moved(&m, 1);
    g_assert_true(meter_day_is_used_up(&m));
    meter_set(&m, &(DoorLimits){.bytes_per_day = 2000}); /* what was counted stays */
    g_assert_false(meter_day_is_used_up(&m));
    meter_moved(&m, 1000);
    g_assert_true(meter_day_is_used_up(&m));
    fake_clock_jump(DAY_S);
    g_assert_false(meter_day_is_used_up(&m));
}

static void
test_rate(void)
{
    Meter m;

    meter_init(&m, &(DoorLimits){.bytes_per_s = RATE});
    g_assert_cmpuint(meter_allowance(&m), ==, RATE);
    meter_moved(&m, RATE + 500); /* a read is not cut in two */
    g_assert_cmpuint(meter_allowance(&m), ==, 0);
    fake_clock_forward(1);
    g_assert_cmpuint(meter_allowance(&m), ==, RATE - 500);
    fake_clock_forward(100);
    g_assert_cmpuint(meter_allowance(&m), ==, RATE); /* no more than a second's worth is saved */
    meter_moved(&m, RATE - RATE / 20 + 1);
    g_assert_cmpuint(meter_allowance(&m), ==, 0); /* too little for a move */
}

static void
test_none(void)
{
    Meter m;

    meter_init(&m, &(DoorLimits){0});
    meter_moved(&m, G_MAXSSIZE);
    for (guint i = 0; i < 100000; i++)
        g_assert_true(meter_take_request(&m) && meter_take_lookup(&m));
    g_assert_false(meter_day_is_used_up(&m));
    g_assert_cmpuint(meter_allowance(&m), ==, SIZE_MAX);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/door/meter/minutes", test_minutes);
    g_test_add_func("/door/meter/day", test_day);
    g_test_add_func("/door/meter/rate", test_rate);
    g_test_add_func("/door/meter/none", test_none);
    return g_test_run();
}
