/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* What a door that was taken over could do: speak to the network, and read its own folder.  No
 * program can be started, no other process touched, no file of the host read but certificates and
 * what names are resolved by.  Where the kernel has no Landlock, the file system is guarded by
 * the door's user alone. */

/* Early: no dump, no tracing by others of the same user, no new privileges. */
bool confine_memory(GError **error);
/* Once everything is open that is not in `folder`.  Threads that run already are not confined. */
bool confine_process(const char *folder, GError **error);
