/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

#include "base/clock.h"
#include "http/address.h"

enum { FRESH_US = G_USEC_PER_SEC };

struct OwnAddresses {
    struct ifaddrs *list; /* NULL: not read, or there are none */
    gint64 read_us;
    bool known; /* the last reading succeeded */
};

OwnAddresses *
own_addresses_new(void)
{
    return g_new0(OwnAddresses, 1);
}

static void
forget(OwnAddresses *own)
{
    if (own->list != NULL)
        freeifaddrs(g_steal_pointer(&own->list));
}

void
own_addresses_free(OwnAddresses *own)
{
    if (own == NULL)
        return;
    forget(own);
    g_free(own);
}

static void
refresh(OwnAddresses *own)
{
    gint64 now = clock_mono_us();

    if (own->known && now - own->read_us < FRESH_US)
        return;
    forget(own);
    own->known = getifaddrs(&own->list) == 0;
    own->read_us = now;
}

static bool
is_same(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)(const void *)a)->sin_addr,
                      &((const struct sockaddr_in *)(const void *)b)->sin_addr, sizeof(struct in_addr)) == 0;
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

bool
own_addresses_have(OwnAddresses *own, const struct sockaddr *address)
{
    refresh(own);
    if (!own->known)
        return true; /* not to know is no reason to let somebody through */
    for (const struct ifaddrs *i = own->list; i != NULL; i = i->ifa_next) {
        if (i->ifa_addr != NULL && is_same(i->ifa_addr, address))
            return true;
    }
    return false;
}
