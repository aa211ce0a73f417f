/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* coop-git-helper lies in each clone that the server makes in a box, and git runs it there: as the hook
 * `commit-msg`, and as the program that signs.  It has no key and no rights: the server signs, and
 * decides what; it checks messages again when they are pushed.  libc only. */

enum { HELPER_FILE_MAX = 1 << 20 };

/* NUL behind its end; NULL with errno.  EFBIG: longer than HELPER_FILE_MAX. */
char *helper_read_file(const char *path, size_t *ret_n);

/* Posts the file to the door and writes the answer to PATH.sig.  False: said why. */
bool helper_sign(const char *path);
