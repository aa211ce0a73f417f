/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* A provider that has failed several times in a row is left alone for a while; then one call
 * finds out whether it is back.  Boxes get their error at once instead of waiting for it. */
typedef struct Circuit Circuit;

enum { CIRCUIT_FAILURES = 5, CIRCUIT_OPEN_S = 10 };

Circuit *circuit_new(void);
Circuit *circuit_ref(Circuit *circuit);
void circuit_unref(Circuit *circuit);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Circuit, circuit_unref)

/* False: not now, but in `*ret_wait_s` seconds.  `now_us` is monotonic. */
bool circuit_pass(Circuit *circuit, gint64 now_us, guint *ret_wait_s);
void circuit_answered(Circuit *circuit);
void circuit_failed(Circuit *circuit, gint64 now_us);
