/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stddef.h>

/* Ed25519 keys as OpenSSH writes them, and signatures as `ssh-keygen -Y sign` makes them. */
enum { KEY_PUBLIC_LEN = 32, KEY_SECRET_LEN = 64 };

void key_make(guint8 ret_public[KEY_PUBLIC_LEN], guint8 ret_secret[KEY_SECRET_LEN]);
/* "ssh-ed25519 AAAA…" */
char *key_format(const guint8 public_key[KEY_PUBLIC_LEN]);
/* Armoured, in the namespace "git". */
char *key_sign(const guint8 secret[KEY_SECRET_LEN], const void *bytes, size_t n);
