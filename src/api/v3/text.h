/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/v3/v3.h"

/* Changes as text, for whoever asks with Accept: application/vnd.github.diff or .patch. */

enum { V3_TEXT_MAX = 8 << 20 }; /* longer ones are 406 */

typedef struct V3TextSpec {
    const char *old, *new; /* as of DiffSpec */
    const char *without;   /* of patches: those that `new` has and this has not; NULL: `new` alone */
} V3TextSpec;
/* Into `work`, whose call asked for `media`, V3_DIFF or V3_PATCH.  In a thread. */
bool v3_text_make(GitRepo *git, V3Work *work, V3Media media, const V3TextSpec *spec, GError **error);
