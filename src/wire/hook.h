/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* From `coop serve` to the hook of a push: its environment, and a pipe on which the hook tells what has
 * moved, as "OLD NEW REF" lines.  A pipe without a reader means that the server is gone, and nothing
 * may move behind its back. */

#define HOOK_REF "COOP_PUSH_REF"             /* the one that may be pushed to; not set: branches and tags */
#define HOOK_PROTECTED "COOP_PUSH_PROTECTED" /* branches in full, a line each; a '*' is anything */
#define HOOK_ADVANCE "COOP_PUSH_ADVANCE"     /* "1": those may be moved forward all the same */
#define HOOK_DEFAULT "COOP_PUSH_DEFAULT"     /* the default branch in full: whoever is first makes it */
#define HOOK_FORCE "COOP_PUSH_FORCE"         /* "1": the others may be moved back, or elsewhere */
#define HOOK_DELETE "COOP_PUSH_DELETE"       /* "1": and removed */
#define HOOK_MESSAGES "COOP_PUSH_MESSAGES"   /* what becomes of commits with other messages */
#define HOOK_TYPES "COOP_PUSH_TYPES"         /* with blanks between them; not set: the usual ones */

#define HOOK_MESSAGES_REFUSE "refuse"
#define HOOK_MESSAGES_WARN "warn" /* anything else: they are not looked at */

enum {
    HOOK_REPORT_FD = 3,
    HOOK_REF_MAX = 256,   /* bytes of a ref's full name */
    HOOK_REFS_MAX = 1000, /* in one push */
    HOOK_REPORT_MAX = HOOK_REFS_MAX * (HOOK_REF_MAX + 2 * 41 + 1),
};
