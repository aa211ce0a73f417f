/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/v3/scene.h"
#include "forge/hook.h"

/* The body of a push, without repository and sender. */
void v3_hook_push(const V3Scene *scene, const HookEvent *event, Json *body);
