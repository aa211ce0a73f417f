/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "wire/record.h"

#define ID "0123456789abcdefghij"
#define NAME_63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static KeeperRequest
good_create(void)
{
    KeeperRequest r = {
        .verb = KEEPER_CREATE,
        .box = ID,
        .hostname = "box-1",
        .layers = {"00ff", "a1"},
        .n_layers = 2,
        .door_port = 8080,
        .limits =
            {.memory_bytes = 64 << 20, .disk_bytes = 64 << 20, .inodes = 4096, .pids = 64, .cpu_milli = 1000},
    };
    return r;
}

/* Text at an offset of a good CREATE; `fill` bytes past the text too, so that no NUL follows. */
static const struct {
    const char *name;
    size_t offset;
    const char *text;
    size_t n;
    bool good;
} bytes_cases[] = {
    {"as it is", offsetof(KeeperRequest, box), ID, KEEPER_ID_LEN, true},
    {"short id", offsetof(KeeperRequest, box), "abc", 4, false},
    {"long id", offsetof(KeeperRequest, box), ID "k", KEEPER_ID_LEN + 1, false},
    {"id without an end", offsetof(KeeperRequest, box), ID "kkkk", KEEPER_ID_LEN + 4, false},
    {"capital in the id", offsetof(KeeperRequest, box), "A", 1, false},
    {"slash in the id", offsetof(KeeperRequest, box), "..//", 4, false},
    {"longest hostname", offsetof(KeeperRequest, hostname), NAME_63, KEEPER_NAME_MAX, true},
    {"hostname without an end", offsetof(KeeperRequest, hostname), NAME_63 "a", KEEPER_NAME_MAX + 1, false},
    {"empty hostname", offsetof(KeeperRequest, hostname), "", 1, false},
    {"hostname of a dash", offsetof(KeeperRequest, hostname), "-", 2, false},
    {"hostname that ends in a dash", offsetof(KeeperRequest, hostname), "a-", 3, false},
    {"newline in the hostname", offsetof(KeeperRequest, hostname), "a\nb", 4, false},
    {"dot in the hostname", offsetof(KeeperRequest, hostname), "a.b", 4, false},
    {"longest layer", offsetof(KeeperRequest, layers), NAME_63, KEEPER_NAME_MAX, true},
    {"layer without an end", offsetof(KeeperRequest, layers), NAME_63 "a", KEEPER_NAME_MAX + 1, false},
    {"layer above", offsetof(KeeperRequest, layers), "..", 3, false},
    {"empty layer", offsetof(KeeperRequest, layers), "", 1, false},
    {"colon in a layer", offsetof(KeeperRequest, layers), "a:b", 4, false},
    {"not hex", offsetof(KeeperRequest, layers), "ag", 3, false},
};

static void
test_strings(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(bytes_cases); i++) {
        KeeperRequest r = good_create();

        memcpy((char *)&r + bytes_cases[i].offset, bytes_cases[i].text, bytes_cases[i].n);
        g_test_message("%s", bytes_cases[i].name);
        g_assert_cmpint(keeper_request_check(&r), ==, bytes_cases[i].good);
    }
}

static const struct {
    const char *name;
    size_t offset;
    size_t size;
    guint64 value;
    bool good;
} number_cases[] = {
    {"no verb", offsetof(KeeperRequest, verb), 4, 0, false},
    {"an answer's verb", offsetof(KeeperRequest, verb), 4, KEEPER_OK, false},
    {"no layers", offsetof(KeeperRequest, n_layers), 4, 0, false},
    {"one layer more than there is", offsetof(KeeperRequest, n_layers), 4, 3, false},
    {"more layers than fit", offsetof(KeeperRequest, n_layers), 4, KEEPER_LAYERS_MAX + 1, false},
    {"very many layers", offsetof(KeeperRequest, n_layers), 4, G_MAXUINT32, false},
    {"known flags", offsetof(KeeperRequest, flags), 4, KEEPER_SUDO | KEEPER_KEEP_DISK, true},
    {"unknown flag", offsetof(KeeperRequest, flags), 4, 1 << 2, false},
    {"no door", offsetof(KeeperRequest, door_port), 2, 0, true},
    {"low ports", offsetof(KeeperRequest, low_ports), 2, 1, true},
    {"low ports twice", offsetof(KeeperRequest, low_ports), 2, 2, false},
    {"no memory", offsetof(KeeperRequest, limits.memory_bytes), 8, 0, false},
    {"all memory", offsetof(KeeperRequest, limits.memory_bytes), 8, G_MAXUINT64, false},
    {"smallest memory", offsetof(KeeperRequest, limits.memory_bytes), 8, KEEPER_MEMORY_MIN, true},
    {"no disk", offsetof(KeeperRequest, limits.disk_bytes), 8, 0, false},
    {"too much disk", offsetof(KeeperRequest, limits.disk_bytes), 8, KEEPER_DISK_MAX + 1, false},
    {"no inodes", offsetof(KeeperRequest, limits.inodes), 4, 0, false},
    {"no processes", offsetof(KeeperRequest, limits.pids), 4, 0, false},
    {"all processes", offsetof(KeeperRequest, limits.pids), 4, G_MAXUINT32, false},
    {"no cpu", offsetof(KeeperRequest, limits.cpu_milli), 4, 0, false},
    {"reserved", offsetof(KeeperRequest, limits.reserved), 4, 1, false},
};

static void
test_numbers(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(number_cases); i++) {
        KeeperRequest r = good_create();

        memcpy((char *)&r + number_cases[i].offset, &number_cases[i].value, number_cases[i].size);
        g_test_message("%s", number_cases[i].name);
        g_assert_cmpint(keeper_request_check(&r), ==, number_cases[i].good);
    }
}

static void
test_attach(void)
{
    for (KeeperVerb verb = KEEPER_ATTACH; verb <= KEEPER_DETACH; verb++) {
        KeeperRequest r = {.verb = verb, .n_layers = 1};

        memcpy(r.box, ID, KEEPER_ID_LEN);
        g_assert_false(keeper_request_check(&r));
        g_strlcpy(r.layers[0], "0af", sizeof r.layers[0]);
        g_assert_true(keeper_request_check(&r));
        r.n_layers = 2;
        g_assert_false(keeper_request_check(&r));
        r.n_layers = 1;
        g_strlcpy(r.layers[0], "..", sizeof r.layers[0]);
        g_assert_false(keeper_request_check(&r));
    }
}

static const struct {
    KeeperLimits limits;
    bool good;
} hold_cases[] = {
    {{.memory_bytes = KEEPER_MEMORY_MIN, .pids = KEEPER_PIDS_MIN, .cpu_milli = KEEPER_CPU_MIN}, true},
    {{.pids = KEEPER_PIDS_MIN, .cpu_milli = KEEPER_CPU_MIN}, false},
    {{.memory_bytes = KEEPER_MEMORY_MIN, .cpu_milli = KEEPER_CPU_MIN}, false},
    {{.memory_bytes = KEEPER_MEMORY_MIN, .pids = KEEPER_PIDS_MIN}, false},
    {{.memory_bytes = KEEPER_MEMORY_MAX + 1, .pids = KEEPER_PIDS_MIN, .cpu_milli = KEEPER_CPU_MIN}, false},
    {{.memory_bytes = KEEPER_MEMORY_MIN, .pids = KEEPER_PIDS_MIN, .cpu_milli = KEEPER_CPU_MIN, .inodes = 1},
     false},
    {{.memory_bytes = KEEPER_MEMORY_MIN,
      .pids = KEEPER_PIDS_MIN,
      .cpu_milli = KEEPER_CPU_MIN,
      .disk_bytes = KEEPER_DISK_MIN},
     false},
};

static void
test_hold(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(hold_cases); i++) {
        KeeperRequest r = {.verb = KEEPER_HOLD, .limits = hold_cases[i].limits};

        g_test_message("%zu", i);
        g_assert_cmpint(keeper_request_check(&r), ==, hold_cases[i].good);
    }
}

static void
test_verbs(void)
{
    KeeperRequest r = {.verb = KEEPER_HELLO, .count = KEEPER_VERSION};

    g_assert_true(keeper_request_check(&r));
    r.count = KEEPER_VERSION + 1;
    g_assert_false(keeper_request_check(&r));
    r = (KeeperRequest){.verb = KEEPER_LIST};
    g_assert_true(keeper_request_check(&r));
    for (KeeperVerb verb = KEEPER_KILL; verb <= KEEPER_STAT; verb++) {
        r = (KeeperRequest){.verb = verb};
        g_assert_false(keeper_request_check(&r));
        memcpy(r.box, ID, KEEPER_ID_LEN);
        g_assert_true(keeper_request_check(&r));
    }
    r = good_create();
    r.verb = KEEPER_PREPARE;
    r.count = KEEPER_POOL_MAX;
    g_assert_true(keeper_request_check(&r));
    r.count++;
    g_assert_false(keeper_request_check(&r));
}

static void
test_stages(void)
{
    for (KeeperStage s = STAGE_REQUEST; s < STAGE_MAX; s++)
        g_assert_cmpstr(keeper_stage_name(s), !=, "unknown");
    g_assert_cmpstr(keeper_stage_name(0), ==, "unknown");
    g_assert_cmpstr(keeper_stage_name(STAGE_MAX), ==, "unknown");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/record/strings", test_strings);
    g_test_add_func("/record/numbers", test_numbers);
    g_test_add_func("/record/verbs", test_verbs);
    g_test_add_func("/record/attach", test_attach);
    g_test_add_func("/record/hold", test_hold);
    g_test_add_func("/record/stages", test_stages);
    return g_test_run();
}
