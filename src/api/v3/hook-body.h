/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/api.h"
#include "forge/hook.h"

/* What webhooks send, as GitHub writes it: the objects are those of the API.  A HookRender, whose ctx is the
 * Api. */
Json *v3_hook_body(Repo *repo, const HookEvent *event, void *api);
