/* SPDX-License-Identifier: Apache-2.0 */
/* Allowed names that lead elsewhere. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "door-world.h"
#include "http-fixture.h"

#define POLICY                                                                                               \
    "{\"rules\": [{\"allow\": \"ok.test\"}, {\"allow\": \"*.wild.test\"},"                                   \
    " {\"allow\": \"mirror.test\", \"inside\": true}]}"

static char *
get(World *w, const char *host)
{
    g_autofree char *request = g_strdup_printf(
        "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host, host);

    return world_ask(w, request, NULL);
}

static int
get_status(World *w, const char *host)
{
    g_autofree char *answer = get(w, host);

    return answer_status(answer);
}

static void
test_e4(void)
{
    static const char *const answers[] = {
        "10.0.0.1",        "172.16.3.4",    "192.168.0.1",     "127.0.0.1",         "0.0.0.0",
        "169.254.169.254", "168.63.129.16", "100.64.0.1",      "203.0.113.7",       "224.0.0.1",
        "11.255.0.1",      "::1",           "::ffff:10.0.0.1", "fd00:ec2::254",     "2002:a9fe:a9fe::1",
        "64:ff9b::a00:1",  "fe80::1",       "2a00:ff::1",      "=in.test 10.0.0.1",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(answers); i++) {
        World w;

        g_test_message("%s", answers[i]);
        world_init(&w, POLICY);
        world_name(&w, "ok.test", answers[i], NULL);
        g_autofree char *answer = get(&w, "ok.test");
        g_assert_cmpint(answer_status(answer), ==, 403);
        g_assert_nonnull(strstr(answer, "resolved to a forbidden address"));
        g_assert_null(strstr(answer, answers[i])); /* the box learns nothing of the inside */
        autofd fd = world_tunnel(&w, "ok.test:443", NULL);
        g_assert_cmpint(fd, <, 0);
        g_assert_cmpuint(w.reached->len, ==, 0);
        g_assert_nonnull(json_object_get(world_fact(&w, "door.denied", "ok.test"), "address"));
        world_clear(&w);
    }
}

/* What a company's mirror needs, and no more. */
static void
test_inside(void)
{
    static const struct {
        const char *address;
        int status;
    } cases[] = {
        {"10.0.0.1", 200},        {"203.0.113.7", 200}, {"fd12::1", 200},       {"127.0.0.1", 403},
        {"169.254.169.254", 403}, {"11.255.0.1", 403},  {"fd00:ec2::254", 403}, {"::ffff:10.0.0.1", 403},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        World w;

        g_test_message("%s", cases[i].address);
        world_init(&w, POLICY);
        world_name(&w, "mirror.test", cases[i].address, NULL);
        g_assert_cmpint(get_status(&w, "mirror.test"), ==, cases[i].status);
        g_assert_cmpint(world_was_reached(&w, cases[i].address), ==, cases[i].status == 200);
        world_clear(&w);
    }
}

static void
test_e5(void)
{
    World w;

    world_init(&w, POLICY);
    world_name(&w, "ok.test", "11.0.0.1", "10.0.0.1", NULL);
    g_autofree char *answer = get(&w, "ok.test");
    g_assert_nonnull(strstr(answer, "canary 11.0.0.1 80"));
    g_assert_cmpuint(w.asked->len, ==, 1); /* for each connection one answer, and that is used */
    g_assert_cmpint(get_status(&w, "ok.test"), ==, 403);
    g_assert_cmpuint(w.asked->len, ==, 2);
    g_assert_false(world_was_reached(&w, "10.0.0.1"));
    world_clear(&w);
}

/* 11.9.9.9 does not answer. */
static void
test_e6(void)
{
    static const char *const mixed[] = {"11.9.9.9 10.0.0.1", "10.0.0.1 11.9.9.9", "11.9.9.9 fd00::1",
                                        "11.9.9.9 11.0.0.1 127.0.0.1", "=in.test 11.9.9.9 192.168.1.1"};

    world_ip("far", "route add blackhole 11.9.9.9");
    for (size_t i = 0; i < G_N_ELEMENTS(mixed); i++) {
        World w;

        world_init(&w, POLICY);
        world_name(&w, "ok.test", mixed[i], NULL);
        g_assert_cmpint(get_status(&w, "ok.test"), ==, 403);
        g_assert_cmpuint(w.reached->len, ==, 0);
        world_clear(&w);
    }
    world_ip("far", "route del blackhole 11.9.9.9");
}

static void
test_next_address(void)
{
    World w;

    world_ip("near", "route add unreachable 11.9.9.9");
    world_init(&w, POLICY);
    world_name(&w, "ok.test", "11.9.9.9 11.0.0.1", NULL);
    g_assert_cmpint(get_status(&w, "ok.test"), ==, 200);
    g_assert_true(world_was_reached(&w, "11.0.0.1"));
    world_name(&w, "ok.test", "11.9.9.9", NULL);
    g_assert_cmpint(get_status(&w, "ok.test"), ==, 502);
    world_clear(&w);
    world_ip("near", "route del unreachable 11.9.9.9");
}

static void
test_names(void)
{
    World w;

    world_init(&w, POLICY);
    g_assert_cmpint(get_status(&w, "ok.test"), ==, 502); /* no such name */
    world_name(&w, "ok.test", "", NULL);
    g_assert_cmpint(get_status(&w, "ok.test"), ==, 502); /* no address */
    world_name(&w, "ok.test", "=a.cdn.test 11.0.0.1", NULL);
    g_assert_cmpint(get_status(&w, "ok.test"), ==, 200); /* an alias is the resolver's business */
    world_name(&w, "ok.test", "2a00::7", NULL);
    g_assert_cmpint(get_status(&w, "ok.test"), ==, 200);
    g_assert_true(world_was_reached(&w, "2a00::7"));
    for (guint i = 0; i < w.asked->len; i++)
        g_assert_cmpstr(w.asked->pdata[i], ==, "ok.test"); /* no search list */
    g_assert_nonnull(world_fact(&w, "door.failed", "ok.test"));
    world_clear(&w);
}

typedef struct Dialled {
    guint times;
    bool ok;
} Dialled;

static void
on_dialled(int fd, const char *address, const GError *error, void *data)
{
    Dialled *d = data;

    d->times++;
    d->ok = fd >= 0;
    if (fd >= 0)
        close(fd);
}

/* A machine that moves to another network has other name servers. */
static void
test_servers_change(void)
{
    World w;
    Dialled d = {0};
    DoorName name;
    g_autoptr(GError) error = NULL;

    world_init(&w, POLICY);
    world_name(&w, "ok.test", "11.0.0.1", NULL);
    g_assert_true(door_name_read("ok.test:443", 0, &name, NULL));
    world_name_servers("nameserver 127.0.0.77\n"); /* nobody is there */
    const DialerSpec spec = {.loop = w.loop, .own = w.own, .resolve_ms = 600};
    g_autoptr(Dialer) dialer = dialer_new(&spec, &error);
    g_assert_no_error(error);
    dial(dialer, &name, false, on_dialled, &d);
    fixture_until(&d.times, 1);
    g_assert_false(d.ok);
    world_name_servers("nameserver 11.255.0.2\n");
    for (guint i = 1; !d.ok && i < 20; i++) {
        dial(dialer, &name, false, on_dialled, &d);
        fixture_until(&d.times, i + 1);
    }
    g_assert_true(d.ok);
    g_clear_pointer(&dialer, dialer_free);
    world_clear(&w);
}

static void
test_e17(void)
{
    World w;

    world_init(&w, POLICY);
    g_assert_cmpint(get_status(&w, "secret.attacker.test"), ==, 403);
    autofd fd = world_tunnel(&w, "secret.attacker.test:443", NULL);
    g_assert_cmpint(fd, <, 0);
    g_assert_cmpuint(w.asked->len, ==, 0);
    world_clear(&w);
}

static void
test_e18(void)
{
    World w;
    DoorLimits limits = DOOR_LIMITS_INIT;
    guint refused = 0;

    world_init(&w, POLICY);
    limits.lookups_per_min = 5;
    door_set_limits(w.box, &limits);
    for (guint i = 0; i < 12; i++) {
        g_autofree char *host = g_strdup_printf("secret-%u.wild.test", i);

        refused += get_status(&w, host) == 429;
    }
    /* A minute may turn in between. */
    g_assert_cmpuint(w.asked->len, <=, 10);
    g_assert_cmpuint(refused + w.asked->len, ==, 12);
    g_assert_nonnull(world_fact(&w, "door.limited", NULL));
    world_clear(&w);
}

static char *
via_of(World *w)
{
    g_autofree char *answer = get(w, "ok.test");
    const char *via = strstr(answer, "\r\nVia: ");

    g_assert_nonnull(via);
    return g_strndup(via + 7, strcspn(via + 7, "\r"));
}

static void
test_e19(void)
{
    World w;

    world_init(&w, POLICY);
    world_name(&w, "ok.test", "11.0.0.1", NULL);
    g_autofree char *via = via_of(&w);
    g_autofree char *again = g_strdup_printf("GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"
                                             "Via: 1.0 other\r\nVia: 1.1 x, %s\r\n\r\n",
                                             via);
    guint before = w.reached->len;
    g_autofree char *answer = world_ask(&w, again, "\r\n\r\n");
    g_assert_cmpint(answer_status(answer), ==, 508);
    g_autofree char *tunnel = g_strdup_printf(
        "CONNECT ok.test:443 HTTP/1.1\r\nHost: ok.test\r\nVia: %s\r\n\r\n", via);
    g_autofree char *refused = world_ask(&w, tunnel, "\r\n\r\n");
    g_assert_cmpint(answer_status(refused), ==, 508);
    world_name(&w, "ok.test", "11.255.0.1", NULL); /* a name for the door's own machine */
    g_assert_cmpint(get_status(&w, "ok.test"), ==, 403);
    g_assert_cmpuint(w.reached->len, ==, before);
    world_clear(&w);
}

int
main(int argc, char **argv)
{
    if (!world_enter(&argc, &argv))
        return 0;
    g_test_add_func("/door/E4-forbidden-answers", test_e4);
    g_test_add_func("/door/inside", test_inside);
    g_test_add_func("/door/E5-rebinding", test_e5);
    g_test_add_func("/door/E6-mixed-answers", test_e6);
    g_test_add_func("/door/next-address", test_next_address);
    g_test_add_func("/door/names", test_names);
    g_test_add_func("/door/servers-change", test_servers_change);
    g_test_add_func("/door/E17-lookups-only-when-allowed", test_e17);
    g_test_add_func("/door/E18-lookup-rate", test_e18);
    g_test_add_func("/door/E19-loops", test_e19);
    return g_test_run();
}
