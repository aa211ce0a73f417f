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
 *   watch PATH DEPTH              a BuiltinEvent for each change in the folder and in those up
 *                                 to DEPTH levels below it, until it is killed; see there
 *   tar-out PATH                  what the folder holds, or the one file, as an archive: ustar,
 *                                 with pax or GNU headers where that is too small; a file with several names
 *                                 comes once for each.  What cannot be read is left out; the
 *                                 exit code is then its errno
 *   tar-in PATH ENTRIES BYTES     an archive from input becomes files below the folder, at most
 *                                 that many; see below
 *
 * Both say on STREAM_STDERR which entry they mean, a line for each: "tar-in: NAME: why".
 *
 * Only ordinary files are read and written over; /proc is EACCES.
 *
 * tar-in reads what GNU tar, bsdtar and Python write: EBADMSG, or EPIPE when the end of archive
 * is missing.  What came before an error stays.  A name that is absolute or has ".." is EXDEV; no
 * link and no mount on the way is followed (ELOOP, ENOTDIR, EXDEV); what is there is replaced, but a
 * folder only by a folder.  Links are made after everything else: a hard link to a file of the
 * tree, a symbolic one to an absolute path or to one that stays in the tree (EXDEV).  Set-id bits
 * are dropped, devices and FIFOs skipped (told, no error).  More than ENTRIES or BYTES, holes
 * counted, is EFBIG, a path of 4096 bytes ENAMETOOLONG, more than 64 levels ELOOP. */

enum {
    BUILTIN_LIST_MAX = 4096,
    BUILTIN_DEPTH_MAX = 128, /* of a tree; deeper is ELOOP */
    BUILTIN_WATCHES_MAX = 32768,
    BUILTIN_TAR_ENTRIES_MAX = 1000000,
};

/* Then name and, for a link, target, neither with a NUL. */
typedef struct BuiltinEntry {
    uint64_t size;
    int64_t mtime_ns;
    uint32_t mode, uid, gid;
    uint16_t name_bytes, target_bytes;
} BuiltinEntry;
_Static_assert(sizeof(BuiltinEntry) == 32, "no padding goes over the wire");

/* The first event is READY: from there on nothing is missed without an OVERFLOW, which says that
 * something was, and that whoever wants to know has to look.  A folder that comes into the tree
 * is watched before it is read, and what it holds is told as created; what was made just then may
 * be told twice.  Repeated changes of one file within a moment are told once.  Links in PATH are
 * followed, none below it, and no mount is entered; folders that the user cannot read are left
 * out.  It ends with ENOENT when the folder itself is removed or moved (told first, as an event
 * without a path) and with ENOSPC when there is no watch left. */
typedef enum BuiltinEventKind {
    WATCH_READY = 1,
    WATCH_OVERFLOW,
    WATCH_CREATED,
    WATCH_MODIFIED,
    WATCH_REMOVED,
    WATCH_MOVED_FROM, /* and MOVED_TO with the same cookie, unless it left the tree */
    WATCH_MOVED_TO,   /* or came from outside */
    WATCH_ATTRIBUTES,
} BuiltinEventKind;

typedef enum BuiltinEventFlags { WATCH_IS_DIR = 1 << 0 } BuiltinEventFlags;

/* Then the path below PATH, without a NUL; "" is PATH itself. */
typedef struct BuiltinEvent {
    uint8_t kind, flags;
    uint16_t path_bytes;
    uint32_t cookie; /* of a move, else 0 */
} BuiltinEvent;
_Static_assert(sizeof(BuiltinEvent) == 8, "no padding goes over the wire");
_Static_assert(BUILTIN_DEPTH_MAX * 256 + 256 <= UINT16_MAX, "every path has room");
