/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* A fuzz target is one file with a fuzz_input().  Linked with libfuzzer.c it is a libFuzzer
 * program, linked with replay.c it runs over its saved inputs in every test run. */

#define FUZZ_EACH_BYTE SIZE_MAX

/* Asserts what must hold for the input.  `cut` says how it comes: `n`: whole; less: in two
 * pieces; FUZZ_EACH_BYTE: byte by byte.  A target that reads no stream makes of it what fits. */
void fuzz_input(const guint8 *data, size_t n, size_t cut);

/* Hands the pieces to `feed` until it returns false.  Each is a copy of its exact size, so that
 * a read past it is seen. */
typedef bool (*FuzzFeedFunc)(void *ctx, const guint8 *bytes, size_t n);
bool fuzz_feed(const guint8 *data, size_t n, size_t cut, FuzzFeedFunc feed, void *ctx);

/* The bytes as a C string that ends at the first NUL. */
char *fuzz_string(const guint8 *data, size_t n);
