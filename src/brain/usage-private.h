/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "brain/usage.h"

enum { USAGE_BYTES_PER_TOKEN = 4 }; /* for what nobody counted */

/* What a whole answer says it used; false: nothing. */
bool usage_of_answer(Dialect dialect, Json *answer, Usage *ret);
/* What was fed last had the chunk that carries nothing but the usage. */
bool usage_reader_last_is_extra(const UsageReader *reader);
