/* SPDX-License-Identifier: Apache-2.0 */
#include "http/address.h"

#include <glib.h>
#include <netinet/in.h>
#include <string.h>

/* The first row that fits decides, so a single address stands before the range it lies in. */
typedef struct RangeV4 {
    guint8 prefix[4];
    guint bits;
    AddressKind kind;
    const char *why;
} RangeV4;

static const RangeV4 ranges_v4[] = {
    {{100, 100, 100, 200}, 32, ADDRESS_FORBIDDEN, "a metadata service"},
    {{168, 63, 129, 16}, 32, ADDRESS_FORBIDDEN, "a metadata service"},
    {{169, 254, 169, 254}, 32, ADDRESS_FORBIDDEN, "a metadata service"},
    {{192, 0, 0, 192}, 32, ADDRESS_FORBIDDEN, "a metadata service"},
    {{255, 255, 255, 255}, 32, ADDRESS_FORBIDDEN, "the broadcast address"},
    {{0, 0, 0, 0}, 8, ADDRESS_FORBIDDEN, "this host"},
    {{127, 0, 0, 0}, 8, ADDRESS_FORBIDDEN, "loopback"},
    {{169, 254, 0, 0}, 16, ADDRESS_FORBIDDEN, "link-local"},
    {{192, 88, 99, 0}, 24, ADDRESS_FORBIDDEN, "6to4 relays"},
    {{224, 0, 0, 0}, 4, ADDRESS_FORBIDDEN, "multicast"},
    {{10, 0, 0, 0}, 8, ADDRESS_INSIDE, "a private network"},
    {{100, 64, 0, 0}, 10, ADDRESS_INSIDE, "a provider's network"},
    {{172, 16, 0, 0}, 12, ADDRESS_INSIDE, "a private network"},
    {{192, 0, 0, 0}, 24, ADDRESS_INSIDE, "reserved"},
    {{192, 0, 2, 0}, 24, ADDRESS_INSIDE, "reserved for documentation"},
    {{192, 168, 0, 0}, 16, ADDRESS_INSIDE, "a private network"},
    {{198, 18, 0, 0}, 15, ADDRESS_INSIDE, "reserved for benchmarks"},
    {{198, 51, 100, 0}, 24, ADDRESS_INSIDE, "reserved for documentation"},
    {{203, 0, 113, 0}, 24, ADDRESS_INSIDE, "reserved for documentation"},
    {{240, 0, 0, 0}, 4, ADDRESS_INSIDE, "reserved"},
};

typedef struct RangeV6 {
    guint8 prefix[16];
    guint bits;
    AddressKind kind;
    const char *why;
    guint carried_at; /* offset of an address inside this one; 0: none */
    guint8 mask;      /* … whose bytes are written with this on top */
} RangeV6;

/* clang-format off */
static const RangeV6 ranges_v6[] = {
    {{0xfd, 0, 0x0e, 0xc2, [14] = 0x02, 0x54}, 128, ADDRESS_FORBIDDEN, "a metadata service"},
    {{0xfd, 0x20, 0, 0xce, [14] = 0x02, 0x54}, 128, ADDRESS_FORBIDDEN, "a metadata service"},
    {{0xfd, 0, 0, 0x42, [15] = 0x42}, 128, ADDRESS_FORBIDDEN, "a metadata service"},
    {{[15] = 1}, 128, ADDRESS_FORBIDDEN, "loopback"},
    {{0}, 128, ADDRESS_FORBIDDEN, "this host"},
    {{[10] = 0xff, 0xff}, 96, ADDRESS_FORBIDDEN, "an IPv4 address written as IPv6", 12, 0},
    {{0}, 96, ADDRESS_FORBIDDEN, "an IPv4 address written as IPv6", 12, 0},
    {{0, 0x64, 0xff, 0x9b}, 96, ADDRESS_FORBIDDEN, "a translated IPv4 address", 12, 0},
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, ADDRESS_FORBIDDEN, "a translated IPv4 address"},
    {{0x20, 0x02}, 16, ADDRESS_FORBIDDEN, "6to4", 2, 0},
    {{0x20, 0x01, 0, 0}, 32, ADDRESS_FORBIDDEN, "Teredo", 12, 0xff},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, ADDRESS_INSIDE, "reserved for documentation"},
    {{0x20, 0x01}, 23, ADDRESS_FORBIDDEN, "reserved for protocols"},
    {{0x3f, 0xff}, 20, ADDRESS_INSIDE, "reserved for documentation"},
    {{0xfc}, 7, ADDRESS_INSIDE, "a private network"},
    {{0xfe, 0x80}, 10, ADDRESS_FORBIDDEN, "link-local"},
    {{0xfe, 0xc0}, 10, ADDRESS_FORBIDDEN, "site-local"},
    {{0xff}, 8, ADDRESS_FORBIDDEN, "multicast"},
    {{0x20}, 3, ADDRESS_PUBLIC, "public"},
};
/* clang-format on */

static bool
has_prefix(const guint8 *address, const guint8 *prefix, guint bits)
{
    guint whole = bits / 8, rest = bits % 8;
    guint8 mask = (guint8)(0xff << (8 - rest));

    return memcmp(address, prefix, whole) == 0 &&
           (rest == 0 || ((address[whole] ^ prefix[whole]) & mask) == 0);
}

static AddressKind
judge_v4(const guint8 address[4], const char **ret_why)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ranges_v4); i++) {
        if (has_prefix(address, ranges_v4[i].prefix, ranges_v4[i].bits)) {
            *ret_why = ranges_v4[i].why;
            return ranges_v4[i].kind;
        }
    }
    *ret_why = "public";
    return ADDRESS_PUBLIC;
}

/* A person is told what the address inside is, if that alone would do. */
static const char *
why_carried(const RangeV6 *range, const guint8 address[16])
{
    guint8 inner[4];
    const char *why;

    for (guint i = 0; i < sizeof inner; i++)
        inner[i] = address[range->carried_at + i] ^ range->mask;
    return judge_v4(inner, &why) == ADDRESS_PUBLIC ? range->why : why;
}

static AddressKind
judge_v6(const guint8 address[16], const char **ret_why)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ranges_v6); i++) {
        const RangeV6 *r = &ranges_v6[i];

        if (has_prefix(address, r->prefix, r->bits)) {
            *ret_why = r->carried_at > 0 ? why_carried(r, address) : r->why;
            return r->kind;
        }
    }
    *ret_why = "not in use";
    return ADDRESS_FORBIDDEN;
}

AddressKind
address_judge(const struct sockaddr *address, const char **ret_why)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;

        memcpy(&v4, address, sizeof v4);
        return judge_v4((const guint8 *)&v4.sin_addr, ret_why);
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;

        memcpy(&v6, address, sizeof v6);
        if (v6.sin6_scope_id == 0)
            return judge_v6(v6.sin6_addr.s6_addr, ret_why);
        *ret_why = "of one interface only";
        return ADDRESS_FORBIDDEN;
    }
    *ret_why = "not an internet address";
    return ADDRESS_FORBIDDEN;
}

bool
address_is_loopback(const struct sockaddr *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (address->sa_family == AF_INET) {
        memcpy(&v4, address, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (address->sa_family != AF_INET6)
        return false;
    memcpy(&v6, address, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}
