/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stddef.h>

#include "door/name.h"

/* The name in the first bytes of a TLS connection.  Reads no more of a ClientHello than where its
 * parts end. */
enum { SNI_HELLO_MAX = 16 * 1024 };

typedef enum SniResult {
    SNI_MORE,    /* not all of it is there */
    SNI_NAME,    /* `ret_name` is the one name */
    SNI_NONE,    /* a whole ClientHello without a name */
    SNI_NOT_TLS, /* something else */
    SNI_BAD,     /* TLS that nobody sends in good faith: malformed, too long, two ClientHellos */
} SniResult;

/* `ret_name` is as it was sent, with letters, digits, '-' and '.' only.  SNI_MORE: nothing else can come
 * out before there are `*ret_need` bytes. */
SniResult sni_read(const guint8 *bytes, size_t n, char ret_name[DOOR_NAME_MAX + 1], size_t *ret_need);
