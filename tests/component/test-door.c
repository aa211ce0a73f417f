/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "door-world.h"
#include "http-fixture.h"

#define POLICY "{\"rules\": [{\"allow\": \"ok.test\", \"source\": \"template base\"}]}"

static void
test_tunnel(void)
{
    World w;

    world_init(&w, POLICY);
    world_name(&w, "ok.test", "11.0.0.1", NULL);
    autofd fd = world_tunnel(&w, "ok.test:443", NULL);
    g_assert_cmpint(fd, >=, 0);
    g_autoptr(GByteArray) hello = world_hello("ok.test");
    client_send(fd, hello->data, hello->len);
    g_autoptr(GByteArray) echo = client_read_n(fd, hello->len);
    g_assert_cmpmem(echo->data, echo->len, hello->data, hello->len);
    g_assert_true(world_was_reached(&w, "11.0.0.1"));
    g_assert_cmpstr(json_string_value(json_object_get(world_fact(&w, "door.allowed", "ok.test"), "address")),
                    ==, "11.0.0.1");
    world_clear(&w);
}

static void
test_plain(void)
{
    World w;

    world_init(&w, POLICY);
    world_name(&w, "ok.test", "11.0.0.1", NULL);
    g_autofree char *answer = world_ask(
        &w, "GET http://ok.test/a?b=c HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n", NULL);
    g_assert_cmpint(answer_status(answer), ==, 200);
    g_assert_nonnull(strstr(answer, "canary 11.0.0.1 80\nGET /a?b=c HTTP/1.1\r\nHost: ok.test\r\n"));
    world_clear(&w);
}

int
main(int argc, char **argv)
{
    if (!world_enter(&argc, &argv))
        return 0;
    g_test_add_func("/door/tunnel", test_tunnel);
    g_test_add_func("/door/plain", test_plain);
    return g_test_run();
}
