/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* All ids come from the kernel's random source and are unguessable. */

enum { ID_UUID_LEN = 36, ID_BOX_LEN = 20, ID_REQUEST_LEN = 12 };

void id_random_bytes(void *ret_bytes, size_t n);

/* Lower-case hex of `n` random bytes; `ret_text` has room for 2n + 1. */
void id_random_hex(char *ret_text, size_t n);

void id_new_uuid(char ret_text[ID_UUID_LEN + 1]); /* version 4 */
bool id_is_uuid(const char *text);

/* A box's own id: 20 characters of [a-z0-9], about 103 bits. */
void id_new_box(char ret_text[ID_BOX_LEN + 1]);
bool id_is_box(const char *text);
