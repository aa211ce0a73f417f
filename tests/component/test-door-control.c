/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of the control protocol against what no honest other end would say. */
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/control-bench.h"
#include "wire/channel.h"
#include "wire/door.h"

#define POLICY "{\"do\":\"policy\",\"name\":\"p\",\"policy\":{\"mode\":\"deny\",\"rules\":[]}}"
#define PROVIDER "\"provider\":{\"name\":\"x\",\"kind\":\"openai\"}"
#define HELLO                                                                                                \
    "{\"say\":\"hello\",\"version\":1,\"instance\":\"i\",\"public_key\":\"00\",\"providers\":[\"openai\"]}"

/* Answers to nothing that was asked are passed over. */
static bool
hears(int fd, const char *say, const char *about)
{
    for (;;) {
        g_autoptr(Json) message = control_bench_hear(fd);

        if (message == NULL)
            return false;
        if (g_strcmp0(json_string_value(json_object_get(message, "say")), say) == 0 &&
            (about == NULL || g_strcmp0(json_string_value(json_object_get(message, "id")), about) == 0))
            return true;
    }
}

static bool
still_answers(ControlBench *b, int fd)
{
    control_bench_turn(b);
    while (hears(fd, "nothing", NULL))
        continue;
    control_bench_say(fd, "{\"do\":\"hello\",\"version\":1}", -1);
    control_bench_turn(b);
    return hears(fd, "hello", NULL);
}

/* ---- the door's end ---- */

static const char *const refused[] = {
    /* no word, or none that is known */
    "{}",
    "{\"do\":7}",
    "{\"do\":null}",
    "{\"do\":\"\"}",
    "{\"do\":\"fly\"}",
    "{\"say\":\"hello\"}",
    /* missing, of another type, too long, too many */
    "{\"do\":\"hello\"}",
    "{\"do\":\"hello\",\"version\":\"1\"}",
    "{\"do\":\"hello\",\"version\":99999999999999}",
    "{\"do\":\"policy\"}",
    "{\"do\":\"policy\",\"name\":\"q\",\"policy\":[]}",
    "{\"do\":\"policy\",\"name\":7,\"policy\":{}}",
    "{\"do\":\"policy\",\"name\":\"q\",\"policy\":{\"mode\":\"open\",\"rules\":[]}}",
    "{\"do\":\"policy\",\"name\":\"q\",\"policy\":{\"mode\":\"deny\",\"rules\":[7]}}",
    "{\"do\":\"policy\",\"name\":\"q\",\"policy\":{\"mode\":\"deny\",\"rules\":[]},\"more\":1}",
    ("{\"do\":\"policy\",\"name\":\"01234567890123456789012345678901234567890123456789012345678901234\","
     "\"policy\":{}}"),
    "{\"do\":\"box\"}",
    "{\"do\":\"box\",\"id\":\"one\",\"cookie\":\"0\",\"policy\":\"p\"}", /* without its listener */
    "{\"do\":\"box\",\"id\":\"one\",\"cookie\":0,\"policy\":\"p\"}",
    "{\"do\":\"box\",\"id\":\"one\",\"cookie\":\"-1\",\"policy\":\"p\"}",
    "{\"do\":\"box\",\"id\":\"\",\"cookie\":\"0\",\"policy\":\"p\"}",
    "{\"do\":\"box\",\"id\":\"one\",\"cookie\":\"99999999999999999999\",\"policy\":\"p\"}",
    "{\"do\":\"change\",\"id\":\"nobody\",\"policy\":\"p\"}",
    "{\"do\":\"change\",\"id\":[]}",
    "{\"do\":\"gone\"}",
    "{\"do\":\"gone\",\"id\":{}}",
    "{\"do\":\"provider\"}",
    "{\"do\":\"provider\",\"provider\":[]}",
    "{\"do\":\"provider\",\"provider\":{\"name\":\"x\",\"kind\":\"nobody\"}}",
    ("{\"do\":\"provider\"," PROVIDER ",\"key\":\"zz\"}"),
    ("{\"do\":\"provider\"," PROVIDER ",\"key\":\"\"}"),
    "{\"do\":\"provider\",\"provider\":{\"name\":\"x\",\"kind\":\"script\"}}",
    "{\"do\":\"no-provider\"}",
    "{\"do\":\"budget\",\"scope\":\"all\"}",
    "{\"do\":\"budget\",\"scope\":\"all\",\"bounds\":{\"calls\":-1}}",
    "{\"do\":\"budget\",\"scope\":\"all\",\"bounds\":{\"calls\":\"1\"}}",
    "{\"do\":\"budget\",\"scope\":\"all\",\"bounds\":{\"calls\":1},\"spent\":{\"calls\":1.5}}",
    "{\"do\":\"ack\",\"upto\":-1}",
    "{\"do\":\"ack\",\"upto\":1}", /* nothing was sent */
    "{\"do\":\"test\"}",
};

/* Each is refused by itself: the next word is heard, and nothing was changed. */
static void
test_refused(void)
{
    guint before = control_bench_fds();
    ControlBench *b = control_bench_new_door();
    autofd fd = control_bench_join(b);
    DoorStats stats;

    control_bench_say(fd, POLICY, -1);
    control_bench_turn(b);
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_test_message("%s", refused[i]);
        control_bench_say(fd, refused[i], -1);
        control_bench_turn(b);
        g_assert_true(hears(fd, "refused", NULL));
    }
    g_assert_true(still_answers(b, fd));
    door_stats(b->door, &stats);
    g_assert_cmpuint(stats.boxes, ==, 0);
    close(g_steal_fd(&fd));
    control_bench_free(b);
    g_assert_cmpuint(control_bench_fds(), ==, before);
}

/* What comes in the place of a listener, or beside a word that wants none. */
static void
test_fds(void)
{
    static const char box[] = "{\"do\":\"box\",\"id\":\"one\",\"cookie\":\"0\",\"policy\":\"p\"}";
    guint before = control_bench_fds();
    ControlBench *b = control_bench_new_door();
    autofd fd = control_bench_join(b);
    int pair[2], null = memfd_create("x", MFD_CLOEXEC);

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
    control_bench_say(fd, POLICY, -1);
    control_bench_say(fd, box, null);
    control_bench_say(fd, box, pair[0]);
    control_bench_turn(b);
    g_assert_true(hears(fd, "refused", "one") && hears(fd, "refused", "one"));
    control_bench_say(fd, "{\"do\":\"synced\"}", null);
    control_bench_say(fd, "{\"do\":\"provider\",\"provider\":{\"name\":\"x\",\"kind\":\"script\"}}", pair[0]);
    control_bench_turn(b);
    g_assert_true(hears(fd, "refused", "x"));
    /* Of many the first is its listener, and the others are closed. */
    g_autofree char *cookie = NULL;
    int many[CHANNEL_FDS_MAX] = {control_bench_listener(&cookie), null, null, null, null, null, null, null};
    g_autofree char *good = g_strdup_printf(
        "{\"do\":\"box\",\"id\":\"one\",\"cookie\":\"%s\",\"policy\":\"p\"}", cookie);

    control_bench_say(fd, POLICY, -1);
    g_assert_cmpint(channel_send(fd, good, strlen(good), many, G_N_ELEMENTS(many)), ==, 0);
    control_bench_turn(b);
    g_assert_nonnull(door_find(b->door, "one"));
    /* A cookie of another network is none of ours. */
    control_bench_say(fd, "{\"do\":\"box\",\"id\":\"two\",\"cookie\":\"1\",\"policy\":\"p\"}", many[0]);
    control_bench_turn(b);
    g_assert_true(hears(fd, "refused", "two") && door_find(b->door, "two") == NULL);
    close(many[0]);
    close(null);
    close(pair[0]);
    close(pair[1]);
    close(g_steal_fd(&fd));
    control_bench_free(b);
    g_assert_cmpuint(control_bench_fds(), ==, before);
}

/* The connection ends, the door does not; whoever comes next is heard, and what was told before stays. */
static void
test_broken(void)
{
    static const char *const packets[] = {"{",
                                          "[]",
                                          "7",
                                          "\"do\"",
                                          "{\"do\":\"hello\"",
                                          "{}{}",
                                          "\xff\xfe",
                                          "{\"do\":\"hello\",\"do\":\"ack\"}"};
    ControlBench *b = control_bench_new_door();
    g_autofree char *huge = g_strnfill(DOOR_PACKET_MAX + 1, ' ');
    g_autofree char *deep = g_strnfill(1000, '[');

    for (size_t i = 0; i < G_N_ELEMENTS(packets) + 3; i++) {
        autofd fd = control_bench_join(b);

        control_bench_say(fd, POLICY, -1);
        if (i < G_N_ELEMENTS(packets))
            control_bench_say(fd, packets[i], -1);
        else if (i == G_N_ELEMENTS(packets))
            control_bench_say(fd, huge, -1);
        else if (i == G_N_ELEMENTS(packets) + 1)
            control_bench_say(fd, deep, -1);
        control_bench_turn(b);
        g_assert_true(i == G_N_ELEMENTS(packets) + 2 || !still_answers(b, fd));
        close(g_steal_fd(&fd));
        control_bench_turn(b);
        fd = control_bench_join(b);
        g_assert_true(still_answers(b, fd));
    }
    control_bench_free(b);
}

/* A second server takes the place of the first. */
static void
test_second(void)
{
    ControlBench *b = control_bench_new_door();
    autofd first = control_bench_join(b);

    g_assert_true(still_answers(b, first));
    autofd second = control_bench_join(b);

    g_assert_true(still_answers(b, second) && !still_answers(b, first));
    control_bench_free(b);
}

/* ---- the server's end ---- */

static const char *const passed_over[] = {
    "{}",
    "{\"say\":7}",
    "{\"say\":\"fly\"}",
    "{\"do\":\"gone\",\"id\":\"one\"}",
    "{\"say\":\"hello\",\"version\":1}",
    "{\"say\":\"stats\",\"boxes\":\"many\"}",
    "{\"say\":\"tested\"}",
    "{\"say\":\"tested\",\"serial\":\"x\",\"ok\":1}",
    "{\"say\":\"tested\",\"serial\":-1,\"ok\":true,\"result\":7}",
    "{\"say\":\"refused\",\"do\":{},\"id\":[],\"error\":7}",
    "{\"say\":\"refused\"}",
    "{\"say\":\"used\"}",
    "{\"say\":\"used\",\"day\":\"x\",\"boxes\":[]}",
    "{\"say\":\"used\",\"day\":-1,\"boxes\":{\"one\":5}}",
    "{\"say\":\"used\",\"day\":1,\"boxes\":{\"one\":-5,\"two\":\"x\",\"nobody\":5}}",
    "{\"say\":\"forward\"}",
    "{\"say\":\"forward\",\"box\":\"nobody\"}",
    "{\"say\":\"forward\",\"box\":\"one\"}", /* without a connection */
    "{\"say\":\"forward\",\"box\":7}",
};

static int
join_up(ControlBench *b)
{
    int fd = control_bench_join(b);

    control_bench_say(fd, HELLO, -1);
    while (!door_link_is_up(b->link))
        g_main_context_iteration(NULL, TRUE);
    return fd;
}

static void
test_link_passes_over(void)
{
    guint before = control_bench_fds();
    ControlBench *b = control_bench_new_link();
    autofd fd = join_up(b);
    DoorDay used;

    for (size_t i = 0; i < G_N_ELEMENTS(passed_over); i++) {
        int with = memfd_create("x", MFD_CLOEXEC);

        g_test_message("%s", passed_over[i]);
        control_bench_say(fd, passed_over[i], -1);
        if (strstr(passed_over[i], "\"one\"}") == NULL)
            control_bench_say(fd, passed_over[i], with);
        close(with);
        control_bench_turn(b);
        g_assert_true(door_link_is_up(b->link));
    }
    g_assert_cmpuint(b->ups, ==, 1);
    g_assert_cmpuint(b->forwarded, ==, 0);
    g_assert_true(door_link_used(b->link, "one", &used) && used.bytes == 0);
    close(g_steal_fd(&fd));
    control_bench_free(b);
    g_assert_cmpuint(control_bench_fds(), ==, before);
}

/* Before its hello the door is nobody: no fact is taken from it. */
static void
test_link_before_hello(void)
{
    static const char *const early[] = {
        "{\"say\":\"fact\",\"n\":1,\"kind\":\"door.denied\"}",
        "{\"say\":\"stats\"}",
        "{\"say\":\"forward\",\"box\":\"one\"}",
        "{\"say\":\"hello\",\"version\":2,\"instance\":\"i\",\"public_key\":\"00\"}",
        "{\"say\":\"hello\",\"version\":1,\"instance\":7,\"public_key\":\"00\"}",
        "{\"say\":\"hello\",\"version\":1,\"instance\":\"i\",\"public_key\":[]}",
    };
    ControlBench *b = control_bench_new_link();
    autofd fd = control_bench_join(b);
    autofd with = memfd_create("x", MFD_CLOEXEC);

    for (size_t i = 0; i < G_N_ELEMENTS(early); i++)
        control_bench_say(fd, early[i], with);
    control_bench_turn(b);
    g_assert_cmpuint(b->heard + b->ups + b->forwarded, ==, 0);
    g_assert_null(door_link_stats(b->link));
    control_bench_say(fd, HELLO, -1);
    control_bench_say(fd, early[0], -1);
    control_bench_turn(b);
    g_assert_cmpuint(b->ups, ==, 1);
    g_assert_cmpuint(b->heard, ==, 1);
    control_bench_free(b);
}

/* The connection is lost and made again, and everything is told anew. */
static void
test_link_broken(void)
{
    static const char *const packets[] = {"{", "[]", "\xff", "{\"say\":1,\"say\":2}"};
    ControlBench *b = control_bench_new_link();
    g_autofree char *huge = g_strnfill(DOOR_PACKET_MAX + 1, ' ');

    for (size_t i = 0; i <= G_N_ELEMENTS(packets); i++) {
        autofd fd = join_up(b);

        g_assert_cmpuint(b->ups, ==, i + 1);
        control_bench_say(fd, i < G_N_ELEMENTS(packets) ? packets[i] : huge, -1);
        control_bench_turn(b);
        g_assert_false(door_link_is_up(b->link));
        g_assert_cmpuint(b->downs, ==, i + 1);
    }
    control_bench_free(b);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    /* What libraries keep open from their first use on is not counted. */
    control_bench_free(control_bench_new_door());
    g_test_add_func("/door/control/refused", test_refused);
    g_test_add_func("/door/control/fds", test_fds);
    g_test_add_func("/door/control/broken", test_broken);
    g_test_add_func("/door/control/second", test_second);
    g_test_add_func("/door/link/passes-over", test_link_passes_over);
    g_test_add_func("/door/link/before-hello", test_link_before_hello);
    g_test_add_func("/door/link/broken", test_link_broken);
    return g_test_run();
}
