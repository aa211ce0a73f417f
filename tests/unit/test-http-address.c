/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <glib.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "http/address.h"

/* First and last of each range, and what lies beside them. */
static const struct {
    const char *address;
    AddressKind kind;
} cases[] = {
    {"0.0.0.0", ADDRESS_FORBIDDEN},
    {"0.255.255.255", ADDRESS_FORBIDDEN},
    {"1.0.0.0", ADDRESS_PUBLIC},
    {"9.255.255.255", ADDRESS_PUBLIC},
    {"10.0.0.0", ADDRESS_INSIDE},
    {"10.255.255.255", ADDRESS_INSIDE},
    {"11.0.0.0", ADDRESS_PUBLIC},
    {"100.63.255.255", ADDRESS_PUBLIC},
    {"100.64.0.0", ADDRESS_INSIDE},
    {"100.100.100.199", ADDRESS_INSIDE},
    {"100.100.100.200", ADDRESS_FORBIDDEN},
    {"100.127.255.255", ADDRESS_INSIDE},
    {"100.128.0.0", ADDRESS_PUBLIC},
    {"126.255.255.255", ADDRESS_PUBLIC},
    {"127.0.0.0", ADDRESS_FORBIDDEN},
    {"127.0.0.1", ADDRESS_FORBIDDEN},
    {"127.255.255.255", ADDRESS_FORBIDDEN},
    {"128.0.0.0", ADDRESS_PUBLIC},
    {"168.63.129.15", ADDRESS_PUBLIC},
    {"168.63.129.16", ADDRESS_FORBIDDEN},
    {"168.63.129.17", ADDRESS_PUBLIC},
    {"169.253.255.255", ADDRESS_PUBLIC},
    {"169.254.0.0", ADDRESS_FORBIDDEN},
    {"169.254.169.254", ADDRESS_FORBIDDEN},
    {"169.254.255.255", ADDRESS_FORBIDDEN},
    {"169.255.0.0", ADDRESS_PUBLIC},
    {"172.15.255.255", ADDRESS_PUBLIC},
    {"172.16.0.0", ADDRESS_INSIDE},
    {"172.31.255.255", ADDRESS_INSIDE},
    {"172.32.0.0", ADDRESS_PUBLIC},
    {"192.0.0.0", ADDRESS_INSIDE},
    {"192.0.0.192", ADDRESS_FORBIDDEN},
    {"192.0.1.0", ADDRESS_PUBLIC},
    {"192.0.2.1", ADDRESS_INSIDE},
    {"192.0.3.0", ADDRESS_PUBLIC},
    {"192.88.98.255", ADDRESS_PUBLIC},
    {"192.88.99.1", ADDRESS_FORBIDDEN},
    {"192.167.255.255", ADDRESS_PUBLIC},
    {"192.168.0.0", ADDRESS_INSIDE},
    {"192.168.255.255", ADDRESS_INSIDE},
    {"192.169.0.0", ADDRESS_PUBLIC},
    {"198.17.255.255", ADDRESS_PUBLIC},
    {"198.18.0.0", ADDRESS_INSIDE},
    {"198.19.255.255", ADDRESS_INSIDE},
    {"198.20.0.0", ADDRESS_PUBLIC},
    {"198.51.99.255", ADDRESS_PUBLIC},
    {"198.51.100.1", ADDRESS_INSIDE},
    {"203.0.112.255", ADDRESS_PUBLIC},
    {"203.0.113.1", ADDRESS_INSIDE},
    {"203.0.114.0", ADDRESS_PUBLIC},
    {"223.255.255.255", ADDRESS_PUBLIC},
    {"224.0.0.0", ADDRESS_FORBIDDEN},
    {"239.255.255.255", ADDRESS_FORBIDDEN},
    {"240.0.0.0", ADDRESS_INSIDE},
    {"255.255.255.254", ADDRESS_INSIDE},
    {"255.255.255.255", ADDRESS_FORBIDDEN},

    {"::", ADDRESS_FORBIDDEN},
    {"::1", ADDRESS_FORBIDDEN},
    {"::2", ADDRESS_FORBIDDEN},
    {"::1.2.3.4", ADDRESS_FORBIDDEN},
    {"::ffff:1.2.3.4", ADDRESS_FORBIDDEN},
    {"::ffff:10.0.0.1", ADDRESS_FORBIDDEN},
    {"::ffff:127.0.0.1", ADDRESS_FORBIDDEN},
    {"::ffff:169.254.169.254", ADDRESS_FORBIDDEN},
    {"::ffff:0:1.2.3.4", ADDRESS_FORBIDDEN},
    {"64:ff9b::169.254.169.254", ADDRESS_FORBIDDEN},
    {"64:ff9b::1.2.3.4", ADDRESS_FORBIDDEN},
    {"64:ff9b:1::1", ADDRESS_FORBIDDEN},
    {"100::1", ADDRESS_FORBIDDEN},
    {"1fff:ffff::1", ADDRESS_FORBIDDEN},
    {"2001::1", ADDRESS_FORBIDDEN},
    {"2001:0:5601:5601:0:0:5601:5601", ADDRESS_FORBIDDEN}, /* Teredo for 169.254.169.254 */
    {"2001:1ff:ffff::1", ADDRESS_FORBIDDEN},
    {"2001:200::1", ADDRESS_PUBLIC},
    {"2001:db7:ffff::1", ADDRESS_PUBLIC},
    {"2001:db8::1", ADDRESS_INSIDE},
    {"2001:db9::1", ADDRESS_PUBLIC},
    {"2002:a9fe:a9fe::1", ADDRESS_FORBIDDEN}, /* 6to4 for 169.254.169.254 */
    {"2002:102:304::1", ADDRESS_FORBIDDEN},
    {"2003::1", ADDRESS_PUBLIC},
    {"2606:4700::1111", ADDRESS_PUBLIC},
    {"2a00::1", ADDRESS_PUBLIC},
    {"3ffe:ffff::1", ADDRESS_PUBLIC},
    {"3fff::1", ADDRESS_INSIDE},
    {"3fff:fff:ffff::1", ADDRESS_INSIDE},
    {"3fff:1000::1", ADDRESS_PUBLIC},
    {"4000::1", ADDRESS_FORBIDDEN},
    {"5f00::1", ADDRESS_FORBIDDEN},
    {"fc00::1", ADDRESS_INSIDE},
    {"fd00:ec2::254", ADDRESS_FORBIDDEN},
    {"fd00:ec2::253", ADDRESS_INSIDE},
    {"fd20:ce::254", ADDRESS_FORBIDDEN},
    {"fd00:42::42", ADDRESS_FORBIDDEN},
    {"fdff:ffff::1", ADDRESS_INSIDE},
    {"fe00::1", ADDRESS_FORBIDDEN},
    {"fe80::1", ADDRESS_FORBIDDEN},
    {"febf::1", ADDRESS_FORBIDDEN},
    {"fec0::1", ADDRESS_FORBIDDEN},
    {"ff02::1", ADDRESS_FORBIDDEN},
};

static void
read_address(const char *text, struct sockaddr_storage *ret)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    memset(ret, 0, sizeof *ret);
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        memcpy(ret, &v4, sizeof v4);
        return;
    }
    g_assert_cmpint(inet_pton(AF_INET6, text, &v6.sin6_addr), ==, 1);
    memcpy(ret, &v6, sizeof v6);
}

static void
test_table(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct sockaddr_storage a;
        const char *why = NULL;

        read_address(cases[i].address, &a);
        g_test_message("%s", cases[i].address);
        g_assert_cmpint(address_judge((struct sockaddr *)&a, &why), ==, cases[i].kind);
        g_assert_nonnull(why);
    }
}

static void
test_why(void)
{
    static const struct {
        const char *address, *why;
    } whys[] = {
        {"127.0.0.1", "loopback"},
        {"::ffff:127.0.0.1", "loopback"},
        {"169.254.169.254", "a metadata service"},
        {"64:ff9b::169.254.169.254", "a metadata service"},
        {"2002:a9fe:a9fe::1", "a metadata service"},
        {"2001:0:5601:5601:0:0:5601:5601", "a metadata service"},
        {"2002:102:304::1", "6to4"},
        {"10.1.2.3", "a private network"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(whys); i++) {
        struct sockaddr_storage a;
        const char *why;

        read_address(whys[i].address, &a);
        (void)address_judge((struct sockaddr *)&a, &why);
        g_assert_cmpstr(why, ==, whys[i].why);
    }
}

static void
test_other(void)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in6 scoped = {.sin6_family = AF_INET6, .sin6_scope_id = 2};
    const char *why;

    g_assert_cmpint(address_judge((struct sockaddr *)&local, &why), ==, ADDRESS_FORBIDDEN);
    g_assert_cmpint(inet_pton(AF_INET6, "2a00::1", &scoped.sin6_addr), ==, 1);
    g_assert_cmpint(address_judge((struct sockaddr *)&scoped, &why), ==, ADDRESS_FORBIDDEN);
}

static void
test_own(void)
{
    OwnAddresses *own = own_addresses_new();
    struct sockaddr_storage a;

    read_address("127.0.0.1", &a);
    g_assert_true(own_addresses_have(own, (struct sockaddr *)&a));
    read_address("192.0.2.77", &a);
    g_assert_false(own_addresses_have(own, (struct sockaddr *)&a));
    own_addresses_free(own);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http/address/E1-E3-table", test_table);
    g_test_add_func("/http/address/why", test_why);
    g_test_add_func("/http/address/other", test_other);
    g_test_add_func("/http/address/own", test_own);
    return g_test_run();
}
