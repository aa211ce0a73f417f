/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <sys/socket.h>

/* What kind of place an address is, by the table of docs/design/14-door.md.  Addresses that
 * carry another one (v4-mapped, NAT64, 6to4, Teredo) are never public. */
typedef enum AddressKind {
    ADDRESS_PUBLIC,
    /* Private and reserved ranges: only for a rule that says `inside`, as those that the host's
     * own package clients gave do (a company's mirror lives there). */
    ADDRESS_INSIDE,
    /* Loopback, link-local, metadata services, multicast, this host itself: for no rule. */
    ADDRESS_FORBIDDEN,
} AddressKind;

/* `ret_why` is a static text such as "loopback" or "a metadata service". */
AddressKind address_judge(const struct sockaddr *address, const char **ret_why);

bool address_is_loopback(const struct sockaddr *address); /* 127.0.0.0/8 and ::1 */

/* The addresses of the host's own interfaces, read again at most once a second: they come and go. */
typedef struct OwnAddresses OwnAddresses;
OwnAddresses *own_addresses_new(void);
void own_addresses_free(OwnAddresses *own);
bool own_addresses_have(OwnAddresses *own, const struct sockaddr *address);
