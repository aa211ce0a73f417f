/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "door/name.h"
#include "fuzz.h"

/* The input is an authority and a URL; what is accepted has one reading, and is its own. */

static bool
is_canonical(const char *host)
{
    for (const char *p = host; *p != '\0'; p++) {
        if (!g_ascii_islower(*p) && !g_ascii_isdigit(*p) && *p != '-' && *p != '.')
            return false;
    }
    return host[0] != '\0' && strlen(host) <= DOOR_NAME_MAX && host[0] != '.' && strstr(host, "..") == NULL;
}

static void
check_address(const DoorName *name)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    guint8 bytes[16];

    memcpy(&v4, &name->address, sizeof v4);
    memcpy(&v6, &name->address, sizeof v6);
    if (name->address.ss_family == AF_INET) {
        g_assert_cmpint(inet_pton(AF_INET, name->host, bytes), ==, 1);
        g_assert_cmpmem(bytes, 4, &v4.sin_addr, 4);
        g_assert_cmpint(v4.sin_port, ==, htons(name->port));
    } else {
        g_assert_cmpint(inet_pton(AF_INET6, name->host, bytes), ==, 1);
        g_assert_cmpmem(bytes, 16, &v6.sin6_addr, 16);
        g_assert_cmpint(v6.sin6_port, ==, htons(name->port));
        g_assert_cmpint(v6.sin6_scope_id, ==, 0);
    }
}

/* No resolver may take a name for an address: it would be one that nobody judged. */
static void
check_name(const DoorName *name)
{
    struct in_addr any;

    g_assert_true(is_canonical(name->host));
    g_assert_cmpint(inet_aton(name->host, &any), ==, 0);
}

static void
check_again(const DoorName *name)
{
    bool v6 = name->is_address && name->address.ss_family == AF_INET6;
    g_autofree char *text = g_strdup_printf(v6 ? "[%s]:%d" : "%s:%d", name->host, name->port);
    DoorName again;

    g_assert_true(door_name_read(text, 0, &again, NULL));
    g_assert_cmpstr(again.host, ==, name->host);
    g_assert_cmpint(again.port, ==, name->port);
    g_assert_cmpint(again.is_address, ==, name->is_address);
}

static void
check(const DoorName *name)
{
    g_assert_cmpint(name->port, !=, 0);
    if (name->is_address)
        check_address(name);
    else
        check_name(name);
    check_again(name);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    g_autofree char *text = fuzz_string(data, n);
    g_autofree char *uri = g_strconcat("http://", text, NULL);
    const char *target;
    DoorName name;

    if (cut != n)
        return; /* not a stream */
    if (door_name_read(text, 0, &name, NULL))
        check(&name);
    if (door_name_read(text, 443, &name, NULL))
        check(&name);
    if (door_name_read_uri(uri, &name, &target, NULL)) {
        check(&name);
        g_assert_cmpint(target[0], ==, '/');
        g_assert_null(strpbrk(target, " #\r\n"));
    }
}
