/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/v3/render.h"
#include "forge/contents.h"

/* An entry as contents/{path} has it, without its bytes.  In any thread. */
Json *v3_content(const V3Place *place, const TreeEntry *entry, const char *ref);

/* Alphabet of Base64; wrapped lines are as good. */
bool v3_is_base64(const char *text);

/* Objects of git as git/trees and git/tags have them.  NULL: an error.  In a thread. */
Json *v3_tree(GitRepo *git, const V3Place *place, const char *name, bool recursive, GError **error);
Json *v3_tag(GitRepo *git, const V3Place *place, const char *oid, GError **error);
