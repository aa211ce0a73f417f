/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* For programs without GLib.  A NUL is a character like others. */
bool utf8_is_valid(const char *text, size_t n);
/* Of valid text. */
size_t utf8_count(const char *text, size_t n);
