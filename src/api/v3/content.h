/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/v3/render.h"
#include "forge/contents.h"

/* An entry as contents/{path} has it, without its bytes.  In any thread. */
Json *v3_content(const V3Place *place, const TreeEntry *entry, const char *ref);
