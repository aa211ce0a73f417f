/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/v3/v3.h"

/* Changes as text, for whoever asks with Accept: application/vnd.github.diff or .patch.  They go through a
 * file without a name, so that neither memory nor a thread waits for a slow client. */

enum { V3_TEXT_MAX = 64 << 20 }; /* longer ones are 406, and never a part that looks whole */

typedef struct V3TextSpec {
    const char *old, *new; /* as of DiffSpec */
    const char *without;   /* of patches: those that `new` has and this has not; NULL: `new` alone */
} V3TextSpec;
/* Into `work`, whose call asked for `media`, V3_DIFF or V3_PATCH.  In a thread. */
bool v3_text_make(GitRepo *git, V3Work *work, V3Media media, const V3TextSpec *spec, GError **error);
