/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

/* What a run with START_BUILTIN does: argv[0] is the operation, the rest its arguments, all of
 * them text, numbers in decimal, modes in octal.  It is done by a process of the run's user, so
 * the kernel decides what it may; a path is as that user sees it, relative to the run's
 * directory.  The exit code is 0 or an errno.  Output is of STREAM_STDOUT.
 *
 *   stat PATH                     an entry; of a link itself
 *   list PATH CURSOR MAX          entries in the folder's order, then one without a name whose
 *                                 size is the next cursor, 0 at the end; CURSOR begins with 0
 *   read PATH OFFSET LENGTH       the file's entry, then its bytes; LENGTH "-": to the end
 *   write PATH MODE LENGTH        input becomes the file when all of it came: whole or not at
 *                                 all.  MODE "-": as it was, or 0644.  LENGTH "-": until the end
 *                                 of input; else a shorter input is EPIPE and nothing happens
 *   mkdir PATH MODE               with its parents; one that is there is no error
 *   move FROM TO HOW              HOW "replace" or "keep" (EEXIST)
 *   remove PATH HOW               HOW "one" (an empty folder at most) or "tree"
 *   chmod PATH MODE
 *
 * Only ordinary files are read and written over; /proc is EACCES. */

enum {
    BUILTIN_LIST_MAX = 4096,
    BUILTIN_DEPTH_MAX = 128, /* of a tree; deeper is ELOOP */
};

/* Then name and, for a link, target, neither with a NUL. */
typedef struct BuiltinEntry {
    uint64_t size;
    int64_t mtime_ns;
    uint32_t mode, uid, gid;
    uint16_t name_bytes, target_bytes;
} BuiltinEntry;
_Static_assert(sizeof(BuiltinEntry) == 32, "no padding goes over the wire");
