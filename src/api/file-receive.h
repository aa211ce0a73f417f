/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/file-call.h"

/* The body of a call becomes a file, or is unpacked as a tree of them.  Either takes `file` and
 * answers: 201 with path and size, or what went wrong.  Nothing is seen in the box of a file
 * whose body did not come whole. */
void file_receive(FileCall *file, int mode); /* < 0: as it was */
void file_receive_tree(FileCall *file);
