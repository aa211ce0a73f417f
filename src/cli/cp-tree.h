/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* Folders as tar, on our side.  What comes out of a box is not trusted: nothing is written
 * outside of the folder, no link is followed, no device is made. */

/* Packs what is in `folder` into `fd`. */
bool cp_tree_pack(const char *folder, int fd, GError **error);
/* Unpacks `fd` from its start into `folder`, which is made. */
bool cp_tree_unpack(int fd, const char *folder, GError **error);
