/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "fuzz.h"
#include "support/control-bench.h"
#include "wire/channel.h"

/* The first byte says whose end is tried: 's' the server's, any other the door's.  Each line that follows
 * is a packet, one that begins with '@' with a listener beside it.  Whatever was said, the end that was
 * tried goes on with the next connection, and every fd is closed in the end. */

enum { LINES_MAX = 64 };

static const char hello_of_server[] = "{\"do\":\"hello\",\"version\":1}";
static const char hello_of_door[] =
    "{\"say\":\"hello\",\"version\":1,\"instance\":\"i\",\"public_key\":\"00\",\"providers\":[]}";

static void
say_line(int fd, const char *line, size_t n)
{
    g_autofree char *text = g_strndup(line, n);
    int with = *text == '@' ? control_bench_listener(NULL) : -1;

    control_bench_say(fd, *text == '@' ? text + 1 : text, with);
    if (with >= 0)
        close(with);
}

static void
say_lines(ControlBench *b, int fd, const char *text, size_t cut)
{
    const char *end;

    for (int i = 0; i < LINES_MAX && (end = strchrnul(text, '\n')) > text; i++) {
        say_line(fd, text, (size_t)(end - text));
        if (cut == FUZZ_EACH_BYTE)
            control_bench_turn(b);
        if (*end == '\0')
            break;
        text = end + 1;
    }
    control_bench_turn(b);
}

static void
check_door(ControlBench *b)
{
    int fd = control_bench_join(b);
    g_autoptr(Json) answer = NULL;

    control_bench_say(fd, hello_of_server, -1);
    control_bench_turn(b);
    answer = control_bench_hear(fd);
    g_assert(strcmp(json_string_value(json_object_get(answer, "say")), "hello") == 0);
    close(fd);
}

static void
check_link(ControlBench *b)
{
    /* Once each, however often it was said and whatever ended it. */
    g_assert(b->ups == 1 && b->downs == 1 && !door_link_is_up(b->link));
}

static void
try_one(bool server, const char *text, size_t cut)
{
    ControlBench *b = server ? control_bench_new_link() : control_bench_new_door();
    int fd = control_bench_join(b);

    control_bench_say(fd, server ? hello_of_door : hello_of_server, -1);
    control_bench_turn(b);
    say_lines(b, fd, text, cut);
    close(fd);
    control_bench_turn(b);
    if (server)
        check_link(b);
    else
        check_door(b);
    control_bench_free(b);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    static bool warm;
    g_autofree char *text = fuzz_string(data, n);

    /* How a packet is cut is no matter: it comes whole, or not at all. */
    if (*text == '\0' || (cut != n && cut != FUZZ_EACH_BYTE))
        return;
    if (!warm) {
        (void)log_set_levels("error");
        control_bench_free(control_bench_new_door());
        warm = true;
    }
    guint before = control_bench_fds();

    try_one(*text == 's', text + 1, cut);
    g_assert(control_bench_fds() == before);
}
