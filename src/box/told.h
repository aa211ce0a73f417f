/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/id.h"

/* Which boxes somebody was told of.
 *
 * A caller is answered after the row was written, so after a kill -9 a row that says `ready` may
 * be of a box whose caller knows it, or of one that nobody will ever ask for.  The ids of the
 * newest are kept in a small file that is mapped: a store in memory outlives the process, costs
 * no call of the kernel, and a power cut ends the boxes too. */
typedef struct Told Told;

enum { TOLD_MAX = 4096 };

/* NULL with an error: nothing is known then, every box is taken for told, and the file must not
 * be there at the next start. */
Told *told_open(const char *path, gint64 now_us, GError **error);
void told_close(Told *told);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Told, told_close)

/* Times are of the monotonic clock. */
void told_add(Told *told, const char id[static ID_BOX_LEN], gint64 born_us);
/* True also for those that are older than what the file remembers. */
bool told_has(const Told *told, const char *id, gint64 born_us);
